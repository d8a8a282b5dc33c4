"""Recognize secrets by the lines of known files: .pgpass, .my.cnf, and a .netrc out of its middle."""

import re
from collections.abc import Iterator

from hone.core.regex import regex
from hone.core.secrets.judges import anything, chosen
from hone.core.secrets.marks import Span
from hone.core.secrets.places import BLANK

_FRONT = r"[^\S\n]{0,20}(?:[^\s:\[]{1,200}:)?(?:\d{1,7}[:\t -])?[^\S\n]{0,20}"
"""What commands put in front of a line: the name of the file, the number of the line."""
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
    """Lines of host:port:database:user:password."""
    for line in _PGPASS.finditer(text):
        start = text.rfind("\n", max(0, line.start() - 500), line.start()) + 1
        if _HOST.fullmatch(text, start, line.start()) and _is_value(line):
            yield *line.span(1), "pgpass password"


def _options(text: str) -> Iterator[Span]:
    """A password in the section of a client of MySQL may be any word."""
    for section in _SECTION.finditer(text):
        end = text.find("\n[", section.end())
        for option in _OPTION.finditer(text, section.end(), end if end >= 0 else len(text)):
            if _is_value(option):
                yield *option.span(1), "password"


def _is_value(match: re.Match[str]) -> bool:
    return not BLANK.match(match[1]) and anything(match, match[1][:256])
