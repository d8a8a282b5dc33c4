"""The outbox in SQLite, in the same database as the ledger that fills it."""

from collections.abc import Sequence

import apsw

from hone.core.ledger import ChangeId
from hone.core.messages import sound
from hone.core.outbox import OutboxItem, OutboxStatus
from hone.stores.database import Store, reads, writes
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


def _home(connection: apsw.Connection) -> str:
    return str(connection.execute("SELECT home FROM mirror").get)


def _address(connection: apsw.Connection, backend: str) -> None:
    if connection.execute(MOVE, (sound(backend),)).fetchall():
        connection.execute(ALL)


def _letters(connection: apsw.Connection, limit: int = 100) -> Sequence[OutboxItem]:
    rows = connection.execute(LETTERS, (limit,))
    return tuple(OutboxItem(ChangeId(change), tries) for change, tries in rows)


def _delivered(connection: apsw.Connection, change: ChangeId) -> None:
    connection.execute(DELIVERED, (reachable(change),))


def _failed(connection: apsw.Connection, change: ChangeId, error: str, *, final: bool = False) -> None:
    connection.execute(FAILED, (sound(error), final, reachable(change)))


def _post(connection: apsw.Connection) -> OutboxStatus:
    waiting, refused = connection.execute(COUNTS).get
    return OutboxStatus(waiting, refused, connection.execute(ERROR).get or "")


class SqliteOutbox(Store):
    home = reads(_home)
    address = writes(_address)
    letters = reads(_letters)
    delivered = writes(_delivered)
    failed = writes(_failed)
    post = reads(_post)
