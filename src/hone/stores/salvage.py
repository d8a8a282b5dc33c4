"""Read what is left of a damaged database, row by row, from its tables and from indexes with the same rows.

This module does not know what the rows mean.
"""

import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from mmap import mmap
from pathlib import Path
from typing import Any

import apsw
from msgspec import Struct

from hone.core.messages import digest
from hone.stores.database import PATIENCE, connect, create, migrate
from hone.stores.writer import FOREIGN

LINEAR = 10_000
"""How many numbers to try one by one where rows cannot be read, before the steps get larger."""
FARTHEST = 1 << 40

PAGE = 4096
COUNT, FREE = slice(28, 32), slice(32, 40)
"""Where the first page stores the number of pages, and the list of free ones."""
TABLE, INDEX = (5, 13), (2, 10)
PAGES = "SELECT pageno, name = 'sqlite_schema' FROM dbstat"
LEAF = 13
"""The first bytes of a table page with rows."""
NULL, BLOB, TEXT = 0, 12, 13
"""The types of a value; the last two add twice their length."""
HERE = PAGE - 35
"""The most bytes of a row that fit on its page; of a longer one, at least LEAST stay there."""
LEAST = (PAGE - 12) * 32 // 255 - 23

Found = tuple[int, str, bytes]
Row = tuple[Any, ...]


class Table(Struct, frozen=True):
    """`key` is what its rows are ordered by; `number`: this is a number, so that the next row after a gap can
    be searched."""

    name: str
    columns: tuple[str, ...]
    key: str
    number: bool
    index: str = ""
    """The index to read the rows from, if not the table."""

    def rows(self, connection: apsw.Connection, end: str, *values: int) -> apsw.Cursor:
        listed = ", ".join(f'"{column}"' for column in self.columns)
        way = f'INDEXED BY "{self.index}"' if self.index else "NOT INDEXED"
        return connection.execute(f"SELECT {self.key}, {listed} FROM {self.name} {way} {end}", values)


def table(connection: apsw.Connection, name: str) -> Table:
    """Return a table from the schema, which must be readable."""
    columns = [(row[1], row[5]) for row in connection.execute(f"PRAGMA table_info({name})")]
    sql = str(connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).get)
    numbered = "WITHOUT ROWID" not in sql
    key = "rowid" if numbered else ", ".join(f'"{name}"' for name, place in columns if place)
    return Table(name, tuple(name for name, _ in columns), key, numbered)


def twin(connection: apsw.Connection, table: Table) -> Table | None:
    """Return the same rows in an index, if one has all of their columns."""
    for _, index, *_ in connection.execute(f"PRAGMA index_list({table.name})").fetchall():
        parts: list[Any] = connection.execute(f'PRAGMA index_xinfo("{index}")').fetchall()
        held = [f'"{name}"' for _, _, name, *_ in parts if name is not None]
        if {f'"{name}"' for name in table.columns} <= {*held, *_alias(connection, table)}:
            return Table(table.name, table.columns, ", ".join(held), False, str(index))
    return None


def _alias(connection: apsw.Connection, table: Table) -> set[str]:
    """Return the column that is another name for the row number, which every index has."""
    rows: list[Any] = connection.execute(f"PRAGMA table_info({table.name})").fetchall()
    keys = [(name, kind) for _, name, kind, _, _, place in rows if place]
    return {f'"{name}"' for name, kind in keys if table.number and len(keys) == 1 and kind == "INTEGER"}


def read(connection: apsw.Connection, table: Table) -> tuple[Iterator[Row], Callable[[], bool]]:
    """Yield the readable rows. Afterwards, tell whether these are all."""
    gaps: list[int] = []
    rows = _numbered(connection, table, gaps) if table.number else _from_both_ends(connection, table, gaps)
    return rows, lambda: not gaps


def count(connection: apsw.Connection, name: str) -> int | None:
    """Count the rows that a table has or had, from any readable index; None if none can be read."""
    indexes = [row[1] for row in connection.execute(f"PRAGMA index_list({name})") if not row[4]]
    counts: list[int] = []
    for way in ("NOT INDEXED", *(f'INDEXED BY "{index}"' for index in indexes)):
        try:
            counts.append(int(str(connection.execute(f"SELECT count(*) FROM {name} {way}").get)))
        except FOREIGN:
            continue
    return max(counts, default=None)


def _numbered(connection: apsw.Connection, table: Table, gaps: list[int]) -> Iterator[Row]:
    start: int | None = 0
    while start is not None:
        try:
            for number, *row in table.rows(connection, "WHERE rowid >= ? ORDER BY rowid", start):
                yield tuple(row)
                start = number + 1
        except FOREIGN:
            gaps.append(start)
            start = _next(connection, table, start)
        else:
            start = None


def _next(connection: apsw.Connection, table: Table, start: int) -> int | None:
    """Return where rows are readable again; None if nowhere."""
    for number in range(start + 1, start + LINEAR):
        if _readable(connection, table, number):
            return number
    before, step = start + LINEAR, LINEAR
    while not _readable(connection, table, before + step):
        before, step = before + step, step * 2
        if step > FARTHEST:
            return None
    after = before + step
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (before, middle) if _readable(connection, table, middle) else (middle, after)
    return after


def _readable(connection: apsw.Connection, table: Table, number: int) -> bool:
    try:
        table.rows(connection, "WHERE rowid >= ? ORDER BY rowid LIMIT 1", number).fetchall()
    except FOREIGN:
        return False
    return True


