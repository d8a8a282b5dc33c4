"""Secrets are taken out of a text and the rest of it stays. Those in here are made up while the tests run."""

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.secrets import redact, seeds
from hone.core.secrets.tokens import JWT, RUN, TOKENS
from tests.conftest import Tier
from tests.core.secret_shapes import KEYS, PLACED, ROWS, TOKEN_SHAPES, pem, some

AROUND_TOKENS = [
    *("{}", "the key is {} I think", "({}).", "`{}`\n", "é{}é", "name={}&page=2", "name%3D{}"),
    '{{"x":"a\\n{}\\n"}}',
]


def test_every_kind_of_token_has_a_row_in_the_table() -> None:
    assert set(TOKEN_SHAPES) == {JWT, *(kind for kind, _ in TOKENS)}
    assert len(TOKEN_SHAPES) + len(PLACED) + len(KEYS) >= 100


@pytest.mark.parametrize(("kind", "token"), ROWS, ids=[kind for kind, _ in ROWS])
def test_a_token_is_redacted_and_what_stands_around_it_stays(kind: str, token: str) -> None:
    for around in AROUND_TOKENS:
        assert redact(around.format(token)) == around.format(f"[redacted: {kind}]")


@pytest.mark.parametrize(("text", "secret"), PLACED, ids=[text for text, _ in PLACED])
def test_a_value_is_redacted_for_its_place_and_what_stands_around_it_stays(text: str, secret: str) -> None:
    for around in ("{}", "before {}\nafter", "1: {}\r\n2: more"):
        result = redact(around.format(text.format(secret)))
        before, after = around.format(text.format("\0")).split("\0")
        assert result.startswith(f"{before}[redacted: ")
        assert result.endswith(f"]{after}")
        assert secret not in result
        assert result.count("[redacted: ") == 1


@pytest.mark.parametrize("label", KEYS)
def test_a_private_key_is_redacted_also_when_it_is_escaped_or_cut(label: str) -> None:
    key = pem(label)
    body = key.splitlines()[1:-1]
    texts = [
        f"a\n{key}\nb",
        '{"private_key": "' + key.replace("\n", "\\n") + '\\n", "x": 1}',
        "a\n" + "\n".join(key.splitlines()[:4]) + "\n[3 more lines]",
        "a line of text\n" + "\n".join(key.splitlines()[2:]) + "\nb",
        f"a\n{key}\n{pem(label)}\nb",
    ]
    for text in texts:
        assert [line for line in body if line in redact(text)] == [], text
        assert redact(text).startswith(text[:2])
        assert redact(text).endswith(text[-2:])


def test_an_encrypted_key_and_a_putty_key_are_redacted() -> None:
    old = pem("RSA PRIVATE KEY").replace(
        "KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n", 1
    )
    assert redact(f"a {old} b") == "a [redacted: private key] b"
    lines = [some(64) for _ in range(3)]
    putty = "PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 3\n" + "\n".join(lines) + "\nPrivate-MAC: 00"
    assert redact(putty) == putty.replace("3\n" + "\n".join(lines), "[redacted: private key]")


