"""Users, their keys, limits and audit log, as an administrator sees and changes them.

It works as the user of the database's address. What users have used is counted as each of them, one after the
other, since row security applies to the owner of the tables, too. Only sums leave this module.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

from msgspec import Struct
from psycopg import Connection, errors, sql

from hone.core.errors import Missing, Refused
from hone.core.users import AuditEvent, UserLimits
from hone.stores.postgres.database import PostgresPool
from hone.stores.postgres.migrating import SCHEMA
from hone.stores.postgres.purging import rewrite_tables
from hone.stores.postgres.users import STORAGE, USAGE
from hone.stores.tree import stamp

COLUMNS = ("requests_per_minute", "cost_per_day", "storage_mb", "reviews", "turns")
USERS = f"SELECT name, created, disabled, {', '.join(COLUMNS)} FROM users ORDER BY name"
ADD = "INSERT INTO users (name) VALUES (%(name)s)"
SWITCH = """
UPDATE users SET disabled = CASE WHEN %(off)s THEN coalesce(disabled, now()) END WHERE name = %(name)s
"""
KEYS = """
SELECT user_name, name, kind, created, expires, revoked, used FROM user_keys ORDER BY user_name, created, name
"""
MAKE_KEY = """
INSERT INTO user_keys (digest, user_name, name, kind, expires)
VALUES (%(digest)s, %(user)s, %(name)s, %(kind)s, now() + %(lasts)s)
"""
REVOKE = """
UPDATE user_keys SET revoked = now() WHERE user_name = %(user)s AND name = %(name)s AND revoked IS NULL
"""
NOTE = "INSERT INTO audit (user_name, event, detail) VALUES (%(user)s, %(event)s, %(detail)s)"
AUDIT = """
SELECT at, last, user_name, event, detail, address, count FROM audit
WHERE (%(user)s = '' OR user_name = %(user)s) AND (%(event)s = '' OR event = %(event)s)
ORDER BY id DESC LIMIT %(limit)s
"""
OWN = "SELECT set_config('hone.owner', %(owner)s, true)"
REQUESTS = """
SELECT coalesce(sum(requests), 0)::bigint, coalesce(sum(refused), 0)::bigint FROM user_requests
WHERE user_name = %(owner)s AND day >= %(since)s
"""
SPENT = """
SELECT count(DISTINCT session), count(*), coalesce(sum(input), 0)::bigint, coalesce(sum(output), 0)::bigint,
    coalesce(sum(cost), 0)
FROM spending WHERE owner = %(owner)s AND at >= %(at)s
"""
COUNTS = (REQUESTS, SPENT, USAGE, STORAGE)
OWNED = """
SELECT relname::text FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
WHERE relnamespace = 'hone'::regnamespace AND relkind = 'r' AND attname = 'owner' AND NOT attisdropped
ORDER BY 1
"""


class UserRecord(Struct, frozen=True):
    name: str
    created: datetime
    disabled: datetime | None
    limits: UserLimits


class UserKeyRecord(Struct, frozen=True):
    """A key without its text and its digest."""

    user: str
    name: str
    kind: str
    created: datetime
    expires: datetime | None
    revoked: datetime | None
    used: datetime | None


class AuditRow(Struct, frozen=True):
    at: datetime
    last: datetime
    user: str
    event: str
    detail: str
    address: str
    count: int


class UsageRow(Struct, frozen=True):
    """Numbers only. `calls` are model calls; `today` is today's cost, `learning` its part for learning."""

    user: str
    requests: int
    refused: int
    conversations: int
    calls: int
    input: int
    output: int
    cost: float
    today: float
    learning: float
    reviews: int
    storage: int


