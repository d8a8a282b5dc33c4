"""Compare a full-text index with the texts it was built from.

SQLite's own check covers FTS5's internals. This one checks what only the texts can answer: whether search
finds each word in each place. It reads through `fts5vocab`, so it depends on no internal format of FTS5.
"""

from collections.abc import Iterable
from contextlib import closing, suppress
from typing import Any

import apsw

CREATED = "SELECT sql FROM sqlite_schema WHERE name = ?"
TERMS = "CREATE VIRTUAL TABLE temp.terms USING fts5vocab (main, {}, instance)"
# FTS5 cuts very long words, perhaps within a character, hence bytes.
PLACES = """
SELECT CAST(term AS BLOB), count(*), sum(doc), sum(doc * (offset + 1) % 1000003), sum(doc * doc % 1000003)
FROM temp.terms GROUP BY term
"""
FOUND = """
WITH words AS MATERIALIZED (SELECT DISTINCT term FROM temp.terms)
SELECT CAST(w.term AS BLOB), count(*), sum(doc), sum(doc * (offset + 1) % 1000003),
    sum(doc * doc % 1000003)
FROM words AS w CROSS JOIN temp.terms AS t WHERE t.term = w.term GROUP BY w.term
"""
TOTALS = "SELECT block FROM {}_data WHERE id = 1"
# What leads to a part of the index that is not there. FTS5 numbers the blocks of a part from its number up.
STRAY = """
SELECT EXISTS (SELECT 1 FROM {0}_idx AS i WHERE NOT EXISTS (
    SELECT 1 FROM {0}_data AS d WHERE d.id >= i.segid << 37 AND d.id >> 37 = i.segid LIMIT 1
))
"""
UPDATED = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%USING fts5%'"


def is_complete(connection: apsw.Connection, index: str, insertion: str, rows: Iterable[Any]) -> bool:
    """Tell whether search finds the words of these rows, and no others. The index is rebuilt in memory and
    compared word by word."""
    if connection.execute(STRAY.format(index)).get:
        return False
    with closing(apsw.Connection(":memory:")) as again:
        again.execute(str(connection.execute(CREATED, (index,)).get))
        with again:
            again.executemany(insertion, rows)
        return _ask(connection, index, FOUND) == _ask(again, index, PLACES) and (
            _totals(connection, index) == _totals(again, index)
        )


def update(connection: apsw.Connection) -> None:
    """Make FTS5 read the file again. It caches the layout of an index, and SQLite's check would compare
    today's pages with the layout that this connection saw last."""
    with suppress(apsw.Error):  # the check itself finds damage
        for (name,) in connection.execute(UPDATED).fetchall():
            connection.execute(f'SELECT 1 FROM "{name}" WHERE "{name}" MATCH ?', ('""',)).fetchall()


def _ask(connection: apsw.Connection, index: str, question: str) -> dict[bytes, tuple[int, ...]]:
    """Return how often and where each word stands, in a few numbers."""
    connection.execute(TERMS.format(index))
    try:
        rows: list[Any] = connection.execute(question).fetchall()
        return {word: tuple(places) for word, *places in rows}
    finally:
        connection.execute("DROP TABLE temp.terms")


def _totals(connection: apsw.Connection, index: str) -> bytes:
    """Return FTS5's sums for ranking. An emptied index has zeros where a new one has nothing."""
    block: Any = connection.execute(TOTALS.format(index)).get
    return bytes(block) if block and any(block) else b""
