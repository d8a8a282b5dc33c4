"""Vectors of contents in SQLite, made in the background: find missing ones, and store them.

An embedder's contents have no gap: it starts with the latest, then moves up to new ones, and down to the
oldest. New contents get higher numbers than all others, and a deleted content deletes its vector. So an
embedder's first and last vector tell what is left, and no list is needed.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import apsw

from hone.core.embedding import Coverage, Unembedded
from hone.core.messages import decode
from hone.core.recall import said
from hone.stores.database import Store, reads, writes
from hone.stores.vector_codes import seal

LENGTH = 2_000
"""The most characters of a message to embed: small models read no more."""
CACHED = 20_000
"""The most short texts whose vectors are kept."""

NUMBER = "SELECT id FROM embedders WHERE name = ?"
NAME = "INSERT OR IGNORE INTO embedders (name, adopted) VALUES (?, 0)"
ADOPTED = "SELECT id, name FROM embedders WHERE adopted ORDER BY adopted DESC LIMIT 1"
ADOPT = """
INSERT INTO embedders (name, adopted) VALUES (?, (SELECT coalesce(max(adopted), 0) + 1 FROM embedders))
ON CONFLICT (name) DO UPDATE SET adopted = excluded.adopted
"""
RUN = """
SELECT (SELECT min(content) FROM vectors WHERE embedder = ?1),
    (SELECT max(content) FROM vectors WHERE embedder = ?1)
"""
ABOVE = "SELECT id, digest, body FROM contents WHERE id > ? ORDER BY id LIMIT ?"
BELOW = "SELECT id, digest, body FROM contents WHERE id < ? ORDER BY id DESC LIMIT ?"
PUT = """
INSERT OR REPLACE INTO vectors (content, embedder, vector)
SELECT id, ?2, ?4 FROM contents WHERE id = ?1 AND digest = ?3
"""
GAP = "SELECT EXISTS (SELECT 1 FROM contents WHERE id > ? AND id < ?)"
MADE = "SELECT count(*) FROM vectors WHERE embedder = ?"
ALL = "SELECT count(*) FROM contents"
TOP = (1 << 63) - 1

FOUND = "SELECT vector FROM meanings WHERE embedder = ? AND digest = ?"
CACHE = "INSERT OR REPLACE INTO meanings (embedder, digest, vector) VALUES (?, ?, ?)"
SHRINK = f"DELETE FROM meanings WHERE id <= (SELECT max(id) FROM meanings) - {CACHED} OR embedder <> ?"


def number(connection: apsw.Connection, embedder: str) -> int | None:
    """Return the number of an embedder, None if it has no vectors yet."""
    found: int | None = connection.execute(NUMBER, (embedder,)).get
    return found


def _adopted(connection: apsw.Connection, embedder: str) -> int | None:
    """Return the number of an embedder if it is the one that may add vectors."""
    row: Any = connection.execute(ADOPTED).fetchone()
    return int(row[0]) if row is not None and row[1] == embedder else None


def _is_adopted(connection: apsw.Connection, embedder: str) -> bool:
    return _adopted(connection, embedder) is not None


def _adopt(connection: apsw.Connection, embedder: str) -> None:
    if not _is_adopted(connection, embedder):
        connection.execute(ADOPT, (embedder,))


def _missing(connection: apsw.Connection, embedder: str, limit: int) -> tuple[Unembedded, ...]:
    id = _adopted(connection, embedder)
    if id is None:
        return ()
    first, last = connection.execute(RUN, (id,)).get
    above = _rows(connection, ABOVE, last, limit) if last is not None else []
    rows = above or _rows(connection, BELOW, TOP if first is None else first, limit)
    return tuple(Unembedded(id, digest, read_text(body)) for id, digest, body in rows)


def _rows(connection: apsw.Connection, statement: str, start: int, limit: int) -> list[Any]:
    return connection.execute(statement, (start, limit)).fetchall()


def read_text(body: bytes) -> str:
    """Return the text to embed; empty if there is none, or if the row is damaged, which opening its session
    will report."""
    try:
        return said(decode(body))[:LENGTH].strip()
    except (KeyError, TypeError, ValueError):
        return ""


def _put(connection: apsw.Connection, embedder: str, made: Sequence[tuple[Unembedded, bytes]]) -> None:
    id = _adopted(connection, embedder)
    if id is not None and made and _continues(connection, id, [each.content for each, _ in made]):
        connection.executemany(PUT, [(each.content, id, each.digest, vector) for each, vector in made])


def _continues(connection: apsw.Connection, id: int, numbers: Sequence[int]) -> bool:
    """Tell whether these leave no gap: contents and vectors may have been deleted since they were read."""
    first, last = connection.execute(RUN, (id,)).get
    if first is None:
        return True
    low, high = min(numbers), max(numbers)
    return not connection.execute(GAP, (last, low) if low > last else (high, first)).get


def _tidy(connection: apsw.Connection, embedder: str) -> bool:
    id = _adopted(connection, embedder)
    if id is None:
        return False
    first, last = connection.execute(RUN, (id,)).get
    return first is not None and seal(connection, id, first, last)


def _coverage(connection: apsw.Connection, embedder: str) -> Coverage:
    made = int(connection.execute(MADE, (number(connection, embedder),)).get)
    return Coverage(made, int(connection.execute(ALL).get) - made)


def _cached(connection: apsw.Connection, embedder: str, texts: Sequence[str]) -> dict[str, bytes]:
    id = number(connection, embedder)
    found = ((text, connection.execute(FOUND, (id, make_digest(text))).get) for text in texts)
    return {text: vector for text, vector in found if vector is not None}


def _cache(connection: apsw.Connection, embedder: str, made: Mapping[str, bytes]) -> None:
    connection.execute(NAME, (embedder,))
    id = number(connection, embedder)
    connection.executemany(CACHE, [(id, make_digest(text), vector) for text, vector in made.items()])
    connection.execute(SHRINK, (id,))


def make_digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


class SqliteVectors(Store):
    """Vectors in SQLite. None of this is written to memory in place of a read-only file."""

    adopt = writes(_adopt, lasting=True)
    is_adopted = reads(_is_adopted)
    missing = reads(_missing)
    put = writes(_put, lasting=True)
    tidy = writes(_tidy, lasting=True)
    coverage = reads(_coverage)
    cached = reads(_cached)
    cache = writes(_cache, lasting=True)
