"""What can still be read of a damaged database, row by row, from its tables and from the indexes that hold
the same rows once more. It knows nothing about what the rows mean."""

from collections.abc import Callable, Iterator
from typing import Any

import apsw

from hone.core.value import dataclass
from hone.stores.writer import FOREIGN

LINEAR = 10_000
"""Numbers that are tried one by one where rows cannot be read, before the steps get larger."""
FARTHEST = 1 << 40

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """`key` is what its rows are in the order of; `number` says that this is a number, so that the next row
    after a gap can be looked for."""

    name: str
    columns: tuple[str, ...]
    key: str
    number: bool
    index: str = ""
    """Where the rows are read from, if not from the table."""

    def rows(self, connection: apsw.Connection, end: str, *values: int) -> apsw.Cursor:
        listed = ", ".join(f'"{column}"' for column in self.columns)
        way = f'INDEXED BY "{self.index}"' if self.index else "NOT INDEXED"
        return connection.execute(f"SELECT {self.key}, {listed} FROM {self.name} {way} {end}", values)


def table(connection: apsw.Connection, name: str) -> Table:
    """As the schema has it, which must be readable."""
    columns = [(row[1], row[5]) for row in connection.execute(f"PRAGMA table_info({name})")]
    sql = str(connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).get)
    numbered = "WITHOUT ROWID" not in sql
    key = "rowid" if numbered else ", ".join(f'"{name}"' for name, place in columns if place)
    return Table(name, tuple(name for name, _ in columns), key, numbered)


def twin(connection: apsw.Connection, table: Table) -> Table | None:
    """The same rows as an index has them, if there is one that has all of their columns."""
    for _, index, *_ in connection.execute(f"PRAGMA index_list({table.name})").fetchall():
        parts: list[Any] = connection.execute(f'PRAGMA index_xinfo("{index}")').fetchall()
        held = [f'"{name}"' for _, _, name, *_ in parts if name is not None]
        if {f'"{name}"' for name in table.columns} <= {*held, *_alias(connection, table)}:
            return Table(table.name, table.columns, ", ".join(held), False, str(index))
    return None


def _alias(connection: apsw.Connection, table: Table) -> set[str]:
    """The column that is another name for the number of a row, which every index has."""
    rows: list[Any] = connection.execute(f"PRAGMA table_info({table.name})").fetchall()
    keys = [(name, kind) for _, name, kind, _, _, place in rows if place]
    return {f'"{name}"' for name, kind in keys if table.number and len(keys) == 1 and kind == "INTEGER"}


def read(connection: apsw.Connection, table: Table) -> tuple[Iterator[Row], Callable[[], bool]]:
    """The rows that can be read, and, once they were, whether these are all."""
    gaps: list[int] = []
    rows = _numbered(connection, table, gaps) if table.number else _from_both_ends(connection, table, gaps)
    return rows, lambda: not gaps


def count(connection: apsw.Connection, name: str) -> int | None:
    """How many rows a table has or had, from whichever of its indexes can be read; None if none can."""
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
    """From where on rows can be read again; None if nowhere."""
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
    """Up to the damage from the front and from the back: words have no next one to look for."""
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
    """Whether it is there now; it may be refused: a word where a number belongs, or a key twice."""
    try:
        target.execute(statement, row)
    except FOREIGN:
        return False
    return target.changes() > 0
