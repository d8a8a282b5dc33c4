"""Recognize private keys: whole ones, truncated ones, and lines from the middle of one.

The lines of a PEM or PuTTY key have 64 letters of base64, those of an OpenSSH key 70. Hardly anything else is
wrapped like that: mail and `base64` use 76. Certificates are, and without the head or foot in sight their
lines look like those of a key.
"""

import re
from base64 import b64decode
from collections.abc import Iterator
from string import ascii_letters, digits

from hone.core.regex import regex
from hone.core.secrets.marks import Span, marked
from hone.core.secrets.scan import stretches, table_of

KIND = "private key"
_HEAD = r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----"
_FOOT = r"-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----"
_BODY = r"(?:[^\[-]{40,}|\s{1,2}Proc-Type[^\[-]*)(?:-(?!----)[^\[-]*)*"
_CUT = r"(?:\s*(?:\\[nr]\s*)*[A-Za-z0-9+/=]{20,}(?![A-Za-z0-9+/=]))+"
_PUTTY = r"(?<=Private-Lines: )\d{1,4}(?:\r?\n[A-Za-z0-9+/=]{1,80}(?![^\r\n]))+"
BLOCK = rf"{_HEAD}(?:{_BODY}{_FOOT}|{_CUT})|{_PUTTY}"
"""A private key in lines, or the start of one."""

_BASE64 = table_of(ascii_letters + digits + "+/")
_LENGTHS = frozenset({64, 70})
_BEFORE = regex(r"[^\S\n]*(?:(?:[^\s:]{1,200}[:-])?\d{1,7}[:\t -]|[^\s:]{1,200}:|[-+>|\"'])?[^\S\n]*[\"']?")
"""Prefixes that commands print before a line: a number, a name, the mark of a diff."""
_AFTER = regex(r"(?:[\"',;+)\]}\\]|[^\S\n])*")
_REST = regex(r"[A-Za-z0-9+/]{4,69}={0,2}")
_ARMOR = regex(r"-{4,5} ?(BEGIN|END) ([A-Z0-9 ]{1,40}?) ?-{4,5}")
REACH = 250
"""Characters around a line of a key to search for its head, its foot and line ends."""
_ARMORED = regex(r"[A-Za-z-]{1,30}:[^\n]{0,200}|[A-Za-z0-9+/=]{0,100}")
_AROUND = regex(r"[\s\"'+,\\]")
_NAMES = (b"\x06\x03\x55\x04", b"\x06\x03\x55\x1d")
"""Strings in a certificate but not in a key: the identifiers of a name and of an extension."""


def without_keys(text: str, *, by_line: bool) -> str:
    if "PRIVATE KEY-----" in text or "Private-Lines: " in text or "KEY BLOCK-----" in text:
        blocks = [(*block.span(), KIND) for block in re.finditer(BLOCK, text, re.ASCII)]
        text = marked(text, blocks, by_line=by_line)
        text = marked(text, _feet(text), by_line=by_line)
    # The lines of a key in a string are lines, too. Each letter keeps its position.
    unescaped = text.replace("\\r", "  ").replace("\\n", " \n")
    return marked(text, _rows(unescaped), by_line=by_line)


def _feet(text: str) -> Iterator[Span]:
    """Yield keys whose beginning is missing. They still have lines of base64 above the foot."""
    done = 0
    for foot in re.finditer(_FOOT, text):
        start = _body(text, done, foot.start())
        if _is_rest(text[start : foot.start()].strip()):
            done = foot.end()
            yield start, done, KIND


def _body(text: str, floor: int, end: int) -> int:
    """Return where the lines of base64 that reach up to `end` begin. All of them but the last are long."""
    at, shortest = end, 1
    while at > floor:
        above = max(floor, at - 200)
        start = max(text.rfind("\n", above, at - 1) + 1, above)
        line = text[start:at].strip()
        if len(line) < shortest or not re.fullmatch(r"[A-Za-z0-9+/=]+", line):
            break
        at, shortest = start, 40
    return at


def _rows(text: str) -> Iterator[Span]:
    """Yield lines from the middle of a key, and the partial lines next to them."""
    group: list[tuple[int, int]] = []
    for begun, end in stretches(text, _BASE64, min(_LENGTHS)):
        start = begun + (end - begun - 1 in _LENGTHS and text.startswith("+", begun))  # the mark of a diff
        padded = text.startswith("=", end) + text.startswith("==", end)
        if end - start not in _LENGTHS or not _is_alone(text, start, end + padded):
            continue
        if group and text.count("\n", group[-1][1], start) != 1:
            yield from _group(text, group)
            group = []
        group.append((start, end + padded))
    if group:
        yield from _group(text, group)


def _is_alone(text: str, start: int, end: int) -> bool:
    """Tell whether the line holds nothing but the key and what a command or a language puts around it."""
    above = text.rfind("\n", max(0, start - REACH), start)
    if above < 0 and start > REACH:
        return False
    below = text.find("\n", end, end + REACH)
    line_end = below if below >= 0 else min(len(text), end + REACH)
    return bool(_BEFORE.fullmatch(text, above + 1, start) and _AFTER.fullmatch(text, end, line_end))


def _group(text: str, rows: list[tuple[int, int]]) -> Iterator[Span]:
    if not any(_is_random(text[start:end]) for start, end in rows) or _is_public(text, rows):
        return
    yield from ((start, end, KIND) for start, end in rows)
    first, last = rows[0][0], rows[-1][1]
    head = text.rfind("\n", max(0, first - REACH), first)
    if head >= 0:
        yield from _beside(text, text.rfind("\n", max(0, head - REACH), head) + 1, head)
    tail = text.find("\n", last, last + REACH) + 1
    if tail:
        end = text.find("\n", tail, tail + REACH)
        yield from _beside(text, tail, end if end >= 0 else min(len(text), tail + REACH))


def _beside(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield a truncated line, or the short last line of a key."""
    for rest in _REST.finditer(text, start, end):
        alone = _BEFORE.fullmatch(text, start, rest.start()) and _AFTER.fullmatch(text, rest.end(), end)
        if alone and _is_rest(rest[0]):
            yield rest.start(), rest.end(), KIND


def _is_rest(line: str) -> bool:
    """Tell whether this can be the end of a key: that may be short, but is hardly a word or a number."""
    return len(line) >= 4 and not line.islower() and not line.isdecimal()


def _is_random(row: str) -> bool:
    """Tell whether the letters look random. On average, 64 letters of base64 have 26 of either case and 10
    digits. Paths and digests do not."""
    lower, upper, digits = (sum(map(test, row)) for test in (str.islower, str.isupper, str.isdigit))
    return lower >= 8 and upper >= 8 and digits >= 1


def _is_public(text: str, rows: list[tuple[int, int]]) -> bool:
    """Tell whether the lines belong to a certificate, a public key or a message, by the head or foot in sight
    or by what they encode."""
    first, last = rows[0][0], rows[-1][1]
    above = list(_ARMOR.finditer(text, max(0, first - 4 * REACH), first))
    if above and above[-1][1] == "BEGIN" and "PRIVATE" not in above[-1][2]:
        between = text[above[-1].end() : text.rfind("\n", 0, first) + 1].split("\n")
        return all(_ARMORED.fullmatch(_AROUND.sub("", line)) for line in between)
    below = _ARMOR.search(text, last, last + REACH)
    if below is not None and below[1] == "END" and "PRIVATE" not in below[2]:
        return True
    whole = "".join(text[start:end] for start, end in rows).rstrip("=")
    data = b64decode(whole[: len(whole) // 4 * 4])
    return any(name in data for name in _NAMES)
