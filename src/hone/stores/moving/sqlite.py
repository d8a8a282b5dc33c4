"""SQLite as one end of a move: an existing file to read, or a new one that gets its name when it is
complete."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from hone.core.errors import StoreError
from hone.files.atomic import open_file, sync
from hone.stores import passages
from hone.stores.database import PATIENCE, create, migrate, plainly
from hone.stores.moving.documents import DocumentFiles
from hone.stores.moving.fingerprints import OwnerRecord
from hone.stores.moving.tables import COUNTERS, MovedTable, Row

SUFFIXES = ("", "-wal", "-shm", "-journal")
LAST = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = ?), 0)"
MIRROR = "SELECT home, backend FROM mirror"
INDEX_LATER = (
    "UPDATE backlog SET (upto, done) = (SELECT coalesce(max(id), 0), coalesce(max(id), 0) FROM contents)"
)

MoveProgress = Callable[[str, int, int], None]
"""Reports the table, the number of rows done, and the total."""


class SqliteEnd:
    """The data of a home in SQLite, over an exclusive connection, and documents as files of a folder."""

    def __init__(self, connection: apsw.Connection, home: Path) -> None:
        self._connection = connection
        self._files = DocumentFiles(home)

    def count(self, table: MovedTable) -> int:
        if table.files:
            return self._files.count()
        return int(self._connection.execute(f"SELECT count(*) FROM {table.in_sqlite}").get)

    def rows(self, table: MovedTable, *, by_use: bool = False) -> Iterator[Row]:
        if table.files:
            yield from self._files.rows()
            return
        order = "id" if by_use and table.used_in else ", ".join(f"t.{each}" for each in table.key)
        columns = ", ".join(_read(table, column) for column in table.columns)
        yield from self._connection.execute(f"SELECT {columns} FROM {table.in_sqlite} AS t ORDER BY {order}")

    def put(self, table: MovedTable, rows: Iterable[Row]) -> None:
        if table.files:
            self._files.put(rows)
            return
        names, values = ", ".join(table.columns), ", ".join(_write(table, column) for column in table.columns)
        self._connection.executemany(f"INSERT INTO {table.in_sqlite} ({names}) VALUES ({values})", rows)

    def read_identity(self) -> OwnerRecord:
        home, backend = self._connection.execute(MIRROR).get
        return OwnerRecord(self._last("changes"), self._last("jobs"), self._last("rounds"), home, backend)

    def put_identity(self, identity: OwnerRecord, nodes: int) -> None:
        for table in COUNTERS:
            self._set_last(table, getattr(identity, table))
        self._set_last("nodes", nodes)
        self._connection.execute("UPDATE mirror SET home = ?, backend = ?", (identity.home, identity.backend))

    def read_nodes(self) -> int:
        return self._last("nodes")

    def is_empty(self) -> bool:
        """Tell whether nothing was ever said or learned here."""
        return not any(self._last(table) for table in (*COUNTERS, "nodes"))

    def index(self, report: MoveProgress) -> None:
        """Make the search index of all messages."""
        connection = self._connection
        connection.execute(INDEX_LATER)
        passages.prepare(connection)
        total, done = passages.waiting(connection), 0
        while made := passages.fill(connection):
            done += made
            report("indexing messages", done, total)

    def check(self, path: Path) -> None:
        """Raise StoreError if a row names one that does not exist."""
        if self._connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
            raise StoreError(f"{path} would have rows that name others that are gone; nothing was moved.")

    def _last(self, table: str) -> int:
        return int(self._connection.execute(LAST, (table,)).get)

    def _set_last(self, table: str, last: int) -> None:
        self._connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
        self._connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, last))


def _read(table: MovedTable, column: str) -> str:
    if linked := table.links.get(column):
        return f"(SELECT digest FROM {linked} WHERE id = t.{column})"
    return f"t.{column}"


def _write(table: MovedTable, column: str) -> str:
    linked = table.links.get(column)
    return f"(SELECT id FROM {linked} WHERE digest = ?)" if linked else "?"


@contextmanager
def new_file(path: Path, documents: Path) -> Iterator[SqliteEnd]:
    """Create a database file that nobody else knows yet, and a folder with the documents. After this both are
    completely on disk; if anything fails, the file is removed."""
    remove(path)
    try:
        with plainly(path):
            create(path)
            with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
                migrate(connection, path, PATIENCE)
                # Nobody reads it before it is complete, so it needs no rollback.
                connection.pragma("journal_mode", "off")
                connection.pragma("synchronous", "off")
                connection.pragma("temp_store", "memory")
                connection.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 0)
                connection.execute("BEGIN")
                yield SqliteEnd(connection, documents)
                connection.execute("COMMIT")
                connection.pragma("journal_mode", "wal")
            with open_file(path) as file:
                sync(file)
    except BaseException:
        remove(path)
        raise


def remove(path: Path) -> None:
    """Remove a database and its log files."""
    for suffix in SUFFIXES:
        path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)


def put_aside(path: Path, name: str) -> None:
    """Rename a database that nobody uses, its log first: no log may meet another database."""
    for suffix in reversed(SUFFIXES):
        old = path.with_name(f"{path.name}{suffix}")
        if old.exists():
            os.rename(old, path.with_name(f"{name}{suffix}"))
