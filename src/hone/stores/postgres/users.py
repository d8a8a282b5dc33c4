"""A server's queries about users in a PostgreSQL database, each a call of one function.

The application's role cannot read the tables of users. What a user has used is counted as that user, behind
the same row security as everything else.
"""

from datetime import UTC, datetime
from typing import Any

import psycopg

from hone.core.shared_values import SharedValues
from hone.core.users import Admission, AuditNote, UserLimits, UserUsage
from hone.stores.postgres.database import PostgresDatabase, PostgresPool, Row
from hone.stores.postgres.faults import is_lost
from hone.stores.postgres.shared_values import PostgresValues
from hone.stores.tree import stamp

BY_KEY = "SELECT user_name, key_name, kind, refusal, wait FROM enter_by_key(%(digest)s, %(rate)s)"
AS_USER = "SELECT refusal, wait FROM enter_as(%(user)s, %(digest)s, %(rate)s)"
CURRENT = "SELECT judge_user(%(user)s, %(digest)s) = ''"
NOTE = "SELECT note_event(%(user)s, %(event)s, %(detail)s, %(address)s)"
REFUSE = "SELECT note_refusal(%(user)s, %(event)s, %(detail)s, %(address)s)"
LIMITS = "SELECT cost_per_day, storage_mb, reviews, turns FROM find_limits(%(user)s)"
USAGE = """
SELECT
    coalesce(sum(cost), 0), coalesce(sum(cost) FILTER (WHERE origin IN ('review', 'curator')), 0),
    (SELECT count(*) FROM jobs WHERE owner = %(owner)s AND state = 'queued')
FROM spending WHERE owner = %(owner)s AND at >= %(midnight)s
"""
SIZED = ("contents", "prefixes", "knowledge", "documents", "checkpoint_blobs")
"""Tables whose rows grow with what a user stores, with the column that holds it."""
STORAGE = "SELECT {}".format(
    " + ".join(
        f"(SELECT coalesce(sum(pg_column_size({'data' if table == 'checkpoint_blobs' else 'body'})), 0)"
        f" FROM {table} WHERE owner = %(owner)s)"
        for table in SIZED
    )
)
PRUNE = "SELECT prune_audit(%(days)s)"


class PostgresUsers:
    """May be called from any thread. `database` is that of the server's own owner."""

    def __init__(self, pool: PostgresPool, database: PostgresDatabase) -> None:
        self._pool = pool
        self._database = database

    def enter_by_key(self, digest: str, rate: int | None) -> Admission:
        return Admission(*self._ask(BY_KEY, digest=digest, rate=rate))

    def enter_as(self, user: str, digest: str, rate: int | None) -> Admission:
        refusal, wait = self._ask(AS_USER, user=user, digest=digest, rate=rate)
        return Admission(user, refusal=refusal, wait=wait)

    def is_current(self, user: str, digest: str) -> bool:
        return bool(self._ask(CURRENT, user=user, digest=digest)[0])

    def note(self, note: AuditNote) -> None:
        self._ask(NOTE, **_values(note))

    def refuse(self, note: AuditNote) -> int:
        return int(self._ask(REFUSE, **_values(note))[0])

    def limits(self, user: str) -> UserLimits:
        cost, storage, reviews, turns = self._ask(LIMITS, user=user)
        return UserLimits(cost_per_day=cost, storage_mb=storage, reviews=reviews, turns=turns)

    def usage(self, user: str, *, storage: bool) -> UserUsage:
        midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        own = PostgresDatabase(self._pool, user)
        cost, learning, reviews = self._ask(USAGE, own, midnight=stamp(midnight))
        return UserUsage(cost, learning, int(self._ask(STORAGE, own)[0]) if storage else 0, reviews)

    def values(self, user: str) -> SharedValues:
        return PostgresValues(PostgresDatabase(self._pool, user))

    def prune(self, days: int) -> None:
        self._ask(PRUNE, days=days)

    def _ask(self, query: str, database: PostgresDatabase | None = None, **values: Any) -> Row:
        """Ask again if an old connection broke: at worst that counts a request twice."""
        with self._database.plainly():
            try:
                return self._ask_once(database or self._database, query, values)
            except psycopg.OperationalError as error:
                if not is_lost(error):
                    raise
                self._database.renew()
                return self._ask_once(database or self._database, query, values)

    def _ask_once(self, database: PostgresDatabase, query: str, values: dict[str, Any]) -> Row:
        with database.borrow(writing=True) as rows:
            row = rows.one(query, **values)
        assert row is not None
        return row


def _values(note: AuditNote) -> dict[str, Any]:
    return {
        "user": note.user,
        "event": note.event.value,
        "detail": note.detail,
        "address": note.address,
    }
