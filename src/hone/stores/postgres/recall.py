"""Search over all sessions of an owner in PostgreSQL."""

from hone.core.recall import Query, SearchResult
from hone.stores.postgres.database import PostgresStore, Rows
from hone.stores.postgres.passages import catch_up
from hone.stores.postgres.search_source import PostgresSource
from hone.stores.recall import search


class PostgresRecall(PostgresStore):
    """Candidates come from a GIN index, their order from the code that ranks in every store."""

    async def search(self, query: Query) -> SearchResult:
        """What was stored before this call is added to the index first, as much as takes a few seconds."""
        waiting = await catch_up(self._database)

        def work(rows: Rows) -> SearchResult:
            return search(PostgresSource(rows), query, waiting=waiting)

        return await self._database.read(work)
