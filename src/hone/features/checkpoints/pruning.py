"""Keep the store of checkpoints small: by age, by size, and session by session."""

from collections.abc import Collection
from typing import Any

from hone.core.errors import Corrupt
from hone.core.ids import SessionId
from hone.core.machine_rows import RowConnection
from hone.features.checkpoints.store import unpack

OLD = "SELECT DISTINCT session, turn FROM changes WHERE at < ?"
OLDEST = "SELECT session, turn FROM changes GROUP BY session, turn ORDER BY max(id)"
DROP = "DELETE FROM changes WHERE session = ? AND turn = ?"
ORPHANED = "DELETE FROM blobs WHERE NOT EXISTS (SELECT 1 FROM changes WHERE before_digest = blobs.digest)"
EMPTY = "DELETE FROM rewinds WHERE NOT EXISTS (SELECT 1 FROM changes WHERE rewind = rewinds.id)"
SIZE = "SELECT coalesce(sum(length(data)), 0) FROM blobs"
Turn = tuple[str, int]
PORTION = 20
"""One in this many turns is deleted before the size is checked again."""


def prune(connection: RowConnection, size: int, before: int, needed: Collection[SessionId]) -> int:
    """Delete turns older than `before` and, oldest first, those beyond `size` bytes; never those of `needed`
    sessions. Return how many bytes are left."""
    drop_old(connection, before, needed)
    rest = _oldest(connection, needed)
    while rest and int(connection.execute(SIZE).get) > size:
        some = 1 + len(rest) // PORTION
        connection.executemany(DROP, rest[:some])
        sweep(connection)
        rest = rest[some:]
    connection.execute("PRAGMA incremental_vacuum").fetchall()
    return int(connection.execute(SIZE).get)


def drop_old(connection: RowConnection, before: int, needed: Collection[SessionId]) -> None:
    """Delete turns older than `before`, except for those of `needed` sessions."""
    dropped = [turn for turn in connection.execute(OLD, (before,)).fetchall() if turn[0] not in needed]
    connection.executemany(DROP, dropped)
    sweep(connection)


def forget(connection: RowConnection, session: SessionId) -> int:
    """Delete everything about a session. Return how many changes that were."""
    connection.execute("DELETE FROM changes WHERE session = ?", (session,))
    count = connection.changes()
    sweep(connection)
    connection.execute("PRAGMA incremental_vacuum").fetchall()
    return count


def count_of(connection: RowConnection, session: SessionId) -> int:
    return int(connection.execute("SELECT count(*) FROM changes WHERE session = ?", (session,)).get)


def sweep(connection: RowConnection) -> None:
    """Delete contents and rewinds that no change needs."""
    connection.execute(ORPHANED)
    connection.execute(EMPTY)


def examine(connection: RowConnection) -> tuple[int, int, int]:
    """Return the number of changes, their bytes, and the number of damaged contents."""
    damaged = 0
    for name, data in connection.execute("SELECT digest, data FROM blobs"):
        try:
            unpack(name, data)
        except Corrupt:
            damaged += 1
    count = int(connection.execute("SELECT count(*) FROM changes").get)
    return count, int(connection.execute(SIZE).get), damaged


def _oldest(connection: RowConnection, needed: Collection[SessionId]) -> list[Turn]:
    rows: list[Any] = connection.execute(OLDEST).fetchall()
    return [row for row in rows if row[0] not in needed]