class UserAdmin:
    """Each method is one transaction. Raises StoreError, Missing and Refused."""

    def __init__(self, url: str) -> None:
        self._pool = PostgresPool(url, lanes=1, readers=1)

    def add(self, name: str, limits: Mapping[str, float | None]) -> None:
        with self._opened() as connection:
            try:
                connection.execute(ADD, {"name": name})
            except errors.UniqueViolation as error:
                raise Refused(f"There is a user {name} already. See: hone users list") from error
            self._set_limits(connection, name, limits)
            self._note(connection, name, AuditEvent.ADDED, _describe(limits))

    def users(self) -> Sequence[UserRecord]:
        with self._opened() as connection:
            return [
                UserRecord(name, created, disabled, UserLimits(*limits))
                for name, created, disabled, *limits in connection.execute(USERS)
            ]

    def switch(self, name: str, *, off: bool) -> None:
        """Disable a user, or enable one again."""
        with self._opened() as connection:
            if not connection.execute(SWITCH, {"name": name, "off": off}).rowcount:
                raise unknown(name)
            self._note(connection, name, AuditEvent.DISABLED if off else AuditEvent.ENABLED)

    def limit(self, name: str, limits: Mapping[str, float | None]) -> None:
        with self._opened() as connection:
            self._set_limits(connection, name, limits)
            self._note(connection, name, AuditEvent.LIMITS, _describe(limits))

    def list_keys(self) -> Sequence[UserKeyRecord]:
        with self._opened() as connection:
            return [UserKeyRecord(*row) for row in connection.execute(KEYS)]

    def add_key(self, user: str, digest: str, name: str, kind: str, lasts: timedelta | None) -> None:
        given = {"digest": digest, "user": user, "name": name, "kind": kind, "lasts": lasts}
        with self._opened() as connection:
            try:
                connection.execute(MAKE_KEY, given)
            except errors.ForeignKeyViolation as error:
                raise unknown(user) from error
            except errors.UniqueViolation as error:
                raise Refused(
                    f"{user} has a key named {name} already. Choose another name, or revoke it first: "
                    f"hone users key {user} --revoke {name}"
                ) from error
            until = f", for {lasts.days} days" if lasts else ""
            self._note(connection, user, AuditEvent.KEY_MADE, f"{name}, for a {kind}{until}")

    def revoke(self, user: str, name: str) -> None:
        with self._opened() as connection:
            if not connection.execute(REVOKE, {"user": user, "name": name}).rowcount:
                raise Missing(f"{user} has no key named {name}. See: hone users list --keys")
            self._note(connection, user, AuditEvent.KEY_REVOKED, name)

    def audit(self, user: str, event: str, limit: int) -> Sequence[AuditRow]:
        """Return the audit log, latest first."""
        with self._opened() as connection:
            given = {"user": user, "event": event, "limit": limit}
            return [AuditRow(*row) for row in connection.execute(AUDIT, given)]

    def usage(self, users: Iterable[str], days: int) -> Iterator[UsageRow]:
        midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        since = midnight - timedelta(days=days - 1)
        given = {"since": since.date(), "at": stamp(since), "midnight": stamp(midnight)}
        for user in users:
            with self._opened() as connection:
                own = {**given, "owner": user}
                connection.execute(OWN, own)
                asked = [connection.execute(each, own).fetchone() or () for each in COUNTS]
            *counts, storage = chain.from_iterable(asked)
            figures: tuple[Any, ...] = (user, *counts, int(storage))
            yield UsageRow(*figures)

    def erase(self, name: str) -> Mapping[str, int]:
        """Delete a disabled user with every row of theirs. Return the rows by table."""
        found: dict[str, int] = {}
        with self._opened() as connection:
            row = connection.execute(
                "SELECT disabled FROM users WHERE name = %(name)s FOR UPDATE", {"name": name}
            ).fetchone()
            if row is None:
                raise unknown(name)
            if row[0] is None:
                raise Refused(f"{name} can still come in. First: hone users disable {name}")
            connection.execute(OWN, {"owner": name})
            connection.execute("SELECT enter(%(owner)s, true)", {"owner": name})
            connection.execute("SET CONSTRAINTS ALL DEFERRED")
            left = [table for (table,) in connection.execute(OWNED).fetchall()]
            while left:
                left = self._delete(connection, name, left, found)
            connection.execute("DELETE FROM users WHERE name = %(name)s", {"name": name})
            self._note(connection, name, AuditEvent.ERASED)
        return found

    def rewrite(self, tables: Iterable[str]) -> Sequence[str]:
        """Rewrite tables, so that their files keep nothing of deleted rows. Return what the administrator
        should know, a sentence each."""
        return rewrite_tables(self._pool, sorted(tables))

    def _delete(
        self, connection: Connection[Any], owner: str, tables: Sequence[str], found: dict[str, int]
    ) -> list[str]:
        """Delete the owner's rows of these tables. Return the tables that others still refer to."""
        held = []
        for table in tables:
            try:
                with connection.transaction():
                    query = sql.SQL("DELETE FROM {} WHERE owner = %s").format(sql.Identifier(SCHEMA, table))
                    found[table] = connection.execute(query, (owner,)).rowcount
            except errors.ForeignKeyViolation:
                held.append(table)
        if len(held) == len(tables):
            raise Refused("Rows of this user refer to each other in a way that cannot be undone.")
        return held

    def _set_limits(self, connection: Connection[Any], name: str, limits: Mapping[str, float | None]) -> None:
        for column, value in limits.items():
            query = sql.SQL("UPDATE users SET {} = %s WHERE name = %s").format(sql.Identifier(column))
            if not connection.execute(query, (value, name)).rowcount:
                raise unknown(name)

    def _note(self, connection: Connection[Any], user: str, event: AuditEvent, detail: str = "") -> None:
        connection.execute(NOTE, {"user": user, "event": event.value, "detail": detail})

    @contextmanager
    def _opened(self) -> Iterator[Connection[Any]]:
        with self._pool.plainly(), self._pool.dial() as connection, connection.transaction():
            connection.execute(f"SET LOCAL search_path = {SCHEMA}")
            yield connection


def unknown(name: str) -> Missing:
    return Missing(f"There is no user {name}. See: hone users list")


def _describe(limits: Mapping[str, float | None]) -> str:
    return ", ".join(
        f"{name} {'as the settings say' if value is None else value}" for name, value in limits.items()
    )
