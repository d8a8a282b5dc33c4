"""Each memory backend, ready for a test: the file, the real server, the service's double, and none."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import psycopg

from hone.core.backend import Backend
from hone.core.clock import Clock, ManualClock
from hone.features.backends.current import NullBackend
from hone.features.backends.guarded import GuardedBackend
from hone.features.backends.honcho import HonchoBackend
from hone.features.backends.postgres import PostgresBackend
from hone.features.backends.sqlite import SqliteBackend
from tests.doubles.honcho import KEY, HonchoDouble

Open = Callable[[], AbstractAsyncContextManager[Backend]]


@asynccontextmanager
async def opened(kind: str, path: Path, url: str, clock: Clock | None = None) -> AsyncIterator[Backend]:
    """`url` is that of the server; the others need none."""
    clock = clock or ManualClock()
    match kind:
        case "honcho":
            async with HonchoDouble() as double, closing(honcho(double, clock)) as backend:
                yield backend
        case "postgres":
            await emptied(url)
            async with closing(PostgresBackend(url, clock, is_cloud=False)) as backend:
                yield backend
        case "sqlite":
            async with closing(SqliteBackend(path / "memories.db", clock)) as backend:
                yield backend
        case _:
            yield GuardedBackend(NullBackend())


def honcho(double: HonchoDouble, clock: Clock | None = None, key: str = KEY) -> HonchoBackend:
    return HonchoBackend(double.url, key, clock or ManualClock(), is_cloud=True)


@asynccontextmanager
async def closing(backend: Backend) -> AsyncIterator[Backend]:
    guarded = GuardedBackend(backend)
    try:
        yield guarded
    finally:
        await guarded.close()


async def emptied(url: str) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute("DROP TABLE IF EXISTS hone_memos")
        await connection.execute("DROP SEQUENCE IF EXISTS hone_memos_touched")
