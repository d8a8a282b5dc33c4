"""Remove what erased rows left in the files of PostgreSQL, and search all rows for words.

A deleted row stays in its file until the table is rewritten, and a word stays in an index even longer. The
server's log and its backups are the operator's.
"""

from collections.abc import Sequence

import psycopg
from psycopg import errors, sql

from hone.core.erasure import Scrubber
from hone.stores.postgres.database import PostgresPool, Rows
from hone.stores.postgres.migrating import SCHEMA

OWNED = """
SELECT relname::text FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
WHERE relnamespace = 'hone'::regnamespace AND relkind = 'r' AND attname = 'owner' AND NOT attisdropped
ORDER BY 1
"""
COLUMNS = """
SELECT attname::text, atttypid = 'bytea'::regtype FROM pg_attribute
WHERE attrelid = %(table)s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
DECIDED = " AND kind NOT IN ('rules', 'consent')"
DECISIONS = "SELECT name, body FROM documents WHERE owner = %(owner)s AND kind IN ('rules', 'consent')"
"""The owner's decisions are reported, not changed."""
TOGETHER = 500
WAIT = "60s"
"""How long to wait for a table that others are using."""


def count_rows_with(rows: Rows, scrub: Scrubber) -> tuple[int, dict[str, int]]:
    """Search every column of every table of the owner. Return the number of rows, and by table how many
    contain the words."""
    total, found = 0, dict[str, int]()
    for (table,) in rows.execute(OWNED).fetchall():
        columns = list(rows.pairs(COLUMNS, table=f"{SCHEMA}.{table}"))
        read = ", ".join(name if is_bytes else f"{name}::text" for name, is_bytes in columns)
        decided = DECIDED if table == "documents" else ""
        for values in rows.execute(f"SELECT {read} FROM {table} WHERE owner = %(owner)s{decided}"):
            total += 1
            if any(_holds(each, scrub) for each in values if each is not None):
                found[table] = found.get(table, 0) + 1
    return total, found


def find_decisions(rows: Rows, scrub: Scrubber) -> list[str]:
    """Return the names of documents with the owner's decisions that contain the words, on any machine."""
    found = rows.execute(DECISIONS).fetchall()
    return sorted({str(name) for name, body in found if scrub.finds(body)})


def _holds(value: object, scrub: Scrubber) -> bool:
    return scrub.finds(value) if isinstance(value, bytes) else bool(scrub.count(str(value)))


def rewrite_tables(pool: PostgresPool, tables: Sequence[str] = ()) -> list[str]:
    """Rewrite tables, without deleted rows, with new indexes; all of the owner's if none are named. Other
    processes wait for that long. Return what the owner should know, a sentence each."""
    notes: dict[str, None] = {}
    kept: list[str] = []
    with pool.plainly(), pool.dial() as connection:
        connection.add_notice_handler(lambda notice: kept.append(notice.message_detail or ""))
        connection.execute("SELECT set_config('lock_timeout', %s, false)", (WAIT,))
        for table in tables or [name for (name,) in connection.execute(OWNED).fetchall()]:
            try:
                name = sql.Identifier(SCHEMA, table)
                connection.execute(sql.SQL("VACUUM (FULL, VERBOSE) {}").format(name))
            except (errors.InsufficientPrivilege, errors.LockNotAvailable) as error:
                notes[_tell(pool.where, table, error)] = None
        if _may_checkpoint(connection):
            connection.execute("CHECKPOINT")
    if any(_counts_kept(each) for each in kept):
        notes[
            f"Somebody was still reading in {pool.where}, so that its files keep some of the old rows. "
            "Run this command again."
        ] = None
    return list(notes)


def _may_checkpoint(connection: psycopg.Connection[tuple[object, ...]]) -> bool:
    row = connection.execute("SELECT pg_has_role(current_user, 'pg_checkpoint', 'MEMBER')").fetchone()
    return bool(row and row[0])


def _counts_kept(detail: str) -> bool:
    """Tell whether VACUUM had to keep rows: `12 dead row versions cannot be removed yet.`"""
    count, _, rest = detail.partition(" ")
    return rest.startswith("dead row versions cannot be removed yet") and count != "0"


def _tell(where: str, table: str, error: psycopg.Error) -> str:
    why = "it is in use" if isinstance(error, errors.LockNotAvailable) else "this user does not own the table"
    return (
        f"The files of {where} still hold what was erased, because {why}. "
        f"Have its operator run: VACUUM FULL {SCHEMA}.{table};"
    )