def _from_both_ends(connection: apsw.Connection, table: Table, gaps: list[int]) -> Iterator[Row]:
    """Read up to the damage from both ends: with words as keys there is no next one to try."""
    width = len(table.columns)
    for direction in ("ASC", "DESC"):
        order = ", ".join(f"{column} {direction}" for column in table.key.split(", "))
        try:
            for row in table.rows(connection, f"ORDER BY {order}"):
                yield row[-width:]
        except FOREIGN:
            gaps.append(0)
        else:
            return


def insertion(table: Table, *, over: bool = False) -> str:
    listed = ", ".join(f'"{column}"' for column in table.columns)
    places = ", ".join("?" * len(table.columns))
    return f"INSERT OR {'REPLACE' if over else 'IGNORE'} INTO {table.name} ({listed}) VALUES ({places})"


def put(target: apsw.Connection, statement: str, row: Row) -> bool:
    """Insert a row. Tell whether it is there now; it may be refused: a word where a number belongs, or a
    duplicate key."""
    try:
        target.execute(statement, row)
    except FOREIGN:
        return False
    return target.changes() > 0


def find_contents(data: bytes | mmap, wanted: Collection[tuple[int, str]]) -> Iterator[Found]:
    """Yield rows of id, digest and body from the pages of the whole file, for when the tree that leads to
    them is broken. A row counts only if its number and digest are wanted, and its bytes have that digest, so
    every result is what was written, wherever it was found."""
    for start in range(0, len(data) - PAGE + 1, PAGE):
        if data[start] == LEAF:
            yield from _rows_on(data, start, wanted)


def _rows_on(data: bytes | mmap, start: int, wanted: Collection[tuple[int, str]]) -> Iterator[Found]:
    count = int.from_bytes(data[start + 3 : start + 5])
    for place in range(start + 8, min(start + 8 + 2 * count, start + PAGE - 1), 2):
        try:
            row = _row(data, start, start + int.from_bytes(data[place : place + 2]))
        except (IndexError, ValueError):
            continue  # a damaged row, or one of another table
        if row is not None and row[:2] in wanted and digest(row[2]) == row[1]:
            yield row


def _row(data: bytes | mmap, page: int, at: int) -> Found | None:
    size, at = read_number(data, at)
    id, at = read_number(data, at)
    payload = _payload(data, page, at, size)
    width, place = read_number(payload, 0)
    kinds = []
    while place < width:
        kind, place = read_number(payload, place)
        kinds.append(kind)
    if len(kinds) != 3 or kinds[0] != NULL or kinds[1] % 2 != 1 or kinds[2] % 2 or min(kinds[1:]) < BLOB:
        return None
    end = width + (kinds[1] - TEXT) // 2
    return id, payload[width:end].decode(), payload[end : end + (kinds[2] - BLOB) // 2]


def _payload(data: bytes | mmap, page: int, at: int, size: int) -> bytes:
    """Return the bytes of a row, including those on further pages."""
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


def read_number(data: bytes | mmap, at: int) -> tuple[int, int]:
    """Return a number of up to nine bytes, seven bits in all but the last, and where it ends."""
    value = 0
    for place in range(at, at + 8):
        value = (value << 7) | (data[place] & 0x7F)
        if data[place] < 0x80:
            return value, place + 1
    return (value << 8) | data[at + 8], at + 9


def patch_schema(path: Path, copy: Path) -> Path | None:
    """Return a copy of the file with the first pages of a new database, which say where its tables begin;
    None if its tables are elsewhere. All files of one version of Hone have their tables at the same pages,
    and so have all compacted files; this function checks whether this one has."""
    return _patch(path, copy, compacted=False) or _patch(path, copy, compacted=True)


def _patch(path: Path, copy: Path, *, compacted: bool) -> Path | None:
    pages, new = _new_file(copy.with_name(f"{copy.name}.fresh-{compacted:d}"), compacted=compacted)
    made = copy.with_name(f"{copy.name}.patched-{compacted:d}")
    create(made)
    shutil.copyfile(path, made)
    with made.open("r+b") as file:
        beginning = file.read(len(new))
        size = made.stat().st_size
        if size < len(new) or not _alike(
            beginning, new, [page for page, schema in pages.items() if not schema]
        ):
            return None
        for page in (page for page, schema in pages.items() if schema):
            file.seek((page - 1) * PAGE)
            file.write(_new_page(new, page, size))
    return made


def _new_file(path: Path, *, compacted: bool) -> tuple[dict[int, bool], bytes]:
    """Return the pages of a new database, with whether they hold its schema, and its bytes."""
    create(path)
    with closing(connect(path, PATIENCE)) as connection:
        migrate(connection, path, PATIENCE)
        if compacted:
            connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        pages = {int(str(number)): bool(schema) for number, schema in connection.execute(PAGES)}
    return pages, path.read_bytes()


def _alike(old: bytes, new: bytes, pages: list[int]) -> bool:
    """Tell whether nearly all of these pages belong to a table here if they do there."""
    kinds = [tuple(data[(page - 1) * PAGE] in TABLE for data in (old, new)) for page in pages]
    known = [data in (*TABLE, *INDEX) for data in (old[(page - 1) * PAGE] for page in pages)]
    alike = sum(one == other and sure for (one, other), sure in zip(kinds, known, strict=True))
    return alike * 10 >= len(pages) * 9


def _new_page(new: bytes, page: int, size: int) -> bytes:
    data = bytearray(new[(page - 1) * PAGE : page * PAGE])
    if page == 1:
        data[COUNT] = (size // PAGE).to_bytes(4)
        data[FREE] = bytes(8)
    return bytes(data)
