"""Bring the schema of a PostgreSQL database up to date: numbered scripts, each applied once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from psycopg import Connection

from hone.core.errors import StoreError

SCHEMA = "hone"
ROLE = "hone_app"
LOCK = 0x686F6E65_646201
"""Of several processes at once, one applies them."""
MIGRATIONS = tuple(sorted(Path(__file__).with_name("migrations").glob("*.sql")))
KNOWN = "SELECT to_regclass('hone.migrations') IS NOT NULL"
TAKEN = "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = 'hone')"
APPLIED = "SELECT coalesce(max(number), 0) FROM hone.migrations"
MEMBER = f"""
SELECT coalesce(
    (SELECT pg_has_role(current_user, oid, 'MEMBER') FROM pg_roles WHERE rolname = '{ROLE}'), false
)
"""
START = """
CREATE SCHEMA IF NOT EXISTS hone;
CREATE TABLE hone.migrations (
    number integer PRIMARY KEY, name text NOT NULL, applied timestamptz NOT NULL DEFAULT now()
)
"""
NOTE = "INSERT INTO hone.migrations (number, name) VALUES (%s, %s)"


def migrate(connection: Connection[Any], where: str, scripts: Sequence[Path] = MIGRATIONS) -> bool:
    """Apply what is new, all or nothing. Return whether this user may work as the application's role."""
    if _version(connection, where, len(scripts)) < len(scripts):
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            _apply(connection, where, scripts)
    return bool(_value(connection, MEMBER))


def examine(connection: Connection[Any], where: str) -> bool:
    """Change nothing. Raises and returns as `migrate` does."""
    _version(connection, where, len(MIGRATIONS))
    return bool(_value(connection, MEMBER))


def _apply(connection: Connection[Any], where: str, scripts: Sequence[Path]) -> None:
    done = _version(connection, where, len(scripts))
    if not done and not _value(connection, KNOWN):
        if _value(connection, TAKEN):
            raise StoreError(
                f"The schema {SCHEMA} of {where} belongs to another program; it was left as it is. "
                "Use another database."
            )
        connection.execute(START)
    connection.execute(f"SET LOCAL search_path = {SCHEMA}")
    for number, script in enumerate(scripts[done:], done + 1):
        connection.execute(script.read_bytes())
        connection.execute(NOTE, (number, script.stem))


def _version(connection: Connection[Any], where: str, latest: int) -> int:
    """Return how many migrations the database has seen."""
    found = int(_value(connection, APPLIED)) if _value(connection, KNOWN) else 0
    if found > latest:
        raise StoreError(
            f"{where} was written by a newer Hone (format {found}, this one knows {latest}); "
            "it was left as it is. Update Hone."
        )
    return found


def _value(connection: Connection[Any], query: str) -> Any:
    row = connection.execute(query).fetchone()
    return row[0] if row else None
