"""The full-text index of all messages in SQLite: one row per content, updated with the contents."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import apsw

from hone.core.messages import Message, decode
from hone.core.recall import said
from hone.stores.words import LETTERS

BATCH = 1_000
"""Older contents that are added in one go."""

# In the memory of the writer: what its transaction has brought. A piece that is undone takes its own back.
PREPARE = "CREATE TEMP TABLE fresh (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT"
UPTO = "SELECT upto FROM backlog"
PUT = "INSERT INTO temp.fresh (id, text) VALUES (?, ?)"
GATHERED = "SELECT EXISTS (SELECT 1 FROM temp.fresh)"
SETTLE = "INSERT INTO passage_words (rowid, text) SELECT id, text FROM temp.fresh ORDER BY id"
EMPTY = "DELETE FROM temp.fresh"
DROP = "INSERT INTO passage_words (passage_words, rowid, text) VALUES ('delete', ?, ?)"
OLDER = f"SELECT id, body FROM contents WHERE id <= ({UPTO}) ORDER BY id DESC LIMIT ?"
WAITING = f"SELECT count(*) FROM contents WHERE id <= ({UPTO})"

Row = tuple[int, str]
Fresh = tuple[int, Message]
"""A content that is new: its id and what it is."""


def prepare(connection: apsw.Connection) -> None:
    """For a connection that writes."""
    connection.execute(PREPARE)


def put(connection: apsw.Connection, fresh: Iterable[Fresh]) -> None:
    """What is new is gathered until the transaction ends: FTS5 writes out what it has whenever another
    statement comes, and many small pieces cost more than one."""
    connection.executemany(PUT, _rows(connection, fresh))


def settle(connection: apsw.Connection) -> None:
    """The end of a transaction: what was gathered goes into the index."""
    if connection.execute(GATHERED).get:
        connection.execute(SETTLE)
        connection.execute(EMPTY)


def drop(connection: apsw.Connection, gone: Iterable[tuple[int, bytes]]) -> None:
    """A content goes out of the index with the very words it came in with."""
    settle(connection)
    whole = ((id, _whole(body)) for id, body in gone)
    rows = _rows(connection, ((id, message) for id, message in whole if message is not None))
    connection.executemany(DROP, rows)


def fill(connection: apsw.Connection, limit: int = BATCH) -> int:
    """Adds some of the contents from before there was an index; gives how many there were to add."""
    rows: list[Any] = connection.execute(OLDER, (limit,)).fetchall()
    connection.execute("UPDATE backlog SET upto = ?", (rows[-1][0] - 1 if rows else 0,))
    read = ((id, _whole(body)) for id, body in rows)
    put(connection, ((id, message) for id, message in read if message is not None))
    return len(rows)


def waiting(connection: apsw.Connection) -> int:
    return int(connection.execute(WAITING).get)


def expected(connection: apsw.Connection) -> Iterator[Row]:
    """What the index should hold, from the contents."""
    for id, body in connection.execute(f"SELECT id, body FROM contents WHERE id > ({UPTO}) ORDER BY id"):
        message = _whole(body)
        text = said(message) if message is not None else ""
        if text:
            yield id, indexed(text)


def _rows(connection: apsw.Connection, contents: Iterable[Fresh]) -> list[Row]:
    """What the index holds of contents, apart from those that are not in it yet."""
    upto = connection.execute(UPTO).get
    texts = ((id, said(message)) for id, message in contents if id > upto)
    return [(id, indexed(text)) for id, text in texts if text]


def _whole(body: bytes) -> Message | None:
    """None for a damaged one, which can be deleted but not read."""
    try:
        return decode(body)
    except (KeyError, TypeError, ValueError):
        return None


def indexed(text: str) -> str:
    """The text as it is indexed: pairs of letters where a script does not part its words. The last letter of
    a run stands alone, so that each letter begins a word."""
    return (
        text if text.isascii() else LETTERS.sub(lambda run: f" {' '.join(pairs(run[0]))} {run[0][-1]} ", text)
    )


def pairs(run: str) -> Sequence[str]:
    return [one + two for one, two in pairwise(run)]
