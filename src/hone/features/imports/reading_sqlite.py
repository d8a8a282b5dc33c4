"""Read the database of another agent. It is never written."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import apsw

from hone.core.errors import Corrupt
from hone.core.visible import one_line

BROKEN = (apsw.Error, UnicodeDecodeError)
"""Errors of a damaged database."""
WAL = "-wal"
"""What SQLite appends to a database's name for data that is not in it yet."""


@contextmanager
def read_database(path: Path) -> Iterator[apsw.Connection]:
    """Open a database to read it. Raises Corrupt if it is none, or ends early."""
    try:
        connection = apsw.Connection(_address(path), flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            connection.set_busy_timeout(5_000)
            yield connection
        finally:
            connection.close()
    except BROKEN as error:
        raise Corrupt(f"{one_line(str(path), 200)} cannot be read: {error}.") from error


def _address(path: Path) -> str:
    """Return the address to open. A database that nobody has open is read without the files that SQLite would
    create next to it."""
    quiet = "" if path.with_name(f"{path.name}{WAL}").exists() else "&immutable=1"
    return f"file:{quote(str(path.absolute()))}?mode=ro{quiet}"


def find_columns(connection: apsw.Connection, table: str, wanted: tuple[str, ...]) -> list[str]:
    """Return which of our known columns this version of the database has."""
    there = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
    return [column for column in wanted if column in there]
