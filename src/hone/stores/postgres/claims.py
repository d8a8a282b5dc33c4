"""Claims as advisory locks of PostgreSQL. They belong to a connection, so that they end with its process."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress

from hone.core.errors import StoreError
from hone.stores.postgres.database import PostgresStore, Rows

# Numbered apart from the gate of an owner (1) and from trees (2).
KEY = "hashtextextended(%(owner)s || ' ' || %(name)s, 3)"
TAKE = f"SELECT pg_try_advisory_lock({KEY})"
RELEASE = f"SELECT pg_advisory_unlock({KEY})"
HELD = """
SELECT name FROM unnest(%(names)s::text[]) AS name JOIN pg_locks ON locktype = 'advisory' AND objsubid = 1
    AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (classid::bigint << 32 | objid::bigint) = hashtextextended(%(owner)s || ' ' || name, 3)
"""


def _take(rows: Rows, name: str) -> bool:
    return bool(rows.value(TAKE, name=name))


class PostgresClaims(PostgresStore):
    """Claims of all processes that work for one owner, on any machine. They need a direct connection: a
    pooler that lends connections by transaction would give them to another process."""

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[bool]:
        taken = await self._claim(name)
        try:
            yield taken
        finally:
            if taken:
                await self._release(name)

    async def _claim(self, name: str) -> bool:
        """Take a claim. A cancelled call leaves no lock behind."""
        key = (self._database.owner, name)
        taking = asyncio.ensure_future(self._database.claim(key, lambda rows: _take(rows, name)))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            with suppress(StoreError):
                if await taking:
                    await self._release(name)
            raise

    async def _release(self, name: str) -> None:
        key = (self._database.owner, name)
        await self._database.release(key, lambda rows: rows.value(RELEASE, name=name))

    async def confirm(self, name: str) -> bool:
        """Tell whether a claim still holds. This costs nothing while the connection is silent: a server that
        ends it says so."""
        database = self._database
        return await database.confirm((database.owner, name), lambda rows: _take(rows, name))

    async def beat(self) -> None:
        await self._database.beat()

    async def find_held(self, names: Collection[str]) -> frozenset[str]:
        def find(rows: Rows) -> frozenset[str]:
            return frozenset(name for (name,) in rows.execute(HELD, names=list(names)))

        return await self._database.read(find) if names else frozenset()

    def sweep(self, wanted: Collection[str]) -> None:
        """Do nothing: a lock ends with the connection of a killed process."""
