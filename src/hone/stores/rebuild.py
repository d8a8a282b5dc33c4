"""Rebuild lost indexes in place, from the rows they are made from.

Everything happens in one transaction. It is kept only if the database is sound afterwards; otherwise nothing
has changed. A tree that SQLite cannot walk is not touched, since its pages may belong to another one by now:
a new one replaces it, and compaction frees the old pages.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw

from hone.core.errors import StoreError
from hone.core.ledger import Target
from hone.stores import passages
from hone.stores.damage import (
    CARDS,
    DERIVED,
    FULL_TEXT,
    HISTORIES,
    HOLDINGS,
    HOURS,
    NUMBERS,
    SPACE,
    VECTORS,
    WORDS,
    BTree,
    Damage,
    DamageKind,
    read_trees,
)
from hone.stores.database import MIGRATIONS, read_script
from hone.stores.examine import examine
from hone.stores.record import HOLD, fold_changes, shelve
from hone.stores.tree import SYMPTOMS
from hone.stores.writer import FOREIGN

LARGEST = 1 << 30
"""The largest file to compact: SQLite keeps a whole copy in memory for it."""
NAMES: Mapping[str, str] = {
    WORDS: "search in conversations",
    CARDS: "search in skills",
    HOLDINGS: "the holdings of journal and skills",
    NUMBERS: "the last row numbers",
    SPACE: "the list of free pages",
    VECTORS: "the vectors of messages, which are made again in the background",
    HOURS: "the sums of what was spent",
    HISTORIES: "the index of histories that clients send, which is filled again as they come",
}
EMPTY = (
    "CREATE TABLE renewed (id INTEGER PRIMARY KEY)",
    "CREATE TABLE renewed (id PRIMARY KEY) WITHOUT ROWID",
)
SWAP = (
    "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = ?) WHERE name = ?"
)
SQL = "SELECT sql FROM sqlite_schema WHERE name = ?"
WIPE_WORDS = (
    "INSERT INTO passage_words (passage_words) VALUES ('delete-all')",
    "DELETE FROM backlog",
    "INSERT INTO backlog (upto, done) SELECT coalesce(max(id), 0), coalesce(max(id), 0) FROM contents",
)
# A card is made again when somebody asks for its skill.
WIPE_CARDS = (
    "DELETE FROM card_words_content",
    "INSERT INTO card_words (card_words) VALUES ('rebuild')",
    "DELETE FROM cards",
    "UPDATE skills SET card = NULL WHERE card IS NOT NULL",
)
WIPE_VECTORS = tuple(f"DELETE FROM {each}" for each, part in DERIVED.items() if part == VECTORS)
RENEW_HOURS = ("DELETE FROM spending_hours", "INSERT INTO spending_hours SELECT * FROM spending_by_hour")
WIPE_HOLDINGS = ("DELETE FROM holdings", "DELETE FROM skills")
NUMBERED = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%'"
STRAY_NUMBERS = f"DELETE FROM sqlite_sequence WHERE name NOT IN ({NUMBERED})"
RENUMBER = """
INSERT OR REPLACE INTO sqlite_sequence (rowid, name, seq)
SELECT (SELECT rowid FROM sqlite_sequence WHERE name = '{0}'), '{0}', max(
    coalesce((SELECT seq FROM sqlite_sequence WHERE name = '{0}'), 0), (SELECT coalesce(max(id), 0) FROM {0})
)
"""


def rebuild(connection: apsw.Connection, path: Path, found: Sequence[Damage]) -> tuple[str, ...] | None:
    """Return what was rebuilt, or None if that is not enough; then nothing was changed. The connection must
    be the only one."""
    parts = dict.fromkeys(damage.part for damage in found if damage.part)
    listed = any(damage.kind is DamageKind.INDEX and damage.part == SPACE for damage in found)
    # While the list of free pages is wrong, every write may hit a page in use.
    if any(damage.kind is DamageKind.TEXT for damage in found) or (listed and parts.keys() != {SPACE}):
        return None
    connection.pragma("synchronous", "FULL")
    connection.pragma("secure_delete", True)
    connection.pragma("temp_store", "memory")
    broken = [tree for damage in found for tree in damage.broken]
    if parts.keys() != {SPACE} and not _mended(connection, parts, broken):
        return None
    if broken or SPACE in parts:
        _compact(connection, path)
    if listed and examine(connection):
        return None
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return tuple(NAMES.get(part, f"the index {part}") for part in parts)


def _mended(connection: apsw.Connection, parts: Collection[str], broken: Iterable[str]) -> bool:
    """Tell whether everything is sound now; otherwise everything is as before."""
    passages.prepare(connection)
    connection.execute("BEGIN IMMEDIATE")
    try:
        _renew(connection, broken)
        _refill(connection, parts)
        if any(damage.kind is not DamageKind.COSMETIC for damage in examine(connection)):
            return False
        connection.execute("COMMIT")
    except (*FOREIGN, *SYMPTOMS, StoreError):
        return False
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return True


def _compact(connection: apsw.Connection, path: Path) -> None:
    """Drop unused pages. If there is no room for that, they only waste space."""
    if path.stat().st_size <= LARGEST:
        with suppress(apsw.Error):
            connection.execute("VACUUM")


def _renew(connection: apsw.Connection, broken: Iterable[str]) -> None:
    """Replace each broken tree with a new one: an index is filled, a table is empty, and so are its
    indexes."""
    trees = read_trees(connection, walk=False)  # nothing is written after an error
    known = {tree.name: tree for tree in trees}
    gone = dict.fromkeys(broken)
    gone |= {tree.name: None for tree in trees if tree.is_index and tree.table in gone}
    for name in sorted(gone, key=lambda each: known[each].is_index):
        connection.execute(_creation(connection, known[name]))
        connection.pragma("writable_schema", "ON")
        connection.execute(SWAP, ("renewed", name))
        connection.execute("DELETE FROM sqlite_schema WHERE name = 'renewed'")
        connection.pragma("schema_version", int(connection.pragma("schema_version")) + 1)
        connection.pragma("writable_schema", "RESET")


def _creation(connection: apsw.Connection, tree: BTree) -> str:
    """Return the statement for a tree of the same form, under the name of "renewed"."""
    sql = str(connection.execute(SQL, (tree.name,)).get or "")
    if not tree.is_index:
        return EMPTY["WITHOUT ROWID" in sql]
    if sql:
        return sql.replace(f"CREATE INDEX {tree.name} ", "CREATE INDEX renewed ", 1)
    columns: list[Any] = connection.execute("SELECT name FROM pragma_index_info(?)", (tree.name,)).fetchall()
    return f"CREATE INDEX renewed ON {tree.table} ({', '.join(name for (name,) in columns)})"


def _refill(connection: apsw.Connection, parts: Collection[str]) -> None:
    for part in parts:
        if part not in NAMES:
            connection.execute(f'REINDEX "{part}"')
    _reset_settings(connection, [index for index, part in FULL_TEXT.items() if part in parts])
    if CARDS in parts:
        _run(connection, WIPE_CARDS)
    if VECTORS in parts:
        _run(connection, WIPE_VECTORS)
    if HISTORIES in parts:
        connection.execute("DELETE FROM histories")
    if HOURS in parts:
        _run(connection, RENEW_HOURS)
    if HOLDINGS in parts:
        _run(connection, WIPE_HOLDINGS)
        held = fold_changes(connection)
        connection.executemany(HOLD, [(*place, name) for place, name in held.items()])
        shelve(connection, dict.fromkeys(Target(target) for target, _ in held))
    if WORDS in parts:
        _run(connection, WIPE_WORDS)
        while passages.fill(connection):
            pass
    if NUMBERS in parts:
        tables: list[Any] = connection.execute(NUMBERED).fetchall()
        connection.execute(STRAY_NUMBERS)
        _run(connection, [RENUMBER.format(name) for (name,) in tables])


def _reset_settings(connection: apsw.Connection, indexes: Sequence[str]) -> None:
    """Give full-text indexes the settings of a new database."""
    with closing(apsw.Connection(":memory:")) as fresh:
        for script in MIGRATIONS[: int(connection.pragma("user_version"))] if indexes else ():
            fresh.execute(read_script(script))
        for index in indexes:
            connection.execute(f"DELETE FROM {index}_config")
            rows = fresh.execute(f"SELECT k, v FROM {index}_config").fetchall()
            connection.executemany(f"INSERT INTO {index}_config (k, v) VALUES (?, ?)", rows)


def _run(connection: apsw.Connection, statements: Iterable[str]) -> None:
    for statement in statements:
        connection.execute(statement)
