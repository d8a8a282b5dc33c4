"""Contents found on the pages of a SQLite file one by one, for when the tree that leads to them is broken.

A row counts only if its number and digest are those that an index names, and its bytes have that digest:
what is found is therefore what was written, wherever it lies.
"""

from collections.abc import Collection, Iterator
from mmap import mmap

from hone.core.messages import digest

LEAF = 13
"""How the page of a table begins that holds rows."""
NULL, BLOB, TEXT = 0, 12, 13
"""The kinds of a value; to the last two, twice their length is added."""
PAGE = 4096
HERE = PAGE - 35
"""So many bytes of a row fit on its page; of a longer one, at least LEAST stay."""
LEAST = (PAGE - 12) * 32 // 255 - 23

Found = tuple[int, str, bytes]


def found(data: bytes | mmap, wanted: Collection[tuple[int, str]]) -> Iterator[Found]:
    """Rows of id, digest and body. `data` is the whole file."""
    for start in range(0, len(data) - PAGE + 1, PAGE):
        if data[start] == LEAF:
            yield from _rows(data, start, wanted)


def _rows(data: bytes | mmap, start: int, wanted: Collection[tuple[int, str]]) -> Iterator[Found]:
    count = int.from_bytes(data[start + 3 : start + 5])
    for place in range(start + 8, min(start + 8 + 2 * count, start + PAGE - 1), 2):
        try:
            row = _row(data, start, start + int.from_bytes(data[place : place + 2]))
        except (IndexError, ValueError):
            continue  # a damaged row, or one of another table
        if row is not None and row[:2] in wanted and digest(row[2]) == row[1]:
            yield row


def _row(data: bytes | mmap, page: int, at: int) -> Found | None:
    size, at = _number(data, at)
    id, at = _number(data, at)
    payload = _payload(data, page, at, size)
    width, place = _number(payload, 0)
    kinds = []
    while place < width:
        kind, place = _number(payload, place)
        kinds.append(kind)
    if len(kinds) != 3 or kinds[0] != NULL or kinds[1] % 2 != 1 or kinds[2] % 2 or min(kinds[1:]) < BLOB:
        return None
    end = width + (kinds[1] - TEXT) // 2
    return id, payload[width:end].decode(), payload[end : end + (kinds[2] - BLOB) // 2]


def _payload(data: bytes | mmap, page: int, at: int, size: int) -> bytes:
    """The bytes of a row, those on further pages included."""
    if size <= HERE:
        return data[at : min(at + size, page + PAGE)]
    local = LEAST + (size - LEAST) % (PAGE - 4)
    local = local if local <= HERE else LEAST
    if size > len(data) or at + local + 4 > page + PAGE:
        raise ValueError(size)
    pieces = [data[at : at + local]]
    following, left = int.from_bytes(data[at + local : at + local + 4]), size - local
    while left > 0 and following:
        start = (following - 1) * PAGE
        pieces.append(data[start + 4 : start + 4 + min(left, PAGE - 4)])
        following, left = int.from_bytes(data[start : start + 4]), left - (PAGE - 4)
    return b"".join(pieces)


def _number(data: bytes | mmap, at: int) -> tuple[int, int]:
    """One of up to nine bytes, seven bits each but for the last, and where it ends."""
    value = 0
    for place in range(at, at + 8):
        value = (value << 7) | (data[place] & 0x7F)
        if data[place] < 0x80:
            return value, place + 1
    return (value << 8) | data[at + 8], at + 9
