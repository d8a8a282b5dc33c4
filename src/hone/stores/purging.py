"""Remove what deleted rows left in a database's files: in its log, and in unused parts of its pages."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import apsw

from hone.core.erasure import Erasure, Scrubber
from hone.files.atomic import open_file, sync
from hone.files.erasing import tally
from hone.stores.database import PATIENCE, connect, plainly

BUSY = "{name} is in use by another process, and its log still holds old pages. Run this command again."


async def purge(path: Path, what: Erasure) -> list[str]:
    """Empty the log of a database if it contains the words, and rewrite its file if that does. Do both if
    rows were deleted whose words are unknown. Return what the owner should know, a sentence each. Raises
    StoreError."""
    return await asyncio.to_thread(_purge, path, what)


def _purge(path: Path, what: Erasure) -> list[str]:
    scrub, log = Scrubber(what.words), path.with_name(f"{path.name}-wal")
    if not path.exists() or not (_is_wide(what) or tally(path, scrub) or tally(log, scrub)):
        return []
    with plainly(path):
        connection = connect(path, PATIENCE)
        try:
            connection.pragma("secure_delete", True)
            connection.pragma("temp_store", "memory")
            left = _empty_log(connection, path)
            if not left and (_is_wide(what) or tally(path, scrub)):
                connection.execute("VACUUM")
                left = _empty_log(connection, path)
        finally:
            connection.close()
    return left


def _is_wide(what: Erasure) -> bool:
    """Tell whether more is erased than the words, or whether the words are no longer known."""
    return not what.words or bool(what.sessions or what.changes or what.contents or what.keys)


def _empty_log(connection: apsw.Connection, path: Path) -> list[str]:
    try:
        busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").get
    except apsw.BusyError:
        busy = 1
    # SQLite holds no lock on its log, so opening and closing it next to it is safe.
    with suppress(FileNotFoundError), open_file(path.with_name(f"{path.name}-wal")) as log:
        sync(log)
    return [BUSY.format(name=path.name)] if busy else []


async def search(path: Path, work: Callable[[apsw.Connection], int]) -> int:
    """Count rows in a database that may not exist. Raises StoreError."""

    def count() -> int:
        if not path.exists():
            return 0
        with plainly(path):
            connection = connect(path, PATIENCE)
            try:
                return work(connection)
            finally:
                connection.close()

    return await asyncio.to_thread(count)
