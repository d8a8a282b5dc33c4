"""Rows about one machine's files in PostgreSQL, for statements that SQLite understands, too."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from psycopg import Cursor

from hone.core.machine_rows import RowConnection
from hone.stores.postgres.database import PostgresDatabase, Rows

T = TypeVar("T")
EVERYWHERE = "*"
OWN = re.compile(r"\b(blobs|changes|rewinds)\b")
"""Tables of a home's checkpoints. Views with these names show the rows of one machine."""
MACHINE = "SELECT set_config('hone.machine', %(machine)s, true)"
# Numbered apart from the gate of an owner (1), trees (2) and claims (3).
ALONE = "SELECT pg_advisory_xact_lock(hashtextextended(%(owner)s || ' ' || %(machine)s, 4))"


class PostgresMachineRows:
    """The rows of one machine, or of all machines of an owner."""

    def __init__(self, database: PostgresDatabase, machine: str, *, everywhere: bool = False) -> None:
        self._database = database
        self._machine = EVERYWHERE if everywhere else machine

    async def read(self, work: Callable[[RowConnection], T]) -> T:
        def perform(rows: Rows) -> T:
            rows.execute(MACHINE, machine=self._machine)
            return work(TranslatedRows(rows))

        return await self._database.read(perform)

    async def write(self, work: Callable[[RowConnection], T]) -> T:
        """Run the work. Transactions of one machine run one after another, so ids are in the order of
        changes."""

        def perform(rows: Rows) -> T:
            rows.execute(MACHINE, machine=self._machine)
            rows.execute(ALONE, machine=self._machine)
            return work(TranslatedRows(rows))

        return await self._database.write(perform, "checkpoints")


class TranslatedRows:
    """A connection with SQLite's interface."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._changed = 0

    def execute(self, query: str, values: Sequence[Any] = (), /) -> "TranslatedCursor":
        if query.startswith("PRAGMA"):  # the server frees the space
            return TranslatedCursor(None)
        named = {f"v{place}": value for place, value in enumerate(values)}
        cursor = self._rows.execute(translate(query), **named)
        self._changed = cursor.rowcount
        return TranslatedCursor(cursor)

    def executemany(self, query: str, values: Iterable[Sequence[Any]], /) -> None:
        for each in values:
            self.execute(query, each)

    def changes(self) -> int:
        return self._changed


class TranslatedCursor:
    """A cursor with SQLite's interface."""

    def __init__(self, cursor: Cursor[Any] | None) -> None:
        self._cursor = cursor

    @property
    def get(self) -> Any:
        row = self.fetchone()
        return row[0] if row is not None and len(row) == 1 else row

    def fetchone(self) -> Any:
        return self._cursor.fetchone() if self._cursor else None

    def fetchall(self) -> list[Any]:
        return list(self)

    def __iter__(self) -> Iterator[Any]:
        yield from self._cursor or ()


def translate(query: str) -> str:
    """Use PostgreSQL's names for the views and the values."""
    places = iter(range(query.count("?")))
    return OWN.sub(r"own_\1", re.sub(r"\?", lambda _: f"%(v{next(places)})s", query))
