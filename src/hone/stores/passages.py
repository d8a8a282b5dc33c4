"""The index of what was said, in SQLite: one row for each content, brought along with the contents."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Any

import apsw

from hone.core.messages import Message, decode
from hone.core.recall import said
from hone.stores.words import LETTERS

BATCH = 1_000
"""Older contents that are added in one go."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST = EPOCH.date()

PUT = "INSERT INTO passages (id, day) VALUES (?, ?)"
PUT_WORDS = "INSERT INTO passage_words (rowid, text, about) VALUES (?, ?, ?)"
DROP = "DELETE FROM passages WHERE id = ? RETURNING day"
DROP_WORDS = "INSERT INTO passage_words (passage_words, rowid, text, about) VALUES ('delete', ?, ?, ?)"
OLDER = """
SELECT id, body, (SELECT min(at) FROM nodes WHERE content = contents.id)
FROM contents WHERE id <= (SELECT upto FROM backlog) AND id NOT IN (SELECT id FROM passages)
ORDER BY id DESC LIMIT ?
"""
WAITING = "SELECT count(*) FROM contents WHERE id <= (SELECT upto FROM backlog)"

Fresh = tuple[int, Message, datetime]
"""A content that is new: its id, what it is, and when it was said."""


def put(connection: apsw.Connection, fresh: Iterable[Fresh]) -> None:
    """The words go in together: FTS5 writes out what it has gathered whenever another statement comes."""
    days, rows = [], []
    for id, message, at in fresh:
        text = said(message)
        if text:
            day = (at - EPOCH).days
            days.append((id, day))
            rows.append((id, indexed(text), about(message, day)))
    connection.executemany(PUT, days)
    connection.executemany(PUT_WORDS, rows)


def drop(connection: apsw.Connection, gone: Iterable[tuple[int, bytes]]) -> None:
    rows = []
    for id, body in gone:
        day = connection.execute(DROP, (id,)).get
        message = None if day is None else _whole(body)
        if message is not None:
            rows.append((id, indexed(said(message)), about(message, day)))
    connection.executemany(DROP_WORDS, rows)


def fill(connection: apsw.Connection, limit: int = BATCH) -> int:
    """Adds some of the contents from before there was an index; gives how many there were to add."""
    rows: list[Any] = connection.execute(OLDER, (limit,)).fetchall()
    read = ((id, _whole(body), EPOCH + timedelta(microseconds=at or 0)) for id, body, at in rows)
    put(connection, [(id, message, at) for id, message, at in read if message is not None])
    connection.execute("UPDATE backlog SET upto = ?", (rows[-1][0] - 1 if rows else 0,))
    return len(rows)


def waiting(connection: apsw.Connection) -> int:
    return int(connection.execute(WAITING).get)


def _whole(body: bytes) -> Message | None:
    """None for a damaged one, which can be deleted but not read."""
    try:
        return decode(body)
    except (KeyError, TypeError, ValueError):
        return None


def about(message: Message, day: int) -> str:
    """Who said it and when, in words that nobody writes."""
    return f"r{message.role} {_dated(day)}"


@lru_cache
def _dated(day: int) -> str:
    at = FIRST + timedelta(days=day)
    return f"{month(at)} {exact(at)}"


def month(day: date) -> str:
    return f"m{day:%Y%m}"


def exact(day: date) -> str:
    return f"d{day:%Y%m%d}"


def indexed(text: str) -> str:
    """The text as it is indexed: pairs of letters where a script does not part its words. The last letter of
    a run stands alone, so that each letter begins a word."""
    return (
        text if text.isascii() else LETTERS.sub(lambda run: f" {' '.join(pairs(run[0]))} {run[0][-1]} ", text)
    )


def pairs(run: str) -> Sequence[str]:
    return [one + two for one, two in pairwise(run)]
