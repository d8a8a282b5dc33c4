"""The outbox in PostgreSQL, in the same database as the ledger that fills it."""

from collections.abc import Sequence

from hone.core.ledger import ChangeId
from hone.core.messages import sound
from hone.core.outbox import OutboxItem, OutboxStatus
from hone.stores.postgres.database import PostgresStore, Rows, reads, writes
from hone.stores.postgres.record import LOCK
from hone.stores.record import reachable

HOME = "SELECT home FROM owners WHERE owner = %(owner)s"
LETTERS = """
SELECT change, tries FROM outbox WHERE owner = %(owner)s AND NOT refused ORDER BY change LIMIT %(limit)s
"""
DELIVERED = "DELETE FROM outbox WHERE owner = %(owner)s AND change = %(change)s"
FAILED = """
UPDATE outbox SET tries = tries + 1, error = %(error)s, refused = %(final)s
WHERE owner = %(owner)s AND change = %(change)s
"""
COUNTS = """
SELECT count(*) FILTER (WHERE NOT refused), count(*) FILTER (WHERE refused) FROM outbox
WHERE owner = %(owner)s
"""
ERROR = """
SELECT error FROM outbox WHERE owner = %(owner)s AND error <> '' ORDER BY refused, change DESC LIMIT 1
"""
MOVE = """
UPDATE owners SET backend = %(backend)s WHERE owner = %(owner)s AND backend <> %(backend)s RETURNING 1
"""
ALL = """
INSERT INTO outbox (owner, change)
SELECT owner, id FROM changes AS c WHERE owner = %(owner)s AND standing = 'active'
    AND EXISTS (SELECT 1 FROM deltas AS d WHERE d.owner = c.owner AND d.change = c.id)
ON CONFLICT (owner, change) DO UPDATE SET tries = 0, refused = false, error = ''
"""


def _home(rows: Rows) -> str:
    rows.execute(LOCK)
    return str(rows.value(HOME))


def _address(rows: Rows, backend: str) -> None:
    rows.execute(LOCK)
    if rows.one(MOVE, backend=sound(backend)):
        rows.execute(ALL)


def _letters(rows: Rows, limit: int = 100) -> Sequence[OutboxItem]:
    found = rows.execute(LETTERS, limit=limit)
    return tuple(OutboxItem(ChangeId(change), tries) for change, tries in found)


def _delivered(rows: Rows, change: ChangeId) -> None:
    rows.execute(DELIVERED, change=reachable(change))


def _failed(rows: Rows, change: ChangeId, error: str, *, final: bool = False) -> None:
    rows.execute(FAILED, error=sound(error), final=final, change=reachable(change))


def _post(rows: Rows) -> OutboxStatus:
    waiting, refused = rows.one(COUNTS) or (0, 0)
    return OutboxStatus(waiting, refused, rows.value(ERROR) or "")


class PostgresOutbox(PostgresStore):
    home = writes(_home)
    address = writes(_address)
    letters = reads(_letters)
    delivered = writes(_delivered)
    failed = writes(_failed)
    post = reads(_post)
