"""A secret is recognized in whole and in pieces, a value that is known is taken out in any form, and ordinary
text stays as it is."""

import base64
import json
import os
import time
from collections import Counter
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.secrets import conceal, mask_password, passwords, redact, redact_lines, redact_rows
from hone.core.secrets.places import PLACES
from hone.core.secrets.prose import LABELS
from hone.core.secrets.seeds import is_phrase
from tests.conftest import Figures, Tier
from tests.core.false_alarms import alarms, texts
from tests.core.secret_shapes import (
    ALNUM,
    CONFIG_FILES,
    HOLDERS,
    KEY_FILES,
    PLACED,
    SENTENCES,
    TOKEN_SHAPES,
    Holder,
    phrase,
    some,
)

named = pytest.mark.parametrize("holder", HOLDERS, ids=[holder.name for holder in HOLDERS])


@named
def test_a_file_loses_its_secrets_and_keeps_its_lines(holder: Holder) -> None:
    safe = redact_lines(holder.text)
    assert [secret for secret in holder.secrets if secret in redact(holder.text) or secret in safe] == []
    assert safe.count("\n") == holder.text.count("\n")
    beside = [line for line in holder.text.split("\n") if not any(each in line for each in holder.secrets)]
    harmed = [line for line in beside if line not in safe.split("\n") and "-----" not in line]
    assert [line for line in harmed if not line.startswith(("Private-Lines", "1. "))] == []


@named
def test_any_lines_of_a_file_read_as_they_do_in_the_whole(holder: Holder) -> None:
    lines = holder.text.split("\n")
    safe = redact_lines(holder.text).split("\n")
    for start in range(len(lines)):
        for end in {start + 1, start + 3, len(lines)}:
            assert list(redact_rows(lines, start, end)) == safe[start:end]


def test_a_line_of_a_key_in_the_middle_of_a_large_file_is_recognized() -> None:
    key = KEY_FILES[0].text.split("\n")
    lines = [*["x" * 99] * 12_000, *key, *["y" * 99] * 12_000]
    for at in (12_000, 12_000 + len(KEY_FILES[0].secrets)):
        assert list(redact_rows(lines, at, at + 1)) == ["[redacted: private key]"]


@given(
    st.lists(
        st.sampled_from([*(holder.text for holder in HOLDERS[:-1]), *TOKEN_SHAPES.values(), "\n", "a b\n"])
        | st.text(max_size=8),
        max_size=8,
    ).map("".join)
)
def test_redacting_by_line_keeps_the_number_of_lines_and_is_done_once(text: str) -> None:
    safe = redact_lines(text)
    assert safe.count("\n") == text.count("\n")
    assert redact_lines(safe) == redact(safe) == safe


def test_pieces_of_a_key_without_head_and_foot_are_recognized(tier: Tier, figures: Figures) -> None:
    """As `sed -n 5,9p`, `head -c`, `tail`, `grep -n` and `cat -n` cut them out."""
    tried, shown = 0, []
    for draw in tier.draws(short=150, full=5_000):
        width, count = draw.random.choice((64, 70)), draw.random.randrange(1, 9)
        lines = ["".join(draw.random.choices(ALNUM + "+/", k=width)) for _ in range(count)]
        before = draw.random.choice(("", "+", "    ", "12\t", "     7\t", "3:", "key.pem:3:", "key.pem-4-"))
        torn = draw.random.choice(("", f"{before}{some(20)}\n"))
        text = "".join([torn, *(f"{before}{line}\n" for line in lines), "[exit code 0]"])
        tried += len(lines)
        shown += [draw.index for line in lines if line in redact(text)]
    figures.tally(tried, got_in=len(shown), note="lines out of the middle of a private key", at=shown)
    assert shown == []


def certificate() -> list[str]:
    """Lines as openssl prints them: a name among random bytes."""
    data = os.urandom(200) + b"\x06\x03\x55\x04\x03\x0c\x0bexample.com" + os.urandom(400)
    whole = base64.b64encode(data).decode()
    return [whole[at : at + 64] for at in range(0, len(whole), 64)]


