"""Recognize text that was seen before, without keeping it: fingerprints of runs of words.

A unit is a line, cut into runs of six to eight words. A line with too few words is joined with the lines
after it, so short lines do not escape and a lone brace is never a unit; two longer words are a unit if they
fill a line. Only words count: a unit is found however the text is indented, numbered, quoted, escaped or
prefixed.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from zlib import crc32

from hone.core.regex import regex

LONGEST = 8
"""The most words in a unit."""
PIECE = 6
"""The fewest words in a run that a line is cut into; they need enough bytes, too."""
WORDS, BYTES = 3, 16
"""The fewest words and bytes in a unit."""
PAIR = 12
"""The fewest bytes of two words that are a unit because they fill a line."""
ALONE = 24
"""The fewest bytes of a word that is a unit by itself."""
REACH = 40
"""The most lines that a short line is joined with."""
STATEMENTS = (
    *("assert", "async", "await", "case", "catch", "class", "const", "def", "elif", "else", "end", "except"),
    *("export", "final", "for", "from", "func", "function", "if", "import", "include", "interface", "let"),
    *("module", "namespace", "new", "package", "private", "public", "raise", "require", "return", "static"),
    *("struct", "super", "switch", "this", "throw", "try", "type", "var", "void", "while", "with", "yield"),
)
"""Two words that start with one of these could fill a line in any program."""

_PRIME = (1 << 45) - 55
_BASE = 0x1B873593C2B2 % _PRIME
_START = 0xFFFF
_FILLED = 7
"""Stands before the words of a unit that fills a line. No word has this number."""
# Scripts without spaces between words: each character counts as a word.
_SPACELESS = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = regex(rf"[{_SPACELESS}]|[^\W{_SPACELESS}]+")
_COLORS = regex(r"\x1b\[[0-9;:?]*[A-Za-z]")
_BYTES = regex(r"(?:\\x[0-9a-fA-F]{2})+")
_ESCAPE = regex(r"\\(?:u([0-9a-fA-F]{4})|([ntr])|([\"'\\/]))")
# Prefixes that programs print before a line: `file:12:`, `12\t`, `hash (name date 12)`, `file:`, `+`, `>`.
_PREFIX = regex(
    r"^(?:\^?[0-9a-f]{7,40} [^\n]{0,200}?\d\) |(?:[^\s:]{1,300}[:-])??[ \t]*\d{1,7}[:\-\t|) ][ \t]?"
    r"|[^\s:]{1,300}:[ \t]?)?(?:[+\-<>|#]{1,3}[ \t]?)?",
    re.MULTILINE,
)

Row = Sequence[tuple[int, int]]
"""The words of a line, each as a number and its bytes."""
Span = tuple[str, ...]
"""The lines, or parts of lines, that a unit was found in."""


class Fingerprints:
    """A set of units, each with a number for how long it has been known."""

    def __init__(self) -> None:
        self._since: dict[int, int] = {}
        self._starts: set[int] = set()

    def __len__(self) -> int:
        return len(self._since)

    def add(self, units: Iterable[int], since: int) -> None:
        for unit in units:
            if since < self._since.get(unit, since + 1):
                self._since[unit] = since
                self._starts.add(unit & _START)

    def unknown(self, units: frozenset[int]) -> frozenset[int]:
        """Return the units that are not in the set."""
        return frozenset(unit for unit in units if unit not in self._since)

    def find(self, text: str) -> dict[Span, int]:
        """Return where a text contains known units, and since when each is known."""
        found: dict[Span, int] = {}
        if self._since:
            for form in _forms(text):
                for span, since in (*self._runs(form), *self._lines(form)):
                    found[span] = min(since, found.get(span, since))
        return found

    def _runs(self, text: str) -> Iterator[tuple[Span, int]]:
        words = _words(text)
        cache = {word: _number(word) for word in {*words}}
        numbers = [cache[word] for word in words]
        starts, known = self._starts, self._since
        hits: dict[int, tuple[int, int]] = {}
        for at, first in enumerate(numbers):
            if first & _START in starts:
                value = 0
                for count, number in enumerate(numbers[at : at + LONGEST]):
                    value = (value * _BASE + number) % _PRIME
                    unit = value << 16 | first & _START
                    if unit in known:
                        hits[at] = count, known[unit]
        if hits:
            places = [match.span() for match in _WORD.finditer(text) if not match[0].isdigit()]
            for at, (count, since) in hits.items():
                yield _span(text[places[at][0] : places[at + count][1]]), since

    def _lines(self, text: str) -> Iterator[tuple[Span, int]]:
        if _FILLED in self._starts:
            for line in text.split("\n"):
                unit = _filling(_row(line)) if len(line) < 200 else None
                if unit in self._since:
                    yield _span(line), self._since[unit]


def fingerprint(text: str) -> frozenset[int]:
    """Return the units of a text."""
    return select(text.split("\n"))


def select(lines: Sequence[str], unwanted: frozenset[str] = frozenset()) -> frozenset[int]:
    """Return the units of a text that begin in wanted lines. `unwanted` lines are given stripped."""
    rows = [_row(_COLORS.sub("", line)) for line in lines]
    wanted = (at for at, line in enumerate(lines) if line.strip() not in unwanted)
    return frozenset(unit for at in wanted for unit in _units(rows, at))


def runs(text: str) -> frozenset[int]:
    """Return every unit that a text contains, wherever it begins."""
    numbers = [_number(word) for word in _words(text)]
    found = {unit for row in text.split("\n") if (unit := _filling(_row(row))) is not None}
    for at, first in enumerate(numbers):
        value = 0
        for number in numbers[at : at + LONGEST]:
            value = (value * _BASE + number) % _PRIME
            found.add(value << 16 | first & _START)
    return frozenset(found)


def lines(text: str) -> set[str]:
    """Return the lines of a text that are units, in every form in which a program may print them."""
    found = {line.strip() for form in _forms(text) for line in form.split("\n")}
    return {line for line in found if _is_enough(_row(line))}


def _forms(text: str) -> Iterator[str]:
    """Yield a text as it is, without what programs print before each line, and unescaped once and twice."""
    text = _COLORS.sub("", text)
    yield text
    yield _PREFIX.sub("", text)
    for _ in range(2):
        if "\\" in text:
            text = _ESCAPE.sub(_unescape, _BYTES.sub(_decode, text))
            yield text


def _decode(match: re.Match[str]) -> str:
    return bytes.fromhex(match[0].replace("\\x", "")).decode("utf-8", "replace")


def _unescape(match: re.Match[str]) -> str:
    wide, control, plain = match.groups()
    if control:
        return "\n"
    return plain or chr(int(wide, 16))


def _span(text: str) -> Span:
    return tuple(line.strip() for line in text.split("\n") if _WORD.search(line))


def _words(text: str) -> list[str]:
    """Return the words without numbers: numbers differ where the words are the same, and stand before
    lines."""
    return [word for word in _WORD.findall(text) if not word.isdigit()]


def _row(line: str) -> Row:
    return [(_number(word), _weight(word)) for word in _words(line)]


def _number(word: str) -> int:
    return crc32(word.encode("utf-8", "replace")) + 8


def _weight(word: str) -> int:
    return len(word) if word.isascii() else len(word.encode("utf-8", "replace"))


_STATEMENTS = frozenset(map(_number, STATEMENTS))


def _units(rows: Sequence[Row], at: int) -> Iterator[int]:
    row = list(rows[at])
    if not row:
        return
    filling = _filling(row)
    if filling is not None:
        yield filling
    for after in rows[at + 1 : at + 1 + REACH]:
        if _is_enough(row):
            break
        row += after[:LONGEST]
    yield from map(_unit, _pieces(row))


def _pieces(row: Row) -> Iterator[Row]:
    """Cut a line into meaningful runs, so that a part of it is recognized, too."""
    start = 0
    for end in range(1, len(row) + 1):
        piece = row[start:end]
        if (len(piece) >= PIECE and _is_enough(piece)) or len(piece) == LONGEST:
            yield piece
            start = end
    if start < len(row):
        whole = [row[first:][:LONGEST] for first in range(start, -1, -1)]
        yield from islice((piece for piece in whole if len(piece) >= PIECE and _is_enough(piece)), 1)
        if start == 0 and len(row) < PIECE and _is_enough(row):
            yield row


def _filling(row: Row) -> int | None:
    """Return the unit of a line that holds two words."""
    if len(row) != 2 or row[0][1] + row[1][1] < PAIR or row[0][0] in _STATEMENTS:
        return None
    return _unit([(_FILLED, 0), *row])


def _is_enough(row: Row) -> bool:
    weights = [weight for _, weight in row]
    return (len(row) >= WORDS and sum(weights) >= BYTES) or max(weights, default=0) >= ALONE


def _unit(row: Row) -> int:
    value = 0
    for number, _ in row:
        value = (value * _BASE + number) % _PRIME
    return value << 16 | row[0][0] & _START
