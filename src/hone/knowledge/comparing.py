"""Find the entries and lines in which two versions of a text differ."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from hone.knowledge.journal import FENCES, MARK, entries


def compare(before: bytes, after: bytes) -> tuple[list[str], list[str]]:
    """Return the entries that came and those that went. Only the lines around the change are read, unless
    code stands in the text."""
    if before == after:
        return [], []
    texts = [data.decode("utf-8", "replace") for data in (before, after)]
    if not any(fence in text for fence in FENCES for text in texts):
        texts = _around(*texts)
    old, new = (entries(text) for text in texts)
    return find_missing(new, old), find_missing(old, new)


def _around(one: str, other: str) -> list[str]:
    """Return the parts in which two journals differ, by whole entries."""
    a, b = one.split("\n"), other.split("\n")
    head = next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    while head and not all(head < len(rows) and rows[head].startswith(MARK) for rows in (a, b)):
        head -= 1
    rest = min(len(a), len(b)) - head
    pairs = enumerate(zip(reversed(a), reversed(b), strict=False))
    tail = min(next((at for at, (x, y) in pairs if x != y), rest), rest)
    while tail and not a[len(a) - tail].startswith(MARK):
        tail -= 1
    return ["\n".join(rows[head : len(rows) - tail]) for rows in (a, b)]


@lru_cache(maxsize=256)
def entries_in(data: bytes | None) -> tuple[str, ...]:
    """Return the entries of a journal file. Each change that waits is compared with each new one."""
    return entries((data or b"").decode("utf-8", "replace"))


def lines_in(data: bytes | None) -> tuple[str, ...]:
    lines = (data or b"").decode("utf-8", "replace").split("\n")
    return tuple(line.strip() for line in lines if line.strip())


def find_missing(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Return what was there and is not any more."""
    there: Mapping[str, None] = dict.fromkeys(after)
    return [each for each in before if each not in there]
