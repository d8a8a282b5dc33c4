"""The stores that every suite of a port runs on: the reference, SQLite (a file, memory) and PostgreSQL.

A test on PostgreSQL has an owner of its own in a database that all share: their rows lie side by side, and no
test may see another's.
"""

import asyncio
import atexit
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path
from typing import NoReturn

from hone.stores.database import Database
from hone.stores.home import Stores, over
from hone.stores.postgres import home as postgres_home
from hone.stores.postgres.database import PostgresDatabase, PostgresPool
from tests import databases
from tests.reference.claims import InMemoryClaims
from tests.reference.documents import InMemoryDocuments
from tests.reference.ledger import InMemoryCuratorRuns, InMemoryLedger, InMemorySkillCatalog
from tests.reference.recall import InMemoryRecall
from tests.reference.sessions import InMemoryJobs, InMemoryOutbox, InMemorySessions
from tests.reference.vectors import InMemoryVectors

LOCAL = ("inmemory", "sqlite", "sqlite-memory")
KINDS = (*LOCAL, "postgres")


async def _nothing() -> None:
    """There is nothing to let go of."""


def _absent() -> NoReturn:
    raise NotImplementedError("the reference answers by the other ports")


def reference() -> Stores:
    sessions, ledger = InMemorySessions(), InMemoryLedger()
    vectors, claims, documents = InMemoryVectors(sessions), InMemoryClaims(), InMemoryDocuments()
    return Stores(
        sessions,
        ledger,
        InMemorySkillCatalog(ledger),
        InMemoryJobs(ledger, sessions),
        InMemoryRecall(sessions),
        InMemoryCuratorRuns(ledger),
        InMemoryOutbox(ledger),
        lambda: claims,
        lambda: vectors,
        _absent,
        _absent,
        lambda: documents,
        _nothing,
        _absent,
        _absent,
    )


def sqlite(kind: str, folder: Path) -> Stores:
    return over(folder, Database.open(folder / "hone.db") if kind == "sqlite" else Database.in_memory())


@cache
def shared_pool() -> PostgresPool:
    pool = PostgresPool(databases.shared())
    atexit.register(pool.forget)
    return pool


def new_owner() -> str:
    return f"owner-{os.urandom(6).hex()}"


def postgres(owner: str) -> Stores:
    """What belongs to one owner; the connections stay open for the next."""
    return postgres_home.over(PostgresDatabase(shared_pool(), owner), "a folder", _nothing)


@contextmanager
def kept(kind: str, folder: Path) -> Iterator[Stores]:
    match kind:
        case "inmemory":
            stores = reference()
        case "postgres":
            stores = postgres(new_owner())
        case _:
            stores = sqlite(kind, folder)
    yield stores
    asyncio.run(_close(stores))


@asynccontextmanager
async def all_kinds(folder: Path) -> AsyncIterator[tuple[Stores, ...]]:
    """The reference first, then those that need no server; tests/contract/test_postgres.py has the others."""
    there = reference(), sqlite("sqlite", folder), sqlite("sqlite-memory", folder)
    try:
        yield there
    finally:
        for each in there:
            await each.close()


async def _close(stores: Stores) -> None:
    await stores.close()
