"""Examine and repair the databases of a home folder. Only `hone doctor` uses it."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from hone.core.errors import StoreError
from hone.core.loading import import_object
from hone.stores.damage import Damage, DamageKind
from hone.stores.database import Database
from hone.stores.examine import examine_file, examine_pages
from hone.stores.home import FILE
from hone.stores.repair import Rebuilt, Repaired, repair

MEMORIES = "memories.db"
ELSEWHERE = "hone.stores.postgres.examine:examine_database"


async def examine_home(home: Path, address: str = "") -> Mapping[str, list[Damage]]:
    """Return what is damaged, by file; a remote database goes by the name of the file that it replaces. This
    reads all of the databases."""
    found = {FILE: await (import_object(ELSEWHERE)(address) if address else _examine_sessions(home / FILE))}
    if (home / MEMORIES).exists():  # it has other tables, so SQLite's check must do
        found[MEMORIES] = await asyncio.to_thread(examine_file, home / MEMORIES, examine_pages)
    return found


async def repair_home(home: Path, now: datetime) -> Repaired | Rebuilt | None:
    """Return None if there was nothing to repair."""
    return await repair(home / FILE, now) if (home / FILE).exists() else None


async def _examine_sessions(path: Path) -> list[Damage]:
    try:
        await Database.open(path).close()  # updates an older one
    except StoreError as error:
        return [Damage(DamageKind.TEXT, str(error))]
    return await asyncio.to_thread(examine_file, path)
