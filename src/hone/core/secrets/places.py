"""Recognize values by the text around them: an assignment, a header, an option, a line of a known file.

The work is linear in the length of the text: a pattern is tried only behind its anchors, and each
repetition in it is bounded, comes last, or precedes something it cannot match.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache

from msgspec import Struct

from hone.core.regex import regex
from hone.core.secrets.judges import anything, assigned, basic, chosen, ending, filled, odd, random, session
from hone.core.secrets.marks import Span
from hone.core.secrets.scan import Anchors

Judge = Callable[[re.Match[str], str], bool]


class SecretSpan(Struct, frozen=True):
    """Where a value is a secret: after one of the anchors, which are lowercase. The last group of the pattern
    is the value, and the judge decides about it."""

    kind: str
    anchors: tuple[str, ...]
    pattern: str
    judge: Judge


_QUOTED = r"b?\"([^\"\s\\]{4,})|b?'([^'\s\\]{4,})|`([^`\s\\]{4,})"
_BARE = r"(?P<bare>[\w+/.~!@%^&*?#$-]{4,}={0,2})"
_TYPED = r":\s{0,2}[A-Za-z][\w.\[\]|]{0,30}\s{0,2}="
_ASSIGNMENT = (
    r"(?P<suffix>(?!i[sz])[\w-]{0,24})(?:[\"']\]?)?\s{0,4}"
    rf"(?:=>|:=|{_TYPED}|(?!{_TYPED}):(?!:)|=(?!=))\s{{0,4}}(?:{_QUOTED}|{_BARE})"
)
_NAMES = (
    *("password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "credential", "key"),
    *("_pass", "-pass", '"pass', "'pass", "dbpass", "\npass", "passwort", "kennwort", "wachtwoord", "senha"),
)
_HEADER = (
    r"(?i:(?<![a-z]authorization))[\"']?\s{0,4}[:=]\s{0,4}[\"']?"
    r"(?:[A-Za-z]{3,10}\s{1,4})?([\w.~+/=-]{8,8000})"
)
_ACCOUNT = r"\s{1,8}(?:login|account|user|port)\s{1,8}\S{1,200}"
_NETRC = rf"(?:{_ACCOUNT}){{1,3}}\s{{1,8}}(?:password|passwd)\s{{1,8}}(\S+)"
_COOKIES = r"[\"']?\s{0,4}[:=]\s{0,4}[\"']?([^\s\"'=;,]{1,100}=[^\"'\\\r\n]{6,4096})"
_SET_COOKIE = r"[\"']?\s{0,4}[:=]\s{0,4}[\"']?[^\s\"'=;,]{1,100}=([^\s\"';,\\]{6,4096})"
_COOKIE_LINE = r"/[^\t\n]{0,200}\t(?i:TRUE|FALSE)\t\d{1,12}\t[^\t\n]{1,200}\t([^\t\r\n]{4,})"
_NPMRC = r"(?i:(?<![\w.$]_auth)(?<![\w.$]_password))\s{0,2}=\s{0,2}[\"']?([\w+/=.-]{6,1000})"
_SIGNED = ("?sig=", "&sig=", "-signature=", "-security-token=")
_CONNECTION = (";password=", ";pwd=", "; password=", "; pwd=")
_KEYWORDS = (
    "server|data source|user|uid|database|initial catalog|host|port|encrypt|trust|integrated|pooling|ssl"
    "|driver|account|persist"
)
_FLAGS = (" --password", " --passwd", " --pass", " --passphrase")
PLACES = (
    SecretSpan(
        "URL password", ("://",), r"[^\s/:@\"'<>]{0,200}:([^\s/?#\"'<>]{1,400})@(?=[\w.\[-])", anything
    ),
    SecretSpan("URL token", ("://",), r"([\w.~-]{20,400})(?::x-oauth-basic)?@(?=[\w.\[-])", random),
    SecretSpan("credentials", ("authorization",), _HEADER, odd),
    SecretSpan("credentials", ("bearer",), r"\s{1,4}([\w.~+/=-]{16,})", random),
    SecretSpan("password", (" -u ", " --user ", " --user="), r"[\"']?[\w.@-]{1,100}:([^\s\"'@:]{6,})", odd),
    SecretSpan("password", _FLAGS, r"(?:=|\s{1,2})[\"']?([^\s\"']{6,128})(?![^\s\"'])", chosen),
    SecretSpan("password", ("sshpass -p",), r"\s?[\"']?([^\s\"']{4,128})", anything),
    SecretSpan(
        "password", ("mysql ", "mysqldump ", "mysqladmin "), r"[^\n|;&]{0,200}?\s-p([^\s\"']{6,128})", chosen
    ),
    SecretSpan("password", _CONNECTION, r"([^;\"'\s()]+)(?![^;\"'\s)])", anything),
    SecretSpan(
        "password",
        ("password=", "pwd="),
        rf"([^;\"'\s()]{{4,128}});(?=\s?(?i:{_KEYWORDS})[\w ]{{0,30}}=)",
        anything,
    ),
    SecretSpan("netrc password", ("machine",), rf"\s{{1,8}}\S{{1,200}}{_NETRC}", anything),
    SecretSpan("netrc password", ("default login",), r"\s{1,8}\S{1,200}\s{1,8}password\s{1,8}(\S+)", chosen),
    SecretSpan("cookie", ("cookie",), r"(?i:(?<!set-cookie))" + _COOKIES, session),
    SecretSpan("cookie", ("set-cookie",), _SET_COOKIE, random),
    SecretSpan("cookie", ("\ttrue\t", "\tfalse\t"), _COOKIE_LINE, anything),
    SecretSpan("npm credentials", ("_auth", "_password"), _NPMRC, ending),
    SecretSpan(
        "npm credentials",
        (":_auth", ":_password", ":_authtoken"),
        r"\s{0,2}=\s{0,2}[\"']?([^\s\"']{6,2000})",
        filled,
    ),
    SecretSpan("credentials", ('"auth"',), r"\s{0,4}:\s{0,4}\"([A-Za-z0-9+/]{8,}={0,2})\"", basic),
    SecretSpan(
        "private key", ("client-key-data",), r"[\"']?\s{0,4}:\s{0,4}[\"']?([A-Za-z0-9+/=]{40,})", anything
    ),
    SecretSpan("signature", _SIGNED, r"([\w%+/=.~-]{30,8000})", anything),
    SecretSpan("webhook", ("hooks.slack.com/",), r"[a-z]+/([\w/]{20,})", anything),
    SecretSpan("webhook", ("/api/webhooks/",), r"\d+/([\w-]{40,})", anything),
    SecretSpan(
        "assigned secret", ("<password>", "<secret>", "<token>", "<apikey>"), r"([^<>\s]{8,})<", random
    ),
    SecretSpan("assigned secret", _NAMES, _ASSIGNMENT, assigned),
)
BLANK = regex(
    r"[<^\[({]|\$[\w{(]|%[s(]|\*{3}|x{4}|\.{3}|arn:|change-?me|dummy|example|insert|placeholder|redacted|replace|your",
    re.IGNORECASE,
)


def find_values(text: str) -> Iterator[Span]:
    """Yield where each secret value stands. One may lie within another."""
    for at, place in _anchors().find(text):
        match = _compiled(place.pattern).match(text, at)
        if match:
            start, end = match.span(match.lastindex or 0)
            if not BLANK.match(text, start) and place.judge(match, text[start:end][:256]):
                yield start, end, place.kind


@cache
def _anchors() -> Anchors[SecretSpan]:
    return Anchors((anchor, place) for place in PLACES for anchor in place.anchors)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


# Lines of known files: .pgpass, .my.cnf, and the middle of a .netrc

_FRONT = r"[^\S\n]{0,20}(?:[^\s:\[]{1,200}:)?(?:\d{1,7}[:\t -])?[^\S\n]{0,20}"
"""Prefixes that commands print before a line: the file name and the line number."""
_PGPASS = regex(
    r":(?:\*|\d{4,5}):[^:\s]{1,63}:[^:\s]{1,63}:((?:\\[:\\]|[^:\\\s]){4,200})(?![^\r\n])", re.MULTILINE
)
_HOST = regex(_FRONT + r"(?:\*|localhost|[\w-]{1,60}(?:\.[\w-]{1,60}){1,8}|/[\w./-]{1,200})")
_SECTION = regex(r"^[^\S\n]*\[(?:client|mysql|mariadb)[\w-]*\]", re.MULTILINE | re.IGNORECASE)
_OPTION = regex(
    r"^[^\S\n]*password[^\S\n]*=[^\S\n]*[\"']?([^\"'\s](?:[^\"'\r\n]*[^\"'\s])?)",
    re.MULTILINE | re.IGNORECASE,
)
_ALONE = regex(rf"^{_FRONT}password[^\S\n]+(\S+)[^\S\n]*$", re.MULTILINE)


def find_in_files(text: str) -> Iterator[Span]:
    yield from _pgpass(text)
    if "password" in text or "PASSWORD" in text:
        yield from _options(text)
        for line in _ALONE.finditer(text):
            if not BLANK.match(line[1]) and chosen(line, line[1]):
                yield *line.span(1), "netrc password"


def _pgpass(text: str) -> Iterator[Span]:
    """Yield passwords in lines of host:port:database:user:password."""
    for line in _PGPASS.finditer(text):
        start = text.rfind("\n", max(0, line.start() - 500), line.start()) + 1
        if _HOST.fullmatch(text, start, line.start()) and _is_value(line):
            yield *line.span(1), "pgpass password"


def _options(text: str) -> Iterator[Span]:
    """Yield passwords in the section of a MySQL client, where any word may be one."""
    for section in _SECTION.finditer(text):
        end = text.find("\n[", section.end())
        for option in _OPTION.finditer(text, section.end(), end if end >= 0 else len(text)):
            if _is_value(option):
                yield *option.span(1), "password"


def _is_value(match: re.Match[str]) -> bool:
    return not BLANK.match(match[1]) and anything(match, match[1][:256])
