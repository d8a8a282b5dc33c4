"""Update the schema of a PostgreSQL database: scripts, each applied once.

A migration is numbered, and an older Hone refuses a database with a number it does not know. An addition is
named: it only adds tables, nullable columns or functions, so that older servers keep working beside newer
ones, and a newer one can be rolled back.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from psycopg import Connection

from hone.core.errors import StoreError

SCHEMA = "hone"
ROLE = "hone_app"
LOCK = 0x686F6E65_646201
"""If several processes start at once, one applies them."""
MIGRATIONS = tuple(sorted(Path(__file__).with_name("migrations").glob("*.sql")))
ADDITIONS = tuple(sorted(Path(__file__).with_name("additions").glob("*.sql")))
HAS = "SELECT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = 'hone' AND tablename = '{}')"
"""Asks the catalog itself. `to_regclass` may have cached the state from before another process made it."""
KNOWN = HAS.format("migrations")
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
HAS_ADDITIONS = HAS.format("additions")
START_ADDITIONS = """
CREATE TABLE IF NOT EXISTS hone.additions (
    name text PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now()
)
"""
ADDED = "SELECT name FROM hone.additions"
NOTE_ADDITION = "INSERT INTO hone.additions (name) VALUES (%s)"


def migrate(
    connection: Connection[Any],
    where: str,
    scripts: Sequence[Path] = MIGRATIONS,
    additions: Sequence[Path] = ADDITIONS,
) -> bool:
    """Apply what is new, all or nothing. Tell whether this user may work as the application's role."""
    is_current = _version(connection, where, len(scripts)) == len(scripts)
    if not is_current or find_missing(connection, additions):
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            _apply(connection, where, scripts)
            _add(connection, additions)
    return bool(_value(connection, MEMBER))


def examine(connection: Connection[Any], where: str) -> bool:
    """Check without changing anything. It raises and returns as `migrate` does."""
    _version(connection, where, len(MIGRATIONS))
    return bool(_value(connection, MEMBER))


def is_current(
    connection: Connection[Any],
    scripts: Sequence[Path] = MIGRATIONS,
    additions: Sequence[Path] = ADDITIONS,
) -> bool:
    """Tell whether the schema is this Hone's. Additions of a newer one do no harm."""
    found = int(_value(connection, APPLIED)) if _value(connection, KNOWN) else 0
    return found == len(scripts) and not find_missing(connection, additions)


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


def find_missing(connection: Connection[Any], additions: Sequence[Path] = ADDITIONS) -> list[Path]:
    """Return the additions that this database lacks."""
    known = bool(_value(connection, HAS_ADDITIONS))
    seen = {name for (name,) in connection.execute(ADDED)} if known else set()
    return [script for script in additions if script.stem not in seen]


def _add(connection: Connection[Any], additions: Sequence[Path]) -> None:
    connection.execute(START_ADDITIONS)
    for script in find_missing(connection, additions):
        connection.execute(script.read_bytes())
        connection.execute(NOTE_ADDITION, (script.stem,))


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