def test_ordinary_base64_and_digests_stay_as_they_are() -> None:
    body = [some(64, ALNUM + "+/") for _ in range(12)]
    mime = base64.encodebytes(os.urandom(900)).decode()
    certificates = [
        "\n".join(["-----BEGIN CERTIFICATE-----", *body, "-----END CERTIFICATE-----"]),
        "\n".join(["-----BEGIN CERTIFICATE-----", *body]),
        "\n".join([*body, "abcDEF12==", "-----END CERTIFICATE-----"]),
        "\n".join(["-----BEGIN PGP SIGNATURE-----", "Version: GnuPG v2", "", *body]),
        "\n".join(["---- BEGIN SSH2 PUBLIC KEY ----", "Comment: me", *(some(70) for _ in range(4))]),
        "\n".join(["ssl: |", "  -----BEGIN PUBLIC KEY-----", *(f"  {line}" for line in body)]),
        "\n".join(certificate()),
    ]
    digests = [f"{os.urandom(32).hex()}\n{os.urandom(32).hex()}\n", f"{os.urandom(35).hex()}\n"]
    images = [f'<img src="data:image/png;base64,{base64.b64encode(os.urandom(1_200)).decode()}">']
    locks = [
        f'"integrity": "sha512-{base64.b64encode(os.urandom(64)).decode()}"',
        f'"integrity": "sha384-{base64.b64encode(os.urandom(48)).decode()}"',
        f"--hash=sha256:{os.urandom(32).hex()} \\",
        f"github.com/a/b v1.2.3 h1:{base64.b64encode(os.urandom(32)).decode()}",
        f'checksum = "{os.urandom(32).hex()}"',
    ]
    for text in (mime, *certificates, *digests, *images, *locks):
        assert redact(text) == text


def test_a_phrase_is_told_from_a_list_of_words_and_from_prose() -> None:
    for count in (12, 15, 18, 21, 24):
        words = phrase(count)
        assert is_phrase(words)
        line = " ".join(words)
        for text in (line, "\n".join(words), json.dumps(words), f"Write down: {line} today."):
            assert "[redacted: seed phrase]" in redact(text)
        assert redact(f"seed phrase: {' '.join(sorted(words))}") == "seed phrase: [redacted: seed phrase]"
    several = "\n".join(" ".join(phrase(12)) for _ in range(5))
    assert redact_lines(several) == "\n".join(["[redacted: seed phrase]"] * 5)
    listed = (Path(redact.__code__.co_filename).with_name("bip39.txt")).read_text("ascii")
    prose = "have some more work to do after lunch then come back here again later today"
    for text in (listed, prose, f"mnemonic: {prose} and so on", "abandon " * 11 + "about"):
        assert redact(text) == text


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_sentence_gives_away_no_password_and_stays_if_there_is_none(sentence: str) -> None:
    for secret in ("hunter2", "Tr0ub4dor&3", "Sommer!2024"):
        assert redact(sentence.format(secret)) == sentence.format("[redacted: password]").replace(
            "Password: [redacted: password]", "Password: [redacted: assigned secret]"
        )
    for word in ("wrong", "required", "expired", "UTF-8", "sha256", "$PASSWORD", "<yours>", "**********"):
        assert redact(sentence.format(word)) == sentence.format(word)


def test_there_are_labels_in_many_languages() -> None:
    assert len(LABELS) >= 30


KEYS = st.text(ALNUM + "+/=_-.:~!@#$%&'\"<>", min_size=12, max_size=60)


@given(KEYS, st.text(max_size=20), st.text(max_size=20))
def test_a_known_key_is_taken_out_in_every_form(key: str, before: str, after: str) -> None:
    forms = [
        key,
        quote(key, safe=""),
        json.dumps(key)[1:-1],
        key.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;"),
    ]
    for form in forms:
        shown = conceal(f"{before}{form}{after}", [key])
        assert form not in shown.replace("[redacted: key]", "\0")
    for ahead in ("", "a", "ab", "user:"):
        packed = base64.b64encode(f"{ahead}{key}".encode()).decode()
        shown = conceal(f"Basic {packed}", [key])
        assert "[redacted: key]" in shown
        assert len(shown.replace("[redacted: key]", "")) <= len("Basic ") + len(packed) - len(key)


