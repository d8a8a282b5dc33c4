"""Read a database that cannot be written: in place if SQLite can do that, or else from a private copy.

SQLite reads a database with a log only through the index next to it (`-shm`). If that is missing and cannot
be created, the files are copied to a place where it can. Messages that are only in the log are seen either
way.
"""

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import apsw

from hone.core.errors import StoreError
from hone.stores.database import MEMORY, READING, connect, migrate, version

TRIES = 5
"""How many copies to try of a database that another process keeps writing."""
FILES = ("", "-wal", "-journal")
Opened = tuple[apsw.Connection, Callable[[], apsw.Connection] | None]


def open_readonly(path: Path, patience: float, scripts: Sequence[Path]) -> Opened:
    """Return a connection, and how to open more of them; None if this one has a copy in memory. A database of
    an older Hone is migrated in the copy."""
    reconnect = partial(_connect, path, patience)
    try:
        first = reconnect()
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        memory = _copy_files(path, patience)
    else:
        if _is_current(first, path, scripts):
            return first, reconnect
        memory = copy_to_memory(first)
    try:
        migrate(memory, path, patience, scripts)
    except (apsw.Error, StoreError):
        memory.close()
        raise
    return memory, None


def copy_to_memory(source: apsw.Connection) -> apsw.Connection:
    """Close the source and return a complete copy, as of one moment."""
    memory = connect(MEMORY, 0)
    try:
        with closing(source), memory.backup("main", source, "main") as copying:
            copying.step()
    except apsw.Error:
        memory.close()
        raise
    return memory


def _connect(path: Path, patience: float) -> apsw.Connection:
    """Connect. Raises CantOpenError or ReadOnlyError if the log cannot be read in this place. Nothing is
    created here: a reader's file could keep the owner from writing."""
    if not all(Path(f"{path}{suffix}").exists() for suffix in ("-wal", "-shm")):
        raise apsw.CantOpenError(f"{path} has no log")
    connection = apsw.Connection(
        f"file:{quote(os.fsencode(path))}?mode=ro", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    )
    try:
        connection.set_busy_timeout(int(patience * 1000))
        connection.pragma("cell_size_check", True)
        connection.pragma("cache_size", -READING)
        connection.pragma("user_version")  # nothing is opened before the first question
    except apsw.Error:
        connection.close()
        raise
    return connection


def _is_current(connection: apsw.Connection, path: Path, scripts: Sequence[Path]) -> bool:
    try:
        return version(connection, path, len(scripts)) == len(scripts)
    except (apsw.Error, StoreError):
        connection.close()
        raise


def _copy_files(path: Path, patience: float) -> apsw.Connection:
    """Return a copy of the database with its log, in memory, by way of a private folder."""
    with TemporaryDirectory(prefix="hone-") as folder:  # only this user can access it
        for _ in range(TRIES):
            before = _state(path)
            for suffix in FILES:
                _copy(Path(f"{path}{suffix}"), Path(folder, f"copy.db{suffix}"))
            if _state(path) == before:
                return copy_to_memory(connect(Path(folder, "copy.db"), patience))
    raise StoreError(f"Another process keeps writing to {path}; it could not be read. Try again.")


def _copy(source: Path, target: Path) -> None:
    try:
        shutil.copyfile(source, target)
    except FileNotFoundError:
        target.unlink(missing_ok=True)


def _state(path: Path) -> list[tuple[int, int, int] | None]:
    """Return values that change when another process writes."""
    states: list[tuple[int, int, int] | None] = []
    for suffix in FILES:
        try:
            found = Path(f"{path}{suffix}").stat()
        except FileNotFoundError:
            states.append(None)
        else:
            states.append((found.st_ino, found.st_size, found.st_mtime_ns))
    return states
