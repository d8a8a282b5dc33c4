"""Search over all sessions of an owner in PostgreSQL."""

from functools import partial

from hone.core.loading import import_object
from hone.core.recall import Query, SearchResult
from hone.stores.postgres.database import PostgresStore, Rows
from hone.stores.postgres.passages import catch_up
from hone.stores.postgres.search_source import PostgresSource
from hone.stores.recall import Combine, search

MEANING = "hone.stores.meaning:combine"
VECTORS = "hone.stores.postgres.vectors:PostgresVectorSource"
"""Imported with the first question that has a vector."""


class PostgresRecall(PostgresStore):
    """Candidates come from a GIN index; the shared ranking code orders them."""

    async def search(self, query: Query) -> SearchResult:
        """Search. First add what was stored before this call to the index, as much as takes a few seconds."""
        waiting = await catch_up(self._database)

        def work(rows: Rows) -> SearchResult:
            source = PostgresSource(rows)
            return search(source, query, _combine(rows, source) if query.vector else None, waiting)

        return await self._database.read(work)


def _combine(rows: Rows, source: PostgresSource) -> Combine:
    return partial(import_object(MEANING), source, import_object(VECTORS)(rows))
