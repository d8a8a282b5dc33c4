"""Find where to look closer in a text, at the speed of copying memory."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

Value = TypeVar("Value")
_STEMS = (
    *(b"pass", b"pwd", b"cookie", b"auth", b"user", b"webhook", b"token", b"sig"),
    *(b"mysql", b"secret", b"key", b"contrase", b"kode"),
)
"""Common parts of anchors. The text is searched once for a stem instead of once for each anchor."""

_RECENT, _LONG, _HUGE = 4, 1_000, 100_000
"""How many texts to remember, and the text lengths for which that pays off."""


class Anchors(Generic[Value]):
    """Lowercase words, each with what to do after it."""

    def __init__(self, anchors: Iterable[tuple[str, Value]]) -> None:
        self._stems: dict[bytes, list[tuple[int, bytes, Value]]] = {}
        for text, value in anchors:
            anchor = one_byte_each(text)
            stem = next((each for each in _STEMS if each in anchor), anchor)
            self._stems.setdefault(stem, []).append((anchor.index(stem), anchor, value))
        self._longest = max(map(len, self._stems), default=0)
        self._bare: deque[str] = deque(maxlen=_RECENT)
        """The long texts searched last that have no stem."""

    def find(self, text: str) -> Iterator[tuple[int, Value]]:
        """Yield where each anchor ends."""
        if not _LONG <= len(text) < _HUGE or not self._is_bare(text):
            yield from self._search(text)

    def _is_bare(self, text: str) -> bool:
        """Tell whether a text has no stem. For a text close to one without a stem, only the difference is
        searched, with enough around it to hold a stem."""
        start, end = 0, len(text)
        for known in tuple(self._bare):
            head, tail = find_common(known, text)
            if head + tail > len(text) // 2:
                start, end = max(0, head - self._longest), len(text) - max(0, tail - self._longest)
        part = one_byte_each(text[start:end]).lower()
        if any(stem in part for stem in self._stems):
            return False
        self._bare.append(text)
        return True

    def _search(self, text: str) -> Iterator[tuple[int, Value]]:
        lowered = one_byte_each(text).lower()
        for stem, anchors in self._stems.items():
            at = lowered.find(stem) if stem in lowered else -1
            while at >= 0:
                yield from _ends(lowered, at, anchors)
                at = lowered.find(stem, at + len(stem))


def find_common(one: str, other: str) -> tuple[int, int]:
    """Return how many letters two texts share at the start, and how many of the rest at the end."""
    head = _count_common(one, other)
    rest = min(len(one), len(other)) - head
    return head, _count_common(one[len(one) - rest :][::-1], other[len(other) - rest :][::-1])


def _count_common(one: str, other: str) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _ends(
    lowered: bytes, at: int, anchors: Sequence[tuple[int, bytes, Value]]
) -> Iterator[tuple[int, Value]]:
    for offset, anchor, value in anchors:
        if at >= offset and lowered.startswith(anchor, at - offset):
            yield at - offset + len(anchor), value


def one_byte_each(text: str) -> bytes:
    """Return one byte for each letter, so that positions in the text and in the bytes are the same."""
    return text.encode("ascii", "replace")


def table_of(letters: str) -> bytes:
    """Return a table for `stretches`: these letters, and no others."""
    wanted = letters.encode("ascii")
    return bytes(byte in wanted for byte in range(256))


def stretches(text: str, table: bytes, shortest: int) -> Iterator[tuple[int, int]]:
    """Yield where at least `shortest` of the table's letters follow each other. A non-ASCII letter is a
    question mark."""
    marks = one_byte_each(text).translate(table)
    wanted = b"\1" * shortest
    start = marks.find(wanted)
    while start >= 0:
        end = marks.find(0, start + shortest)
        end = end if end >= 0 else len(marks)
        yield start, end
        start = marks.find(wanted, end)