HARMLESS = """
commit 3f2a9c1d5e8b7a6f4c3d2e1f0a9b8c7d6e5f4a3b
index 83db48f..bf2a1c3 100644
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
"integrity": "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="
image: registry.example.com/app@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
550e8400-e29b-41d4-a716-446655440000
request_id=550e8400-e29b-41d4-a716-446655440000 status=200
"id": "chatcmpl-9x8y7z6w5v4u3t2s1r0q"
def login(user: str, password: str) -> bool:
    password: str | None = None
password = getpass.getpass("Password: ")
password = os.environ["DB_PASSWORD"]
token = secrets.token_urlsafe(32)
token = request.headers.get("X-Token")
token = tokens2[0]
api_key = settings.providers.openai.api_key
    private_key: ed25519.Ed25519PrivateKey | X448PrivateKey,
def sign(self, private_key: Ed25519PrivateKey) -> bytes:
KEM1024P384PrivateKey = rust_openssl.hpke.KEM1024P384PrivateKey
elif token == "a1b2-c3d4!e5f6":
"encryptionKey": "arn:aws:kms:us-west-2:123456789012:alias/a1B2c3D4"
<add assembly="System, Version=4.0.0.0, Culture=neutral, PublicKeyToken=b77a5c561934e089"/>
"Aggregation::ConfigAuthorization": "d7a6bb0a3b1e4c8f"
self.api_key = api_key or os.getenv("OPENAI_API_KEY")
password=$DB_PASSWORD
password: ${{ secrets.DB_PASSWORD }}
password = "{{ vault_db_password }}"
password = "%(db_password)s"
PASSWORD=<your password here>
api_key = "your-api-key-goes-here-123"
OPENAI_API_KEY=sk-...
export ANTHROPIC_API_KEY=sk-ant-...
password = "changeme"
password = "correct horse battery staple"
password = "a1b1a1b1a1b1"
password = "vault://kv/data/d3v#p4ss"
"password": "Passwords must have 8 or more characters"
secret: my-database-credentials
secretName: db-creds-x7k2p9
secretKeyRef: {name: db1-creds, key: password}
token_url = "https://login.example.com/oauth2/v2.0/token1a2b3c"
password_file: /run/secrets/db2_password
password_hash = "0cc175b9c0f1b6a831c399e269772661"
tokenizer: "gpt2-bpe32k-v1a"
max_tokens=16384
"total_tokens": 1234567890
"nextPageToken": "CAUQAA1b2c3d4e5f6g7"
--token-color: #a1b2c3d4e5;
token_type = "bearer2jwt3x"
The token is sent in the Authorization header as a bearer credential.
Authorization: Bearer <token>
Authorization: Bearer $TOKEN
Authorization: required
Use a Bearer authentication-scheme-of-your-choice here.
A private key begins with -----BEGIN PRIVATE KEY----- and ends with a foot.
if line.startswith("-----BEGIN RSA PRIVATE KEY-----"):
-----BEGIN CERTIFICATE-----
-----BEGIN PUBLIC KEY-----
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGk3b2Zxk9b2ZxkPq1w9s8d7f6g5h4j3k2l1 me@laptop
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==
//# sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbImEuanMiXX0=
https://github.com/owner/repository/pull/1234#issuecomment-1234567890
https://example.com:8443/path?email=me@example.com
http://localhost:3000
git@github.com:owner/repository.git
ssh://git@example.com:2222/owner/repository.git
postgres://localhost:5432/app
ec2-203-0-113-25.compute-1.amazonaws.com
arn:aws:iam::123456789012:role/service-role/MyRole-1a2b3c4d
task-0123456789abcdef0123456789abcdef
disk-sk-spinner-three-bounce-animation
docker run -u 1000:1000 --user root:root image
The machine was off; login and password are the same as before.
for key, value in table.items(): print(f"{key}={value}")
"key": "a1b2c3d4e5f6a7b8c9d0"
cache_key = "v2-a1b2c3d4e5f6a7b8"
primary_key=True, foreign_key="user.id"
ghp_ is the beginning of a GitHub token, hf_ that of another one
hf_hub_download(repo_id="owner/model", filename="model-00001-of-00002.safetensors")
npm_config_registry=https://registry.example.com/some/long/path/of/packages
xoxb-your-token-here
sk_live_ and sk_test_ are prefixes
/usr/lib/python3.11/site-packages/cryptography/hazmat/primitives/asymmetric/__init__.py
C:\\Users\\name\\AppData\\Local\\Programs\\Python\\Python311\\python.exe
2024-01-15T10:30:00.123456+00:00 INFO worker-7f9c8d6b5-x2k4p started
nginx-deployment-66b6c48dd5-7xq2z   1/1   Running
0x7ffee4c3b8a0 in main() at main.c:42
AKIA is what AWS keys begin with
The password on server1 was changed in 2024.
The password must have at least 8 characters and 1 digit.
My password is wrong, my passphrase is too short, and the passcode was 4 digits.
Passwords are hashed with PBKDF2-HMAC-SHA256; the password is base64-encoded.
The password is stored in 1Password; the password: see the wiki.
Das Passwort ist falsch. Le mot de passe est obligatoire. La contraseña es incorrecta.
    password=password1,
self.password = user.password2
"password": "string1"
"password": {"type": "string", "minLength": 8}
--password PASSWORD --token TOKEN --pass-through x1y2z3
localhost:8080:/app:ro
src/main.py:1234:5:E501:line
fe80:1234:abcd:ef01:5678
127.0.0.1:5432:tcp:open:postgresql extra
Set-Cookie: lang=en-US; Path=/
Cookie: theme=dark; lang=en
document.cookie = "name=" + value
_auth = None
    _password = self._prompt()
//registry.npmjs.org/:_authToken=${NPM_TOKEN}
"auth": "oauth2"
"auth": {"type": "basic"}
client-key-data: REDACTED
https://sentry.example.com:9000/organizations/x
machine learning, login forms and password managers
default login page, password field
word list: abandon ability able about above absent absorb abstract absurd
Семён, ваш пароль: смотрите в письме
密码: 请联系管理员
👩‍👩‍👧 family token
PWD=/dev/shm/tests-23cprf17/popen-gw0/test_tools_and_commands_cannot0/work
OLDPWD=/home/me/a8f3kq91/x
""".strip("\n").splitlines()


@pytest.mark.parametrize("line", HARMLESS)
def test_a_harmless_line_stays_as_it_is(line: str) -> None:
    assert redact(line) == line


def test_there_are_enough_harmless_lines_and_none_becomes_harmful_among_the_others() -> None:
    assert len(HARMLESS) >= 60
    text = "\n".join(HARMLESS)
    assert redact(text) == text


