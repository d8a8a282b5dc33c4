"""Small documents that all servers of an owner share, as rows of PostgreSQL."""

from collections.abc import Callable

import psycopg

from hone.stores.postgres.database import PostgresDatabase, PostgresPool
from hone.stores.postgres.faults import is_lost

READ = "SELECT value FROM serve_values WHERE owner = %(owner)s AND name = %(name)s"
MAKE = "INSERT INTO serve_values (owner, name, value) VALUES (%(owner)s, %(name)s, '') ON CONFLICT DO NOTHING"
LOCK = f"{READ} FOR UPDATE"
PUT = "UPDATE serve_values SET value = %(value)s WHERE owner = %(owner)s AND name = %(name)s"


class PostgresValues:
    """May be called from any thread."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    def read(self, name: str) -> bytes:
        with self._database.plainly():
            try:
                return self._read(name)
            except psycopg.OperationalError as error:
                if not is_lost(error):
                    raise
                self._database.renew()  # an old connection: ask again
                return self._read(name)

    def change(self, name: str, change: Callable[[bytes], bytes]) -> bytes:
        """Change a document. A broken connection is reported, unless it broke before anything was decided."""
        begun = False

        def decide(value: bytes) -> bytes:
            nonlocal begun
            begun = True
            return change(value)

        with self._database.plainly():
            try:
                return self._change(name, decide)
            except psycopg.OperationalError as error:
                if begun or not is_lost(error):
                    raise
                self._database.renew()
                return self._change(name, decide)

    def _read(self, name: str) -> bytes:
        with self._database.borrow() as rows:
            return bytes(rows.value(READ, name=name) or b"")

    def _change(self, name: str, change: Callable[[bytes], bytes]) -> bytes:
        with self._database.borrow(writing=True) as rows, rows.transaction():
            rows.execute(MAKE, name=name)
            value = change(bytes(rows.value(LOCK, name=name)))
            rows.execute(PUT, name=name, value=value)
            return value


def open_values(url: str, owner: str) -> PostgresValues:
    """Open the documents for a command that needs nothing else. Raises StoreError."""
    return PostgresValues(PostgresDatabase(PostgresPool(url, lanes=1, readers=1), owner))
