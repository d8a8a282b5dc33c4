"""The full-text index of all messages in SQLite: one row per content.

A message is stored first and indexed later, in a quiet moment or before the next search, many at once: a turn
does not wait for it, and one transaction for many costs a fraction of one for each.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import apsw

from hone.core.messages import Message, decode
from hone.core.recall import said
from hone.stores.words import LETTERS

BATCH, FEW = 1_000, 500
"""How many contents to add at once, and how many may wait while there is other work."""

# In the writer's memory: FTS5 flushes whenever another statement comes.
PREPARE = "CREATE TEMP TABLE fresh (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT"
UPTO = "SELECT upto FROM backlog"
LAST = "SELECT max(upto, done) FROM backlog"
HELD = "SELECT upto, done FROM backlog"
GATHER = "INSERT INTO temp.fresh (id, text) VALUES (?, ?)"
SETTLE = "INSERT INTO passage_words (rowid, text) SELECT id, text FROM temp.fresh ORDER BY id"
EMPTY = "DELETE FROM temp.fresh"
DROP = "INSERT INTO passage_words (passage_words, rowid, text) VALUES ('delete', ?, ?)"
NEWER = f"SELECT id, body FROM contents WHERE id > ({LAST}) ORDER BY id LIMIT ?"
NEWER_NUMBERS = f"SELECT id FROM contents WHERE id > ({LAST}) ORDER BY id LIMIT ?"
OLDER = f"SELECT id, body FROM contents WHERE id <= ({UPTO}) ORDER BY id DESC LIMIT ?"
WAITING = f"SELECT count(*) FROM contents WHERE id > ({LAST}) OR id <= ({UPTO})"
ADVANCE = "UPDATE backlog SET done = ?"
RECEDE = "UPDATE backlog SET done = max(done, upto), upto = ?"
# The number of a removed content may be reused if it was the last.
LOWER = """
UPDATE backlog SET upto = min(upto, last), done = min(done, last)
FROM (SELECT coalesce(max(id), 0) AS last FROM contents) WHERE max(upto, done) > last
"""
EXPECTED = "SELECT id, body FROM contents, backlog WHERE id > upto AND id <= done ORDER BY id"

Row = tuple[int, str]


def prepare(connection: apsw.Connection) -> None:
    """Prepare a connection that writes."""
    connection.execute(PREPARE)


def fill(connection: apsw.Connection, limit: int = BATCH) -> int:
    """Add some contents that are not indexed, newer ones first. Return how many there were."""
    rows: list[Any] = connection.execute(NEWER, (limit,)).fetchall()
    if rows:
        connection.execute(ADVANCE, (rows[-1][0],))
    else:
        rows += connection.execute(OLDER, (limit,)).fetchall()
        connection.execute(RECEDE, (rows[-1][0] - 1 if rows else 0,))
    if rows:
        connection.executemany(GATHER, _texts(rows))
        connection.execute(SETTLE)
        connection.execute(EMPTY)
    return len(rows)


def keep_up(connection: apsw.Connection, quiet: bool) -> bool:
    """Add some of the new contents, if only a few then only in a quiet moment. Tell whether there may be
    more."""
    least = 1 if quiet else FEW
    found = connection.execute(NEWER_NUMBERS, (least,)).fetchall()
    return len(found) == least and fill(connection) == BATCH


def drop(connection: apsw.Connection, gone: Iterable[tuple[int, bytes]]) -> None:
    """Remove a content from the index, with the exact words it was added with."""
    upto, done = connection.execute(HELD).get
    connection.executemany(DROP, _texts((id, body) for id, body in gone if upto < id <= done))
    connection.execute(LOWER)


def waiting(connection: apsw.Connection) -> int:
    return int(connection.execute(WAITING).get)


def expected(connection: apsw.Connection) -> Iterator[Row]:
    """Yield what the index should hold, from the contents."""
    return _texts(connection.execute(EXPECTED))


def _texts(contents: Iterable[tuple[int, bytes]]) -> Iterator[Row]:
    """Yield what the index holds of contents."""
    for id, body in contents:
        message = _whole(body)
        text = said(message) if message is not None else ""
        if text:
            yield id, indexed(text)


def _whole(body: bytes) -> Message | None:
    """Return the message; None for a damaged one, which can be deleted but not read."""
    try:
        return decode(body)
    except (KeyError, TypeError, ValueError):
        return None


def indexed(text: str) -> str:
    """Return the text as indexed: pairs of letters in a script without spaces. The last letter of a run
    stands alone, so that each letter begins a word."""
    return (
        text if text.isascii() else LETTERS.sub(lambda run: f" {' '.join(pairs(run[0]))} {run[0][-1]} ", text)
    )


def pairs(run: str) -> Sequence[str]:
    return [one + two for one, two in pairwise(run)]