PIECES = [
    *TOKEN_SHAPES.values(),
    *(text.format(secret) for text, secret in PLACED),
    *(text for text, _ in PLACED),
    *HARMLESS,
    *(pem(label, 2) for label in KEYS),
    *(
        "password",
        "token",
        "secret",
        "=",
        ":",
        " ",
        "\n",
        '"',
        "'",
        "`",
        "://",
        "@",
        "a1b2c3d4e5",
        "[redacted: ",
        "]",
    ),
    *(
        "bearer ",
        "Authorization: ",
        ";pwd=",
        "\\n",
        "%3D",
        "-",
        "_",
        "x",
        "-----",
        "sk-",
        "-----END PRIVATE KEY-----",
    ),
]


def test_a_secret_in_front_of_another_one_is_redacted_too() -> None:
    first, second = some(20), some(12)
    assert redact(f"https://token={first}:{second}@example.com") == (
        "https://token=[redacted: assigned secret]:[redacted: URL password]@example.com"
    )
    typed = redact(f'token: {first} = "{second}"')
    assert typed == redact(typed) == f'token: {first} = "[redacted: assigned secret]"'
    assert redact(f';pwd={first} = "x"') == ';pwd=[redacted: assigned secret] = "x"'


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=12).map("".join))
def test_redacting_twice_is_the_same_as_redacting_once(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


def test_every_token_is_one_long_run_of_the_letters_that_are_searched() -> None:
    assert [kind for kind, token in ROWS if not re.fullmatch(RUN, token, re.ASCII)] == []


HOSTILE = [
    *(
        "a",
        "=",
        "-",
        " ",
        "\n",
        ".",
        "/",
        "\\",
        "%",
        "$",
        "A_",
        "a=",
        "0f",
        "Aa",
        "aA1-",
        "://",
        "://a:",
        ":// ",
        "a:b@",
    ),
    *(
        "token",
        "token=",
        'token="',
        "token='a\"",
        "token=\"token='",
        "password ",
        "key-",
        "sk-",
        "sk-ant-",
        "eyJ.",
        "eyJaaaaaaaa-",
        "eyJaaaaaaaa.",
        "1:",
    ),
    *(
        "bearer ",
        "machine ",
        "machine a login ",
        " -u a:",
        ";pwd=",
        "?sig=",
        "<token>",
        "-----BEGIN PRIVATE KEY-----",
    ),
    *(
        "-----BEGIN ",
        "-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\\n",
        "-----BEGIN PRIVATE KEY-----" + "A" * 40 + "-",
        "Private-Lines: 1\n",
        "A" * 64 + "\n",
        "secret: Ab-Ab-!",
        "\ud800",
    ),
]


@pytest.mark.parametrize("unit", ["a", "="])
def test_a_megabyte_of_one_letter_comes_back_as_it_was(unit: str) -> None:
    text = unit * 1_000_000
    assert redact(text) == text


def test_long_runs_made_to_be_slow_come_to_an_end(tier: Tier) -> None:
    size = tier.size(short=50_000, full=1_000_000)
    for unit in HOSTILE:
        text = unit * (size // len(unit))
        once = redact(text)
        assert redact(once) == once


@pytest.mark.parametrize("filler", ["- ", "\\n", " ", "A", "A" * 64 + "\n", "A" * 64 + "\\n", "A-A"])
def test_a_key_with_a_long_body_and_no_end_comes_to_an_end(filler: str, tier: Tier) -> None:
    size = tier.size(short=50_000, full=1_000_000)
    for start in (
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----" + "A" * 40,
        "Private-Lines: 1\nA",
    ):
        text = f"{start}{filler * (size // len(filler))}!----"
        once = redact(text)
        assert redact(once) == once


@pytest.mark.parametrize("filler", ["-", "Ab-", "AbAb-", "a1", "A", "_."])
def test_a_long_value_that_is_almost_words_comes_to_an_end(filler: str) -> None:
    for length in (40, 240, 20_000):
        text = f'token = "{filler * (length // len(filler))}!"'
        assert redact(text) in {text, 'token = "[redacted: assigned secret]"'}


def test_nothing_recognisable_gets_lost_between_many_secrets() -> None:
    text = "\n".join(
        itertools.chain.from_iterable(zip(HARMLESS, itertools.cycle(TOKEN_SHAPES.values()), strict=False))
    )
    result = redact(text)
    assert [line for line in HARMLESS if line not in result] == []
    assert [kind for kind, token in TOKEN_SHAPES.items() if token in result] == []


@given(
    st.lists(
        st.sampled_from(["legal", "winner,", "12. thank", "of", "Year", "wave;", "electricity", "zoo\n"])
    )
)
def test_text_without_twelve_words_in_a_row_is_passed_over_and_no_other(words: list[str]) -> None:
    text = " ".join(words * 3)
    assert seeds._may_hold_row(text) or not seeds._ROW.search(text)
