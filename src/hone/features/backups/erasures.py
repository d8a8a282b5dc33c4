"""Erase in a restored home what was erased in the home that it replaces, since a backup may be older than the
erasure."""

from collections.abc import Sequence
from pathlib import Path

import apsw

from hone.app import Hone
from hone.core.erasure import Erasure
from hone.knowledge import places
from hone.settings import Settings
from hone.stores.carrying import carry_erasures
from hone.stores.database import Database
from hone.stores.erasing import Erased, finish
from hone.stores.home import FILE
from hone.stores.purging import purge

TABLE = "SELECT 1 FROM sqlite_schema WHERE name = 'erasures'"


async def apply_later_erasures(former: apsw.Connection, stage: Path) -> Sequence[Erased]:
    """Erase in `stage`, a home that nobody uses yet, what was erased in the `former` home since the backup,
    according to its database. Return those erasures. Raises StoreError, or an error of SQLite's if the former
    database cannot be read."""
    if not former.execute(TABLE).get:
        return ()

    def carry(target: apsw.Connection) -> Sequence[Erased]:
        made = carry_erasures(former, target)
        finish(target)  # the stage becomes a home when all is done
        return made

    database = Database.open(stage / FILE)
    try:
        made = await database.write(carry)
    finally:
        await database.close()
    if made:
        await _publish(stage)
        await purge(stage / FILE, Erasure())
    return made


async def _publish(stage: Path) -> None:
    """Rewrite the files of journal and skills from the ledger, which no longer has the erased text."""
    async with Hone(home=stage, settings=Settings(), learning="off") as hone, hone.keeper.lock():
        for target in await hone.ledger.held_below(""):
            if not places.is_outside(target):
                await hone.keeper.sync(target)
