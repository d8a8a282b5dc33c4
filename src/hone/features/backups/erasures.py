"""Erase in a restored home what was erased in the home that it replaces: a backup may be older than that."""

from contextlib import closing
from pathlib import Path

import apsw

from hone.app import Hone
from hone.core.loading import import_object
from hone.knowledge import places
from hone.settings import Settings
from hone.stores.database import Database, plainly
from hone.stores.home import FILE

CARRY = "hone.stores.carrying:carry_erasures"
"""Called with the database that knows the erasures and, in a transaction, with the one to apply them to."""
TABLE = "SELECT 1 FROM sqlite_schema WHERE name = 'erasures'"


async def apply_later_erasures(former: apsw.Connection, stage: Path) -> int:
    """Erase in `stage`, a home that nobody uses yet, what the database of the `former` home says was erased
    there since the backup. Returns how many erasures that were. Raises StoreError, or an error of SQLite's if
    the former database cannot be read."""
    if not former.execute(TABLE).get:
        return 0
    carry = import_object(CARRY)
    database = Database.open(stage / FILE)
    try:
        count: int = await database.write(lambda target: carry(former, target))
    finally:
        await database.close()
    if count:
        await _publish(stage)
        # Closed by its last user, the database has no log, and erased pages are overwritten.
        with plainly(stage / FILE), closing(apsw.Connection(str(stage / FILE))) as last:
            last.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    return count


async def _publish(stage: Path) -> None:
    """Write the files of journal and skills anew from the ledger, which no longer has what was erased."""
    async with Hone(home=stage, settings=Settings(), learning="off") as hone, hone.keeper.lock():
        for target in await hone.ledger.held_below(""):
            if not places.is_item(target):
                await hone.keeper.sync(target)
