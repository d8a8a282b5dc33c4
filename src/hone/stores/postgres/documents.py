"""Documents as rows of an owner in PostgreSQL."""

from datetime import datetime

from hone.core.documents import NEW, DocumentKind
from hone.core.errors import Conflict
from hone.core.messages import digest
from hone.core.visible import visible
from hone.stores.postgres.database import PostgresDatabase, Rows
from hone.stores.tree import stamp

KEY = "owner = %(owner)s AND machine = %(machine)s AND kind = %(kind)s"
ONE = f"{KEY} AND name = %(name)s"
NOW = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
READ = f"SELECT body FROM documents WHERE {ONE}"
NAMES = f"SELECT name FROM documents WHERE {KEY} ORDER BY name"
PUT = f"""
INSERT INTO documents (owner, machine, kind, name, digest, body, at)
VALUES (%(owner)s, %(machine)s, %(kind)s, %(name)s, %(digest)s, %(body)s, {NOW})
"""
RETURNING = "RETURNING 1"
PUT_NEW = f"{PUT} ON CONFLICT DO NOTHING {RETURNING}"
PUT_OVER_ANY = f"""
{PUT} ON CONFLICT (owner, machine, kind, name)
DO UPDATE SET digest = excluded.digest, body = excluded.body, at = excluded.at {RETURNING}
"""
PUT_OVER = f"""
UPDATE documents SET digest = %(digest)s, body = %(body)s, at = {NOW} WHERE {ONE} AND digest = %(over)s
{RETURNING}
"""
DELETE = f"DELETE FROM documents WHERE {ONE} {RETURNING}"
EXPIRE = f"DELETE FROM documents WHERE {KEY} AND at < %(before)s {RETURNING}"


class PostgresDocuments:
    """The documents of one owner. `machine` names the machine whose folders the rules are about."""

    shared = True

    def __init__(self, database: PostgresDatabase, machine: str) -> None:
        self._database = database
        self._machine = machine

    def read(self, kind: DocumentKind, name: str) -> bytes | None:
        found = self._database.read_now(lambda rows: rows.value(READ, name=name, **self._key(kind)))
        return None if found is None else bytes(found)

    def names(self, kind: DocumentKind) -> list[str]:
        def find(rows: Rows) -> list[str]:
            return [name for (name,) in rows.execute(NAMES, **self._key(kind))]

        return self._database.read_now(find)

    def write(self, kind: DocumentKind, name: str, data: bytes, over: str | None = None) -> None:
        query = PUT_OVER_ANY if over is None else PUT_NEW if over == NEW else PUT_OVER
        given = {"name": name, "digest": digest(data), "body": data, **self._key(kind)}
        if over:
            given["over"] = over
        if not self._database.write_now(lambda rows: rows.value(query, **given), kind.name):
            raise Conflict(f"{self.describe(kind, name)} was changed meanwhile; nothing was written.")

    def delete(self, kind: DocumentKind, name: str) -> bool:
        return bool(
            self._database.write_now(lambda rows: rows.value(DELETE, name=name, **self._key(kind)), kind.name)
        )

    def expire(self, kind: DocumentKind, before: datetime) -> int:
        def delete(rows: Rows) -> int:
            return len(rows.execute(EXPIRE, before=stamp(before), **self._key(kind)).fetchall())

        return self._database.write_now(delete, kind.name)

    def describe(self, kind: DocumentKind, name: str) -> str:
        folder = f"{kind.folder}/" if kind.folder else ""
        return visible(f"{folder}{name} in {self._database.where}")

    def _key(self, kind: DocumentKind) -> dict[str, str]:
        return {"kind": kind.name, "machine": self._machine if kind.machine else ""}