def test_the_beginning_of_a_known_key_is_taken_out_and_a_short_word_is_not() -> None:
    key = some(40)
    assert conceal(f"Incorrect key: {key[:25]}...", [key]) == "Incorrect key: [redacted: key]..."
    assert conceal("ollama has no such model", ["ollama", ""]) == "ollama has no such model"


@pytest.mark.parametrize(
    ("address", "masked", "secret"),
    [
        ("postgresql://me:hunter2@db/x", "postgresql://me:…@db/x", "hunter2"),
        ("postgresql://me:p@ss:w@db/x", "postgresql://me:…@db/x", "p@ss:w"),
        ("postgresql://me:p%40ss%21@db/x", "postgresql://me:…@db/x", "p@ss!"),
        ("host=db password=hunter2 user=me", "host=db password=… user=me", "hunter2"),
        ("host=db password='hun ter' user=me", "host=db password=… user=me", "hun ter"),
        ("https://0123456789abcdef01234567@git.example.com", "https://…@git.example.com", ""),
        ("https://git@example.com/x", "https://git@example.com/x", ""),
    ],
)
def test_an_address_is_shown_without_its_password(address: str, masked: str, secret: str) -> None:
    assert mask_password(address) == masked
    assert not secret or secret in passwords(address)


def test_ordinary_sources_raise_few_alarms(tier: Tier, figures: Figures) -> None:
    """In the standard library and in this repository; the library's tests hold keys and passwords."""
    size, found = 0, Counter[str]()
    most = tier.size(short=4_000_000, full=1_000_000_000)
    root = Path(__file__).parents[2]
    for folder in (root / "docs", root / "src", root / "benchmarks", Path(os.__file__).parent):
        for text in texts(folder):
            if size >= most:
                break
            size += len(text)
            found += alarms(text)
    figures(f"{size / 1e6:.1f} MB of ordinary text, {found.total()} alarms: {dict(found)}")
    assert size > 3_000_000
    assert found.total() <= size / 1e6


UNITS = [
    *(
        f"{anchor}{end}"
        for place in PLACES
        for anchor in place.anchors
        for end in ("", "=", ":a=", ": ", '="')
    ),
    *(unit for text, secret in PLACED for unit in (text.format(secret), text.format(""))),
    *(token for token in TOKEN_SHAPES.values()),
    *(holder.text for holder in (*KEY_FILES, *CONFIG_FILES)),
    *(sentence.format("") for sentence in SENTENCES),
    *("eyJ" + "a" * 30 + "-", "eyJaaaaaaaa.", "a.", "eyJ.", "abandon ", "one,", "1. word\n", "A" * 64 + "\n"),
    *("[client]\n", "[client]\npassword=", "password " * 7, ":5432:", "*:*:a:b:", "\ttrue\t/", "cookie: a="),
    *("password is ", "пароль ", "mysql  -", "machine a login b ", ":_auth", "-----BEGIN A-----\n", " \n"),
    "Aa1+" * 16 + "\n",
]
ROOM = 100
"""How much longer than an ordinary text another one may take. Squared time is thousands of times as long."""


def spent(text: str) -> int:
    begun = time.process_time_ns()
    redact(text)
    return time.process_time_ns() - begun


def test_no_text_takes_more_than_its_length_allows(tier: Tier, figures: Figures) -> None:
    """Beginnings of what is recognized, over and over, against an ordinary text in the same run."""
    size = 200_000
    ordinary = "".join(text for text in texts(Path(redact.__code__.co_filename).parent))
    usual = min(spent((ordinary * 9)[:size]) for _ in range(3))
    slowest = (0.0, "")
    for draw in tier.draws(short=25, full=4 * len(UNITS)):
        whole = UNITS[draw.index // 4]
        unit = whole[: max(1, len(whole) * (draw.index % 4 + 1) // 4)]
        slowest = max(slowest, (spent((unit * (size // len(unit) + 1))[:size]) / usual, unit[:60]))
    figures(f"slowest of all: {slowest[0]:.1f} times an ordinary text, {slowest[1]!r}")
    assert slowest[0] < ROOM
