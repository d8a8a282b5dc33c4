"""The pages of a SQLite file, byte by byte: which of their bytes mean something, and which row is where."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

SIZE = 4096
LEAF_TABLE, INNER_TABLE, LEAF_INDEX, INNER_INDEX = 13, 5, 10, 2


LIVE = """
SELECT name, pageno, pagetype = 'overflow', unused FROM dbstat
WHERE pagetype = 'overflow' OR ncell > 0 ORDER BY pageno
"""


@dataclass(frozen=True, slots=True)
class Page:
    """One that holds something. `used` are the places of the bytes that mean something."""

    owner: str
    number: int
    used: tuple[int, ...]


def live(path: Path) -> list[Page]:
    data = path.read_bytes()
    with closing(apsw.Connection(str(path))) as connection:
        rows: list[Any] = connection.execute(LIVE).fetchall()
    return [
        Page(owner, number, tuple(_used(data[(number - 1) * SIZE : number * SIZE], number, further, unused)))
        for owner, number, further, unused in rows
    ]


def _used(page: bytes, number: int, further: bool, unused: int) -> Iterator[int]:
    return iter(range(SIZE - unused)) if further else tree(page, number == 1)


def rows(data: bytes, leaves: list[int]) -> dict[int, set[int]]:
    """The numbers of the rows that have something on each page, from the leaves of their table."""
    found: defaultdict[int, set[int]] = defaultdict(set)
    for leaf in leaves:
        page = data[(leaf - 1) * SIZE : leaf * SIZE]
        for number in range(int.from_bytes(page[3:5])):
            place = int.from_bytes(page[8 + 2 * number : 10 + 2 * number])
            payload, at = varint(page, place)
            row, at = varint(page, at)
            found[leaf].add(row)
            here = local(LEAF_TABLE, payload)
            following = 0 if here == payload else int.from_bytes(page[at + here - 4 : at + here])
            while following:
                found[following].add(row)
                start = (following - 1) * SIZE
                following = int.from_bytes(data[start : start + 4])
    return found


def varint(page: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends."""
    value = 0
    for place in range(at, at + 9):
        if place == at + 8:
            return (value << 8) | page[place], place + 1
        value = (value << 7) | (page[place] & 0x7F)
        if page[place] < 0x80:
            return value, place + 1
    raise AssertionError


def local(kind: int, payload: int) -> int:
    """How much of a row is on its page, the number of the page where it goes on included."""
    largest = SIZE - 35 if kind == LEAF_TABLE else (SIZE - 12) * 64 // 255 - 23
    if payload <= largest:
        return payload
    least = (SIZE - 12) * 32 // 255 - 23
    kept = least + (payload - least) % (SIZE - 4)
    return (kept if kept <= largest else least) + 4


def cell(page: bytes, kind: int, at: int) -> range:
    start = at
    if kind in (INNER_TABLE, INNER_INDEX):
        at += 4
    if kind == INNER_TABLE:
        return range(start, varint(page, at)[1])
    payload, at = varint(page, at)
    if kind == LEAF_TABLE:
        _, at = varint(page, at)
    return range(start, at + local(kind, payload))


def tree(page: bytes, first: bool) -> Iterator[int]:
    """The bytes of a page of a table or an index: its header, where its cells are, and these."""
    start = 100 if first else 0
    kind = page[start]
    header = 12 if kind in (INNER_TABLE, INNER_INDEX) else 8
    count = int.from_bytes(page[start + 3 : start + 5])
    yield from range(start, start + header + 2 * count)
    for number in range(count):
        place = start + header + 2 * number
        yield from cell(page, kind, int.from_bytes(page[place : place + 2]))
