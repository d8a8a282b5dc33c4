"""From a home folder to what it keeps: in SQLite, or for this process only where it cannot be written."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hone.core.curation import CuratorRuns
from hone.core.jobs import Jobs
from hone.core.ledger import Ledger
from hone.core.outbox import Outbox
from hone.core.ports import Sessions
from hone.core.recall import Recall
from hone.core.skill import SkillCatalog
from hone.core.value import dataclass

if TYPE_CHECKING:
    from datetime import datetime

    from apsw import Connection

    from hone.stores.repair import Repaired

FILE, MEMORIES = "hone.db", "memories.db"


@dataclass(frozen=True, slots=True)
class Stores:
    """What a home keeps. `closed` says why it keeps nothing, if so."""

    sessions: Sessions
    ledger: Ledger
    catalog: SkillCatalog
    jobs: Jobs
    recall: Recall
    rounds: CuratorRuns
    outbox: Outbox
    close: Callable[[], Awaitable[None]]
    closed: str = ""


def opened(home: Path) -> Stores:
    return _lasting(home / FILE) if _writable(home) else _passing(home)


async def examined(home: Path) -> list[str]:
    """What is damaged in the databases of a home, a sentence each. Reads all of them."""
    from hone.stores.examine import examine, pages

    found = await _read(home / FILE, examine)
    memories = home / MEMORIES
    beside = await _read(memories, lambda each: list(pages(each))) if memories.exists() else []
    return [*found, *(f"{MEMORIES}: {line}" for line in beside)]


async def repaired(home: Path, now: "datetime") -> "Repaired | None":
    """None if there was nothing to repair."""
    from hone.stores.repair import repair

    if not (home / FILE).exists():
        return None
    return await repair(home / FILE, now)


async def _read(path: Path, work: "Callable[[Connection], list[str]]") -> list[str]:
    from hone.core.errors import StoreError
    from hone.stores.database import Database

    try:
        database = Database.open(path)
    except StoreError as error:
        return [str(error)]
    try:
        return await database.read(work)
    except StoreError as error:
        return [str(error)]
    finally:
        await database.close()


def _writable(home: Path) -> bool:
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(home, os.W_OK)


def _lasting(path: Path) -> Stores:
    from hone.stores.curator_runs import SqliteCuratorRuns
    from hone.stores.database import Database
    from hone.stores.jobs import SqliteJobs
    from hone.stores.ledger import SqliteLedger
    from hone.stores.outbox import SqliteOutbox
    from hone.stores.recall import SqliteRecall
    from hone.stores.skill_catalog import SqliteSkillCatalog
    from hone.stores.sqlite import SqliteSessions

    database = Database.open(path)
    return Stores(
        SqliteSessions(database),
        SqliteLedger(database),
        SqliteSkillCatalog(database),
        SqliteJobs(database),
        SqliteRecall(database),
        SqliteCuratorRuns(database),
        SqliteOutbox(database),
        database.close,
    )


def _passing(home: Path) -> Stores:
    from hone.stores.inmemory import InMemoryJobs, InMemoryOutbox, InMemorySessions
    from hone.stores.recalled import InMemoryRecall
    from hone.stores.reference import InMemoryCuratorRuns, InMemoryLedger, InMemorySkillCatalog

    sessions, ledger = InMemorySessions(), InMemoryLedger()
    return Stores(
        sessions,
        ledger,
        InMemorySkillCatalog(ledger),
        InMemoryJobs(ledger, sessions),
        InMemoryRecall(sessions),
        InMemoryCuratorRuns(ledger),
        InMemoryOutbox(ledger),
        sessions.close,
        f"{home} cannot be written: this conversation is not kept, and nothing is learned.",
    )
