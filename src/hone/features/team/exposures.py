"""Find what a text would reveal to colleagues about people, machines and private matters, with its place.

This is advice, and prefers to show too much: a false alarm costs a look, and a leak is permanent.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path

from msgspec import Struct

from hone.core.regex import regex
from hone.core.secrets import redact
from hone.core.value import replace
from hone.core.visible import visible
from hone.features.team.people import find_people

_REDACTED = regex(r"\[redacted: ([^\]\n]{1,40})\]")
_MAIL = regex(r"[\w.+%-]+@[\w-]+(?:\.[\w-]+)*")
_HANDLE = regex(r"(?<![\w@./`])@[A-Za-z][\w-]{2,38}\b(?!\.\w|/)")
_PHONE = regex(r"(?<![\w.+-])(?:\+|00|\()?\d[\d ()./-]{6,}\d(?![\w-])")
_NO_PHONE = regex(r"(?:\d{1,3}\.){3}\d|\d{4}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.]\d{4}")
_PATH = regex(
    r"(?<![\w:/.@\\<-])(?:~[\w.-]*|\$\{?HOME\}?|%USERPROFILE%|/[\w.@+-]+|[A-Za-z]:\\[\w .@+-]+|\\\\[\w.-]+)"
    r"(?:/[\w.@+-]*[\w@+-]|\\[\w.@+ -]+(?=\\)|\\[\w.@+-]*[\w@+-])+[/\\]?"
    r"|(?<![\w:/.@-])(?:~|/(?:home|Users|root))/?(?=[\s,;:)]|$)"
)
_WEB = regex(r"\b[a-z][a-z0-9+.-]{1,15}://[^\s<>\"'`)\]]*[^\s<>\"'`)\].,;:!?]")
_HOST = regex(
    r"\b(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:internal|intranet|corp|local|lan|home|localdomain|private"
    r"|com|net|org|io|dev|cloud|ai|app|de|at|ch|fr|es|it|nl|pl|uk|eu|us|in|jp|cn|br|ca|au)\b(?![\w(]|\.\w)",
    re.IGNORECASE,
)
_NUMBERED = regex(
    r"\b(?:prod|stag(?:e|ing)|db|web|app|srv|server|node|vm|host|build|ci|bastion|jump|gpu|nas|mail|ldap|vpn)"
    r"(?:[a-z]*[-_.])+[a-z0-9-]*\d[\w-]*\b(?::\d{2,5}\b)?"
    r"|\b[a-z][a-z0-9-]*\d[a-z0-9-]*:\d{2,5}\b|\b[a-z]+(?:-[a-z0-9]+)+:\d{2,5}\b"
)
_IPV4 = regex(r"(?<![\d.v])(?:\d{1,3}\.){3}\d{1,3}(?:/\d\d?)?(?![\d.])")
_IPV6 = regex(r"(?<![\w:])(?:[0-9a-f]{1,4}:){2,7}(?::?[0-9a-f]{1,4})(?![\w:])", re.IGNORECASE)
_NUMBER = regex(
    r"\b[A-Z]{2}\d\d(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,4})?\b|(?<![\d.])\d(?:[ -]?\d){8,18}(?![\d.])"
)
_OPEN_PATHS = regex(
    r"/(?:dev/(?:null|stdin|stdout|stderr|u?random|zero|shm)|etc/(?:hosts|fstab|passwd|os-release|resolv\.conf)"
    r"|(?:usr/)?(?:local/)?s?bin(?:/[\w.-]+)?|tmp|proc/\S+|sys/\S+|api(?:/\S*)?|v\d+(?:/\S*)?)/?"
)
"""Paths that are the same on every machine, and routes of an API."""
_OPEN_HOSTS = regex(
    r"(?:[\w-]+\.)*(?:localhost|example\.(?:com|org|net)|python\.org|readthedocs\.io|mozilla\.org|pypi\.org"
    r"|npmjs\.com|crates\.io|docs\.rs|wikipedia\.org|ietf\.org|w3\.org|kernel\.org|debian\.org|postgresql\.org"
    r"|stackoverflow\.com|semver\.org|keepachangelog\.com|conventionalcommits\.org|json-schema\.org)"
)
_OPEN_ADDRESSES = ("127.0.0.1", "0.0.0.0", "255.255.255.255", "1.2.3.4", "8.8.8.8", "1.1.1.1")
_OPEN_MAILS = regex(r"(?:git|noreply|no-reply|user|name|you)@.*|.*@(?:[\w-]+\.)*example\.(?:com|org|net)")
_DECORATORS = regex(
    r"@(?:dataclass|property|staticmethod|classmethod|override|cache|cached_property|lru_cache|contextmanager|pytest"
    r"|fixture|media|import|keyframes|charset|param|returns?|throws|deprecated|types?|babel|angular|vue|here|channel|all|todo"
    r"|latest|next|main|master|abstractmethod|wraps|app|click|Override|Test|Bean|Autowired|Deprecated)\b"
)
_OPEN_PRIVATE = regex(r"fired(?=\s+(?:by|on|when|after|once|twice|event|hook)\b)", re.IGNORECASE)
_PATTERNS = Path(__file__).with_name("private.txt")


class ExposureKind(StrEnum):
    SECRET = "secret"
    NAME = "name"
    ADDRESS = "address"
    PHONE = "phone number"
    NUMBER = "number"
    PATH = "path"
    HOST = "host"
    PRIVATE = "private"


class Exposure(Struct, frozen=True):
    """A place in the text. The words of a secret are never repeated: its kind stands for them."""

    kind: ExposureKind
    text: str
    start: int
    end: int

    def place(self, text: str) -> str:
        """Return line and column, from 1."""
        line = text.count("\n", 0, self.start)
        return f"{line + 1}:{self.start - (text.rfind(chr(10), 0, self.start) + 1) + 1}"


def find_exposures(text: str, people: Collection[str] = ()) -> list[Exposure]:
    """Return what to show before a text is shared, by place. `people` are names to find in any case: those of
    colleagues, accounts, and of the journal's part about the owner. The text is in the canonical form of
    `visible`."""
    shown = visible(text)
    found = [*_secrets(shown), *_shapes(shown)]
    found += [Exposure(ExposureKind.NAME, shown[at:end], at, end) for at, end in find_people(shown, people)]
    secrets = [each for each in found if each.kind is ExposureKind.SECRET]
    kept = [_without(each, secrets) for each in _outermost(found)]
    return sorted(kept, key=lambda each: (each.start, each.kind))


def _without(found: Exposure, secrets: Sequence[Exposure]) -> Exposure:
    """Return an exposure without the words of a secret inside it."""
    if found.kind is ExposureKind.SECRET:
        return found
    text = found.text
    for each in reversed(secrets):
        if each.start < found.end and found.start < each.end:
            start, end = max(each.start - found.start, 0), each.end - found.start
            text = f"{text[:start]}…{text[end:]}"
    return replace(found, text=text)


def _secrets(text: str) -> Iterator[Exposure]:
    """Find where the redacted text differs: only the words around a secret are left."""
    redacted = redact(text)
    if redacted == text:
        return
    pieces = _REDACTED.split(redacted)
    at = len(pieces[0])
    for kind, behind in zip(pieces[1::2], pieces[2::2], strict=True):
        found = text.find(behind, at) if behind else len(text)
        end = found if found >= 0 else len(text)
        yield Exposure(ExposureKind.SECRET, kind, at, end)
        at = end + len(behind)


def _shapes(text: str) -> Iterator[Exposure]:
    for kind, start, end in _matches(text):
        yield Exposure(kind, text[start:end], start, end)


def _matches(text: str) -> Iterator[tuple[ExposureKind, int, int]]:
    yield from _found(ExposureKind.ADDRESS, _MAIL, text, _OPEN_MAILS)
    yield from _found(ExposureKind.ADDRESS, _HANDLE, text, _DECORATORS)
    for found in _PHONE.finditer(text):
        digits = sum(map(str.isdigit, found[0]))
        if 7 <= digits <= 15 and re.search(r"[ +()/-]", found[0]) and not _NO_PHONE.search(found[0]):
            yield ExposureKind.PHONE, *found.span()
    yield from _found(ExposureKind.NUMBER, _NUMBER, text)
    yield from _found(ExposureKind.PATH, _PATH, text, _OPEN_PATHS)
    for found in _WEB.finditer(text):
        host = re.split(r"[/?#]", found[0].partition("://")[2], maxsplit=1)[0].rpartition("@")[2]
        name = re.sub(r":\d+$", "", host)
        if not _OPEN_HOSTS.fullmatch(name) and name not in _OPEN_ADDRESSES:
            yield ExposureKind.HOST, *found.span()
    yield from _found(ExposureKind.HOST, _HOST, text, _OPEN_HOSTS)
    yield from _found(ExposureKind.HOST, _NUMBERED, text, regex(r"localhost:\d+"))
    yield from (
        (ExposureKind.HOST, *found.span())
        for found in _IPV4.finditer(text)
        if found[0].partition("/")[0] not in _OPEN_ADDRESSES
    )
    yield from _found(ExposureKind.HOST, _IPV6, text, regex(r"\d\d?:\d\d?:\d\d?"))
    yield from (
        (ExposureKind.PRIVATE, *found.span())
        for found in _private().finditer(text)
        if not _OPEN_PRIVATE.match(text, found.start())
    )


def _found(
    kind: ExposureKind, pattern: re.Pattern[str], text: str, but: re.Pattern[str] | None = None
) -> Iterator[tuple[ExposureKind, int, int]]:
    for found in pattern.finditer(text):
        if but is None or not but.fullmatch(found[0].rstrip(".,")):
            yield kind, *found.span()


def _outermost(found: Iterable[Exposure]) -> list[Exposure]:
    """Drop exposures inside another one: the longer one is shown. A secret hides nothing but itself."""
    kept: list[Exposure] = []
    for each in sorted(found, key=lambda each: (each.kind is not ExposureKind.SECRET, each.start - each.end)):
        if not any(other.start <= each.start and each.end <= other.end for other in kept):
            kept.append(each)
    return kept


@cache
def _private() -> re.Pattern[str]:
    """Return the words about health, family, money, beliefs and employment, one pattern per line."""
    lines = filter(None, _PATTERNS.read_text(encoding="utf-8").splitlines())
    return re.compile("|".join(rf"\b(?:{line})\b" for line in lines), re.IGNORECASE)
