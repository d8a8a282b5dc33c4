"""The outbox in SQLite, beside the ledger that feeds it."""

from collections.abc import Sequence
from functools import partial

import apsw

from hone.core.ledger import ChangeId
from hone.core.messages import sound
from hone.core.outbox import OutboxItem, OutboxStatus
from hone.stores.database import Database
from hone.stores.record import reachable

LETTERS = "SELECT change, tries FROM outbox WHERE NOT refused ORDER BY change LIMIT ?"
DELIVERED = "DELETE FROM outbox WHERE change = ?"
FAILED = "UPDATE outbox SET tries = tries + 1, error = ?, refused = ? WHERE change = ?"
COUNTS = "SELECT count(*) FILTER (WHERE NOT refused), count(*) FILTER (WHERE refused) FROM outbox"
ERROR = "SELECT error FROM outbox WHERE error != '' ORDER BY refused, change DESC LIMIT 1"
MOVE = "UPDATE mirror SET backend = ?1 WHERE backend != ?1 RETURNING 1"
ALL = """
INSERT INTO outbox (change)
SELECT id FROM changes WHERE standing = 'active' AND id IN (SELECT change FROM deltas)
ON CONFLICT DO UPDATE SET tries = 0, refused = 0, error = ''
"""


class SqliteOutbox:
    """The database belongs to whoever opened it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def home(self) -> str:
        return str(await self._database.read(lambda each: each.execute("SELECT home FROM mirror").get))

    async def address(self, backend: str) -> None:
        await self._database.write(partial(_address, backend=sound(backend)))

    async def letters(self, limit: int = 100) -> Sequence[OutboxItem]:
        def work(connection: apsw.Connection) -> tuple[OutboxItem, ...]:
            rows = connection.execute(LETTERS, (limit,))
            return tuple(OutboxItem(ChangeId(change), tries) for change, tries in rows)

        return await self._database.read(work)

    async def delivered(self, change: ChangeId) -> None:
        await self._run(DELIVERED, reachable(change))

    async def failed(self, change: ChangeId, error: str, *, final: bool = False) -> None:
        await self._run(FAILED, sound(error), final, reachable(change))

    async def post(self) -> OutboxStatus:
        return await self._database.read(_post)

    async def _run(self, statement: str, *values: str | int) -> None:
        def work(connection: apsw.Connection) -> None:
            connection.execute(statement, values)

        await self._database.write(work)


def _address(connection: apsw.Connection, backend: str) -> None:
    if connection.execute(MOVE, (backend,)).fetchall():
        connection.execute(ALL)


def _post(connection: apsw.Connection) -> OutboxStatus:
    waiting, refused = connection.execute(COUNTS).get
    return OutboxStatus(waiting, refused, connection.execute(ERROR).get or "")
