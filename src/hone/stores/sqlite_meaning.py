"""The meaning of messages in SQLite, for a search: vectors by content, and codes that stay in memory."""

import json
from collections.abc import Collection
from functools import partial
from typing import Any

import apsw

from hone.core.recall import Query
from hone.stores.meaning import combine
from hone.stores.question import ParsedQuestion
from hone.stores.ranking import Ranked
from hone.stores.sqlite_source import SqliteSource
from hone.stores.vector_codes import CodeCache
from hone.stores.vectors import number

RUN = """
SELECT (SELECT min(content) FROM vectors WHERE embedder = ?1),
    (SELECT max(content) FROM vectors WHERE embedder = ?1)
"""
SPREAD = """
SELECT DISTINCT (
    SELECT content FROM vectors WHERE embedder = ?1 AND content >= value ORDER BY content LIMIT 1
) FROM json_each(?2)
"""
# From the few contents to their vectors, never the other way around.
VECTORS = """
SELECT content, vector FROM json_each(?) CROSS JOIN vectors ON content = value
WHERE +embedder = ? AND length(vector) = ?
"""


class SqliteMeaning:
    """Caches the codes of vectors between two searches."""

    def __init__(self) -> None:
        self._codes = CodeCache()

    def combine(
        self, connection: apsw.Connection, ranked: Ranked, question: ParsedQuestion, query: Query
    ) -> Ranked:
        vectors = SqliteVectorSource(connection, self._codes)
        return combine(SqliteSource(connection), vectors, ranked, question, query)


class SqliteVectorSource:
    """Searches one connection, during one search."""

    def __init__(self, connection: apsw.Connection, codes: CodeCache) -> None:
        self._connection = connection
        self.number = partial(number, connection)
        self.nearest = partial(codes.nearest, connection)

    def vectors(self, embedder: int, contents: Collection[int], size: int) -> list[tuple[int, bytes]]:
        asked = json.dumps(list(contents)), embedder, size
        rows: list[Any] = self._connection.execute(VECTORS, asked).fetchall()
        return rows

    def sample(self, embedder: int, count: int) -> list[int]:
        low, high = self._connection.execute(RUN, (embedder,)).get
        if low is None:
            return []
        places = [low + (high - low) * each // count for each in range(count)]
        return [id for (id,) in self._connection.execute(SPREAD, (embedder, json.dumps(places)))]
