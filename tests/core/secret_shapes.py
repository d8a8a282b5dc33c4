"""Secrets of every shape that is recognized, made up while the tests run, and files that hold them."""

import base64
import json
import string
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random

from hone.core.secrets import seeds

HEX = string.hexdigits[:16]
UPPER = string.ascii_uppercase + "234567"
ALNUM = string.ascii_letters + string.digits
URLSAFE = ALNUM + "_-"
_random = Random(7)


def some(count: int, letters: str = ALNUM) -> str:
    """Letters with at least two digits among them, and none at either end."""
    middle = [*_random.choices(letters, k=count - 4), "4", "7"]
    _random.shuffle(middle)
    first = [letter for letter in letters if letter.isalpha()]
    return f"{_random.choice(first)}{''.join(middle)}{_random.choice(first)}"


def pem(label: str, lines: int = 6) -> str:
    body = "\n".join(some(64, ALNUM + "+/") for _ in range(lines))
    return f"-----BEGIN {label}-----\n{body}\n-----END {label}-----"


TOKEN_SHAPES = {
    "Anthropic key": "sk-" + "ant-api03-" + some(90, URLSAFE),
    "OpenRouter key": "sk-" + "or-v1-" + some(64, HEX),
    "OpenAI key": "sk-" + "proj-" + some(100, URLSAFE),
    "Langfuse key": "sk-" + "lf-" + some(36, URLSAFE),
    "API key": "sk-" + some(48),
    "ElevenLabs key": "sk_" + some(48, HEX),
    "Groq key": "gsk" + "_" + some(52),
    "xAI key": "xai" + "-" + some(80),
    "Perplexity key": "pplx" + "-" + some(48),
    "Cerebras key": "csk" + "-" + some(48, string.ascii_lowercase + string.digits),
    "Together key": "tgp" + "_v1_" + some(43, URLSAFE),
    "Replicate token": "r8" + "_" + some(37),
    "NVIDIA key": "nvapi" + "-" + some(64, URLSAFE),
    "Tavily key": "tvly" + "-dev-" + some(32),
    "Firecrawl key": "fc" + "-" + some(32, HEX),
    "LangSmith key": "lsv2" + "_pt_" + some(32, HEX) + "_" + some(10, HEX),
    "Pinecone key": "pcsk" + "_" + some(60),
    "Jina key": "jina" + "_" + some(32, HEX) + some(28),
    "Hugging Face token": "hf" + "_" + some(34),
    "GitHub token": "ghp" + "_" + some(36),
    "GitLab token": "glpat" + "-" + some(20, URLSAFE),
    "npm token": "npm" + "_" + some(36),
    "PyPI token": "pypi" + "-" + some(120, URLSAFE),
    "RubyGems key": "rubygems" + "_" + some(48, HEX),
    "crates.io token": "cio" + some(32),
    "Docker token": "dckr" + "_pat_" + some(27, URLSAFE),
    "Slack token": "xoxb" + "-123456789012-1234567890123-" + some(24),
    "Stripe key": "sk" + "_live_" + some(24),
    "webhook secret": "whsec" + "_" + some(32),
    "Twilio key": "SK" + some(32, HEX),
    "SendGrid key": "SG" + "." + some(22, URLSAFE) + "." + some(43, URLSAFE),
    "Mailgun key": "key" + "-" + some(32, HEX),
    "Mailchimp key": some(32, HEX) + "-us" + "12",
    "AWS key": "AKIA" + some(16, UPPER),
    "Alibaba key": "LTAI" + some(20),
    "Google key": "AIza" + some(35, URLSAFE),
    "Google token": "ya29" + "." + some(60, URLSAFE),
    "Google secret": "GOCSPX" + "-" + some(28, URLSAFE),
    "Azure secret": "abc8" + "Q~" + some(34),
    "DigitalOcean token": "dop" + "_v1_" + some(64, HEX),
    "Heroku key": "HRKU" + "-" + some(36, URLSAFE),
    "Netlify token": "nfp" + "_" + some(36),
    "Fly.io token": "fm2" + "_" + some(80),
    "Supabase key": "sbp" + "_" + some(40, HEX),
    "PlanetScale key": "pscale" + "_tkn_" + some(43, URLSAFE),
    "Databricks token": "dapi" + some(32, HEX),
    "Vault token": "hvs" + "." + some(90, URLSAFE),
    "Terraform token": some(14) + ".atlas" + "v1." + some(67, URLSAFE),
    "Pulumi token": "pul" + "-" + some(40, HEX),
    "Doppler token": "dp" + ".pt." + some(43),
    "1Password token": "ops" + "_eyJ" + some(120, URLSAFE),
    "Tailscale key": "tskey" + "-auth-" + some(12) + "-" + some(32),
    "Shopify token": "shpat" + "_" + some(32, HEX),
    "Square token": "sq0" + "atp-" + some(22, URLSAFE),
    "Linear key": "lin" + "_api_" + some(40),
    "Notion token": "ntn" + "_" + some(46),
    "Airtable token": "pat" + some(14) + "." + some(64, HEX),
    "Asana token": "1/" + "1234567890123456:" + some(32, HEX),
    "Atlassian token": "ATATT3" + some(180, URLSAFE),
    "Figma token": "figd" + "_" + some(43, URLSAFE),
    "Dropbox token": "sl" + "." + some(130, URLSAFE),
    "Postman key": "PMAK" + "-" + some(24, HEX) + "-" + some(34, HEX),
    "Grafana token": "glsa" + "_" + some(32) + "_" + some(8, HEX),
    "New Relic key": "NRAK" + "-" + some(27, string.ascii_uppercase + string.digits),
    "Sentry token": "sntrys" + "_" + some(80),
    "CircleCI token": "CCIPAT" + "_" + some(60),
    "Buildkite token": "bkua" + "_" + some(40, HEX),
    "Telegram token": "1234567890" + ":AA" + some(33, URLSAFE),
    "Discord token": "M" + some(25) + "." + some(6) + "." + some(38, URLSAFE),
    "JWT": "eyJ" + some(30, URLSAFE) + ".eyJ" + some(60, URLSAFE) + "." + some(43, URLSAFE),
    "Resend key": "re" + "_" + some(8) + "_" + some(24),
    "Brevo key": "xkeysib" + "-" + some(64, HEX) + "-" + some(16),
    "Mapbox token": "sk" + ".eyJ" + some(60, URLSAFE) + "." + some(22, URLSAFE),
    "PostHog key": "phx" + "_" + some(43),
    "Neon key": "napi" + "_" + some(64, string.ascii_lowercase + string.digits),
    "Render key": "rnd" + "_" + some(28),
    "Fireworks key": "fw" + "_" + some(22),
    "LlamaCloud key": "llx" + "-" + some(48),
    "E2B key": "e2b" + "_" + some(40, HEX),
    "HubSpot token": "pat" + "-na1-" + "-".join(some(size, HEX) for size in (8, 4, 4, 4, 12)),
    "SonarQube token": "squ" + "_" + some(40, HEX),
    "Artifactory key": "AKCp" + some(69),
    "Brave key": "BSA" + some(28, URLSAFE),
    "Contentful token": "CFPAT" + "-" + some(43, URLSAFE),
    "extended private key": "xprv" + some(107, "".join(set(ALNUM) - set("0OIl"))),
    "age key": "AGE-SECRET-" + "KEY-1" + some(58, string.ascii_uppercase + string.digits),
    "private key": base64.b64encode(pem("RSA PRIVATE " + "KEY").encode()).decode(),
    "password hash": "$2b$12" + "$" + some(53),
}
OTHER_FORMS = [
    ("GitHub token", "github" + "_pat_" + some(22) + "_" + some(59)),
    ("Slack token", "xapp" + "-1-A012AB3CD45-1234567890123-" + some(64, HEX)),
    ("Google token", "1/" + "/0" + some(60, URLSAFE)),
    ("Notion token", "secret" + "_" + some(43)),
    ("password hash", "$argon2" + "id$v=19$m=65536,t=3,p=4$" + some(22) + "$" + some(43)),
    *(
        ("private key", base64.b64encode(pem(f"{kind}PRIVATE KEY").encode()).decode())
        for kind in ("", "EC ", "OPENSSH ")
    ),
]
ROWS = [*TOKEN_SHAPES.items(), *OTHER_FORMS]
PLACED = [
    ("postgres://admin:{}@db.example.com:5432/app", some(12)),
    ("amqp://guest:{}@localhost", "simple"),
    ("https://user:{}@git.example.com/x.git", "p@ss" + some(8)),
    ("Authorization: Bearer {}", some(40, URLSAFE)),
    ("authorization: token {}", some(40, HEX)),
    ("-H 'Authorization: Basic {}'", base64.b64encode(b"user:" + some(9).encode()).decode()),
    ('"Authorization": "{}"', some(32)),
    ("curl -H 'X-Auth: bearer {}'", some(40)),
    ("curl -u admin:{} https://example.com", some(10)),
    ("machine example.com login me password {}\n", "any-word"),
    ("machine example.com\n  login me\n  password {}\n", some(10)),
    ("Server=db;User Id=sa;Password={};Encrypt=true", "hunter"),
    ("DefaultEndpointsProtocol=https;AccountName=x;AccountKey={};", some(86) + "=="),
    ("https://x.blob.core.windows.net/c/f?sv=2022&sig={}&se=2030", some(40)),
    ("https://bucket.example.com/f?X-Amz-Signature={}", some(64, HEX)),
    ("https://hooks.slack.com/services/{}", "T" + some(8) + "/B" + some(8) + "/" + some(24)),
    ("https://discord.com/api/webhooks/123456789012345678/{}", some(68, URLSAFE)),
    ('password = "{}"', "hunter2!"),
    ('password: str = "{}"', some(12)),
    ('password = "{}"', "a1b2&token=c3d4e5f6"),
    ("password: Optional[str]='{}'", some(12)),
    ("DB_PASSWORD={}", "Tr0ub4dor&3"),
    ("DB_PASSWORD={} npm start", some(14)),
    ("export API_KEY={}", some(32, HEX)),
    ("aws_secret_access_key = {}", some(40, ALNUM + "+/")),
    ('{{"client_secret": "{}"}}', some(40, URLSAFE)),
    ('{{"apiKey":"{}","x":1}}', some(32)),
    ("config['token'] = '{}'", some(24)),
    ("secret => '{}'", some(24)),
    ("const accessKey = `{}`;", some(24)),
    ('private_key = b"{}"', some(44)),
    ("  token: {}", some(32)),
    ("//registry.example.com/:_authToken={}", "0f8fad5b-d9cb-469f-a165-70867728950e"),
    ("passphrase := {}", some(20)),
    ("<password>{}</password>", some(16)),
    ("PrivateKey = {}", base64.b64encode(_random.randbytes(32)).decode()),
]
KEYS = ["RSA PRIVATE KEY", "PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"]


