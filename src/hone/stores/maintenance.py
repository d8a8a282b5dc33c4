"""Examine and repair the databases of a home folder. Only `hone doctor` uses it."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from apsw import Connection

from hone.core.errors import StoreError
from hone.stores.database import Database
from hone.stores.examine import examine, pages
from hone.stores.home import FILE
from hone.stores.repair import Repaired, repair

MEMORIES = "memories.db"


async def examine_home(home: Path) -> list[str]:
    """Return what is damaged, a sentence each. Reads all of the databases."""
    found = await _read(home / FILE, examine)
    memories = home / MEMORIES
    beside = await _read(memories, lambda each: list(pages(each))) if memories.exists() else []
    return [*found, *(f"{MEMORIES}: {line}" for line in beside)]


async def repair_home(home: Path, now: datetime) -> Repaired | None:
    """Return None if there was nothing to repair."""
    return await repair(home / FILE, now) if (home / FILE).exists() else None


async def _read(path: Path, work: Callable[[Connection], list[str]]) -> list[str]:
    try:
        database = Database.open(path)
        try:
            return await database.read(work)
        finally:
            await database.close()
    except StoreError as error:
        return [str(error)]
