"""Erase from an owner's rows in PostgreSQL, and from the files of its tables."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

from hone.core.erasure import Erasure, Scrubber
from hone.core.ids import SessionId
from hone.core.ledger import Target
from hone.stores.erasing import Found
from hone.stores.postgres import erasing
from hone.stores.postgres.database import PostgresDatabase, PostgresPool, Rows
from hone.stores.postgres.home import LOCAL
from hone.stores.postgres.purging import count_rows_with, find_decisions, rewrite_tables
from hone.stores.redacting import Rewrite

T = TypeVar("T")


class PostgresErasures:
    """Opens a connection for each step: tables cannot be rewritten while this process reads them."""

    def __init__(self, url: str, owner: str = LOCAL) -> None:
        self._url, self._owner = url, owner

    async def find(self, what: Erasure) -> list[Found]:
        return await self._read(partial(erasing.find, what=what))

    async def erase(self, what: Erasure, rewrite: Rewrite, at: int) -> None:
        await self._write(partial(erasing.erase, what=what, rewrite=rewrite, at=at))

    async def begin(self, holdings: Sequence[str], at: int) -> None:
        await self._write(partial(erasing.begin, holdings=holdings, at=at))

    async def finish(self) -> None:
        await self._write(erasing.finish)

    async def is_cut_off(self) -> bool:
        return bool(await self._read(erasing.unfinished))

    async def purge(self, what: Erasure) -> Sequence[str]:
        async with self._open() as pool:
            return await asyncio.to_thread(rewrite_tables, pool)

    async def search(self, scrub: Scrubber) -> tuple[int, Sequence[str]]:
        total, found = await self._read(partial(count_rows_with, scrub=scrub))
        return total, [f"table {name}" for name in found]

    async def find_decisions(self, scrub: Scrubber) -> Sequence[str]:
        return await self._read(partial(find_decisions, scrub=scrub))

    async def family(self, sessions: Iterable[SessionId]) -> list[SessionId]:
        return await self._read(partial(erasing.family, sessions=list(sessions)))

    async def target_names(self) -> list[Target]:
        return await self._read(erasing.target_names)

    async def texts(self, words: tuple[str, ...]) -> list[str]:
        return await self._read(partial(erasing.texts, words=words))

    async def _read(self, work: Callable[[Rows], T]) -> T:
        async with self._open() as pool:
            return await PostgresDatabase(pool, self._owner).read(work)

    async def _write(self, work: Callable[[Rows], T]) -> T:
        async with self._open() as pool:
            return await PostgresDatabase(pool, self._owner).write(work, alone=True)

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[PostgresPool]:
        pool = PostgresPool(self._url, lanes=1, readers=1)
        try:
            yield pool
        finally:
            await pool.close()