@dataclass(frozen=True)
class Holder:
    """A file, or the output of a command, with secrets in it. Each of `secrets` stands on one line of it."""

    name: str
    text: str
    secrets: Sequence[str]
    whole: bool = False
    """One line of it alone cannot be told from any other: a plain word, a word of a seed phrase."""


def key_file(name: str, label: str, width: int = 64, lines: int = 6) -> Holder:
    body = [*(some(width, ALNUM + "+/") for _ in range(lines)), some(38, ALNUM + "+/") + "=="]
    text = "\n".join([f"-----BEGIN {label}-----", *body, f"-----END {label}-----", ""])
    return Holder(name, text, body)


def phrase(words: int) -> list[str]:
    """A seed phrase with the right checksum."""
    known = Path(seeds.__file__).with_name("bip39.txt").read_text("ascii").split()
    entropy = _random.randbytes(words * 4 // 3)
    bits = words * 11 - len(entropy) * 8
    number = int.from_bytes(entropy, "big") << bits | sha256(entropy).digest()[0] >> (8 - bits)
    return [known[number >> 11 * at & 2047] for at in reversed(range(words))]


def filled(name: str, text: str, *secrets: str) -> Holder:
    return Holder(name, text.format(*secrets), secrets)


def packed(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def password() -> str:
    """As people make them up: a word, digits, a sign."""
    word = _random.choice(("Tower", "saturn", "Kumquat", "lagoon", "Merlin"))
    return f"{word}{_random.randrange(10, 9999)}!x"


_GAP = "\n"
_LINE, _NUMBERED = " ".join(phrase(12)), phrase(24)
_PUTTY = [some(64, ALNUM + "+/") for _ in range(4)]
_SERVICE = "".join(f"{some(64, ALNUM + '+/')}\n" for _ in range(5))
KEY_FILES = (
    key_file("id_rsa", "RSA PRIVATE " + "KEY"),
    key_file("server.key", "PRIVATE " + "KEY"),
    key_file("ec.pem", "EC PRIVATE " + "KEY", lines=2),
    key_file("id_ed25519", "OPENSSH PRIVATE " + "KEY", width=70, lines=5),
    key_file("backup.asc", "PGP PRIVATE KEY " + "BLOCK", lines=9),
    Holder("me.ppk", _GAP.join(["PuTTY-User-Key-File-3: ssh-rsa", "Private-Lines: 4", *_PUTTY, ""]), _PUTTY),
    Holder(
        "service.json",
        json.dumps({"type": "service_account", "private_key": f"-----BEGIN PRIVATE KEY-----\n{_SERVICE}"}),
        _SERVICE.split(),
    ),
)
SENTENCES = (
    *("My password is {}.", "the password for the staging server is {}, as before", "Password: {}"),
    *("Das Passwort ist {}.", "Das Kennwort lautet {}", "Le mot de passe est {}", "mot de passe : {}"),
    *("La contraseña es {}", "la password è {}", "A senha é {}.", "Het wachtwoord is {}", "Hasło to jest {}"),
    *("Lösenordet är {}", "Heslo je {}", "Пароль: {}", "密码是{}", "パスワードは{}", "비밀번호는 {}"),
)
CONFIG_FILES = (
    filled(".pgpass", "# a note\nlocalhost:5432:app:me:{}\n*:*:*:postgres:{}\n", password(), password()),
    Holder(".my.cnf", "[client]\nuser = me\npassword = swordfish\nhost = db\n", ["swordfish"], whole=True),
    filled(".netrc", "machine a.example.com login me password {}\n", "swordfish"),
    filled("netrc", "machine a.example.com\n  login me\n  password {}\n", password()),
    filled("authinfo", "machine mail.example.com port 993 login me password {}\n", password()),
    filled(
        "cookies.txt",
        "# Netscape HTTP Cookie File\n.example.com\tTRUE\t/\tTRUE\t1999999999\tsessionid\t{}\n",
        some(32),
    ),
    filled(
        "request.http",
        "GET / HTTP/1.1\nHost: example.com\nCookie: theme=dark; sessionid={}; csrftoken={}\n",
        some(32),
        some(24),
    ),
    filled("response.http", "HTTP/1.1 200 OK\nSet-Cookie: sid={}; Path=/; HttpOnly\n", some(32)),
    filled("seed.txt", "seed phrase: {}\n", _LINE),
    Holder(
        "wallet.txt",
        _GAP.join(f"{number}. {word}" for number, word in enumerate(_NUMBERED, 1)),
        [f"{number}. {word}" for number, word in enumerate(_NUMBERED, 1)][1:],
        whole=True,
    ),
    filled(
        ".npmrc",
        "//registry.example.com/:_authToken={}\n_auth={}\n//npm.example.com/:_password={}\n",
        "0f8fad5b-d9cb-469f-a165-70867728950e",
        packed(f"me:{some(12)}"),
        packed(some(12)),
    ),
    filled(
        "kubeconfig",
        "users:\n- name: admin\n  user:\n    client-key-data: {}\n    token: {}\n    password: {}\n",
        packed(pem("EC PRIVATE " + "KEY")),
        some(32),
        password(),
    ),
    filled(
        "config.json", '{{"auths": {{"registry.example.com": {{"auth": "{}"}}}}}}\n', packed(f"me:{some(12)}")
    ),
    filled(".pypirc", "[pypi]\nusername = me\npassword = {}\n", password()),
    filled(
        ".git-credentials",
        "https://me:{}@git.example.com\nhttps://{}@git.example.com\n",
        some(14),
        some(40, HEX),
    ),
    filled("appsettings.json", '{{"Db": "Server=db;User Id=sa;Password={};Encrypt=true"}}\n', "swordfish"),
    filled("database.yml", "url: postgres://app:{}@db.example.com/app\n", some(14)),
    filled("deploy.sh", "export PGPASSWORD={}\nmysql -u root -p{} app\n", password(), password()),
    filled("notes.md", "\n".join(SENTENCES) + "\n", *(password() for _ in SENTENCES)),
    filled(
        "session.jwt",
        "{}\n",
        "eyJ" + some(20_000, URLSAFE) + ".eyJ" + some(60, URLSAFE) + "." + some(43, URLSAFE),
    ),
)
TOKEN_FILE = Holder(
    "tokens.txt", "".join(f"{kind}: {token}\n" for kind, token in ROWS), [token for _, token in ROWS]
)
HOLDERS = (*KEY_FILES, *CONFIG_FILES, TOKEN_FILE)
