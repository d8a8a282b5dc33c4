"""The stores that every suite of a port runs on: the reference, a file of SQLite, and SQLite in memory."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from hone.stores.database import Database
from hone.stores.home import Stores, over
from tests.reference.ledger import InMemoryCuratorRuns, InMemoryLedger, InMemorySkillCatalog
from tests.reference.recall import InMemoryRecall
from tests.reference.sessions import InMemoryJobs, InMemoryOutbox, InMemorySessions
from tests.reference.vectors import InMemoryVectors

KINDS = ("inmemory", "sqlite", "sqlite-memory")


async def _nothing() -> None:
    """There is nothing to let go of."""


def reference() -> Stores:
    sessions, ledger = InMemorySessions(), InMemoryLedger()
    vectors = InMemoryVectors(sessions)
    return Stores(
        sessions,
        ledger,
        InMemorySkillCatalog(ledger),
        InMemoryJobs(ledger, sessions),
        InMemoryRecall(sessions),
        InMemoryCuratorRuns(ledger),
        InMemoryOutbox(ledger),
        lambda: vectors,
        _nothing,
    )


def sqlite(kind: str, folder: Path) -> Stores:
    return over(Database.open(folder / "hone.db") if kind == "sqlite" else Database.in_memory())


@contextmanager
def kept(kind: str, folder: Path) -> Iterator[Stores]:
    stores = reference() if kind == "inmemory" else sqlite(kind, folder)
    yield stores
    asyncio.run(_close(stores))


@asynccontextmanager
async def all_kinds(folder: Path) -> AsyncIterator[tuple[Stores, Stores, Stores]]:
    """The reference first."""
    there = reference(), sqlite("sqlite", folder), sqlite("sqlite-memory", folder)
    try:
        yield there
    finally:
        for each in there:
            await each.close()


async def _close(stores: Stores) -> None:
    await stores.close()
