"""Replace a damaged database with a repaired copy, and keep the damaged file beside it.

Readable rows are copied one by one into a new file, which is completed there and moved into place with one
rename. An interruption before the rename changes nothing.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, BinaryIO

import apsw
from msgspec import Struct

from hone.core.errors import Corrupt, StoreError
from hone.core.messages import digest
from hone.files.atomic import sync_folder
from hone.stores import passages, salvage
from hone.stores.damage import Damage
from hone.stores.database import PATIENCE, Database, connect, create, migrate, plainly
from hone.stores.examine import examine
from hone.stores.rebuild import rebuild
from hone.stores.refold import READERS, refold
from hone.stores.relink import Rest, relink, restore_nodes, restore_sessions
from hone.stores.salvage import Row, Table
from hone.stores.sqlite import SqliteSessions
from hone.stores.writer import FOREIGN

BY_DIGEST = ("prefixes", "contents", "knowledge")
TABLES = (
    *BY_DIGEST,
    *("chains", "nodes", "sessions", "spending"),
    *("changes", "deltas", "evidence", "prints", "outbox", "mirror"),
    *("jobs", "counts", "looks", "rounds", "tallies", "uses", "erasures"),
)
"""All tables except derived ones: holdings and skills, cards, and both word indexes."""
LABELS: Mapping[str, tuple[str, ...]] = {"evidence": ("trust",), "changes": ("ground", "confirmed")}
"""Columns whose values must never be too high."""
KEYS = {"evidence": ("change", "position"), "changes": ("id",)}
COUNTED = {"sessions": "sessions", "messages": "nodes", "changes": "changes"}
COUNTED_BEFORE = "INSERT OR IGNORE INTO counts (tree, topic, count) VALUES (?, ?, ?)"
SAID = "SELECT content FROM nodes {}"
NAMED = "SELECT rowid, digest FROM contents {}"
NAMES = ("NOT INDEXED", "INDEXED BY sqlite_autoindex_contents_1")
WAYS = ("NOT INDEXED", "INDEXED BY nodes_content", "INDEXED BY nodes_at")


class Count(Struct, frozen=True):
    """`gone` is None if nobody can tell any more how many there were."""

    saved: int
    gone: int | None


class Repaired(Struct, frozen=True):
    """The result of a repair. `parts` are sessions made from what came after lost messages; `doubtful` rows
    are stored twice and differ; the changes of what is `cut` can no longer be undone; `left` is still
    damaged."""

    kept: Path
    counts: Mapping[str, Count]
    parts: int
    doubtful: int
    cut: tuple[str, ...]
    left: tuple[Damage, ...]


class Rebuilt(Struct, frozen=True):
    """What was rebuilt in place; nothing is lost."""

    parts: tuple[str, ...]


async def repair(path: Path, now: datetime) -> Repaired | Rebuilt | None:
    """Repair a database. Return None if there was nothing to repair. Lost indexes are rebuilt in place; for
    lost text a repaired copy replaces the database. Raises StoreError if another process has the database
    open, and Corrupt if nothing of it can be read; then it stays as it is."""
    copy = path.with_name(f"{path.name}.repairing")
    kept = path.with_name(f"{path.stem}-damaged-{now:%Y%m%d-%H%M%S}{path.suffix}")
    # Opened first and closed last: closing it earlier would drop the lock that keeps others out.
    with plainly(path), path.open("rb") as file, _alone(path) as source:
        found = examine(source)
        if not found:
            return None
        if (parts := rebuild(source, path, found)) is not None:
            return Rebuilt(parts)
        _clear(copy)
        try:
            with _legible(source, path, copy) as legible:
                said = _said(legible)
                counts, doubtful, cut, rest = _rebuilt(legible, file, copy, now)
            left = await _finished(copy, rest)
            after = _counted(copy, said, len(rest))
            _replace(path, copy, kept)
        finally:
            _clear(copy)
    saved = {
        name: Count(after[name], None if before is None else max(0, before - after[name]))
        for name, before in counts.items()
    }
    return Repaired(kept, saved, len(rest), doubtful, tuple(cut), tuple(left))


@contextmanager
def _alone(path: Path) -> Iterator[apsw.Connection]:
    """Yield the database while nobody else can open it."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        # The log is handled by hand, and the one that is there in the end belongs to the new file.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.pragma("locking_mode", "exclusive")
        connection.pragma("cell_size_check", True)
        _seize(connection, path)
        yield connection
    finally:
        connection.close()


def _seize(connection: apsw.Connection, path: Path) -> None:
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except apsw.BusyError as error:
        raise StoreError(
            f"Another process has {path} open; nothing was changed. Stop it and try again."
        ) from error
    except apsw.Error:
        return  # it is damaged, which is why we are here


@contextmanager
def _legible(source: apsw.Connection, path: Path, copy: Path) -> Iterator[apsw.Connection]:
    """Yield the database with readable tables. If their positions are lost, use those of every file that
    this Hone creates."""
    try:
        source.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        salvage.table(source, "contents")
        legible = None
    except FOREIGN:
        legible = salvage.patch_schema(path, copy)
    if legible is None:
        yield source
        return
    with closing(apsw.Connection(str(legible))) as connection:
        yield connection


def _rebuilt(
    source: apsw.Connection, file: BinaryIO, copy: Path, now: datetime
) -> tuple[Mapping[str, int | None], int, list[str], list[Rest]]:
    """Return everything that can be saved, in a new file."""
    create(copy)
    with closing(connect(copy, PATIENCE)) as target:
        migrate(target, copy, PATIENCE)
        passages.prepare(target)
        known = _tables(source)
        counts = {name: salvage.count(source, of) for name, of in COUNTED.items()}
        with target:
            home = target.execute("SELECT home, backend FROM mirror").get
            target.execute("DELETE FROM mirror")
            doubtful = sum(_copied(source, target, file, known[name]) for name in TABLES if name in known)
            _carry_counters(source, target)
            doubtful += restore_nodes(source, target) + restore_sessions(source, target)
            if not target.execute("SELECT count(*) FROM mirror").get:
                target.execute("INSERT INTO mirror (home, backend) VALUES (?, ?)", home)
            _number(source, target)
            rest = relink(target)
            cut = refold(target, now)
    return counts, doubtful, cut, rest


def _tables(source: apsw.Connection) -> dict[str, Table]:
    names = {name for (name,) in source.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    return {name: salvage.table(source, name) for name in TABLES if name in names}


def _carry_counters(source: apsw.Connection, target: apsw.Connection) -> None:
    """Save what was counted before migration 8: a row for each tree, with a column for each of two topics."""
    if not source.execute("SELECT 1 FROM sqlite_schema WHERE name = 'counters'").get:
        return
    table = salvage.table(source, "counters")
    for each in (table, salvage.twin(source, table)):
        for tree, *counts in salvage.read(source, each)[0] if each else ():
            for topic, count in zip(("memory", "skills"), counts, strict=True):
                salvage.put(target, COUNTED_BEFORE, (tree, topic, count))


def _said(source: apsw.Connection) -> list[str]:
    """Return the digest of each message, from whichever source has most of them."""
    names, nodes = _longest(source, NAMED, NAMES), _longest(source, SAID, WAYS)
    named: dict[int, str] = dict(names)
    return [named.get(content, "") for (content,) in nodes]


def _longest(source: apsw.Connection, query: str, ways: tuple[str, ...]) -> list[Any]:
    return max((_asked(source, query.format(way)) for way in ways), key=len)


def _asked(source: apsw.Connection, query: str) -> list[Any]:
    """Return the result of a query; nothing if not all of it can be read."""
    try:
        return source.execute(query).fetchall()
    except FOREIGN:
        return []


def _copied(source: apsw.Connection, target: apsw.Connection, file: BinaryIO, table: Table) -> int:
    """Copy what the table has, then what only its twin has. Return how many rows differ between the two."""
    statement, good = salvage.insertion(table), _good(table)
    rows, whole = salvage.read(source, table)
    for row in filter(good, rows):
        salvage.put(target, statement, row)
    if table.name in BY_DIGEST and not whole():
        for row in _loose(source, target, file, table):
            salvage.put(target, statement, row)
    twin = salvage.twin(source, table)
    if twin is None:
        return 0
    again, _ = salvage.read(source, twin)
    return sum(_differs(target, table, row) for row in again if not salvage.put(target, statement, row))


def _loose(source: apsw.Connection, target: apsw.Connection, file: BinaryIO, table: Table) -> Iterator[Row]:
    """Yield contents that an index names and the table does not have."""
    named = f"SELECT rowid, digest FROM {table.name} INDEXED BY sqlite_autoindex_{table.name}_1"
    wanted = set(_asked(source, named))
    wanted -= set(target.execute(f"SELECT id, digest FROM {table.name}").fetchall())
    if wanted:
        with mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            yield from salvage.find_contents(data, wanted)


def _differs(target: apsw.Connection, table: Table, row: Row) -> bool:
    """Tell whether two rows that should be equal differ. If so, keep a usable one, with the lowest labels."""
    same = " AND ".join(f'"{column}" IS ?' for column in table.columns)
    if target.execute(f"SELECT count(*) FROM {table.name} WHERE {same}", row).get:
        return False
    if table.name in READERS:
        id = row[table.columns.index("id")]
        try:
            READERS[table.name](target, id)
        except Corrupt:
            salvage.put(target, salvage.insertion(table, over=True), row)
    for column in LABELS.get(table.name, ()):
        keys = " AND ".join(f'"{key}" IS ?' for key in KEYS[table.name])
        values = tuple(row[table.columns.index(key)] for key in KEYS[table.name])
        target.execute(f"UPDATE {table.name} SET {column} = 0 WHERE {keys}", values)
    return True


def _good(table: Table) -> Callable[[Row], bool]:
    if table.name not in BY_DIGEST:
        return lambda _: True
    name, body = table.columns.index("digest"), table.columns.index("body")
    return lambda row: isinstance(row[body], bytes) and digest(row[body]) == row[name]


def _number(source: apsw.Connection, target: apsw.Connection) -> None:
    """Set the next number: none is reused, not even that of a lost row."""
    try:
        last: list[Any] = source.execute("SELECT name, seq FROM sqlite_sequence").fetchall()
    except FOREIGN:
        return
    for name, number in last:
        target.execute("UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1", (name, number))
        if not target.changes() and name in TABLES:
            target.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (name, number))


async def _finished(copy: Path, rest: list[Rest]) -> list[Damage]:
    """Create what is left to create. Return what is still damaged."""
    database = Database.open(copy)
    try:
        sessions = SqliteSessions(database)
        for header, prefix, nodes in rest:
            await sessions.start(header, prefix, nodes)
        return await database.read(examine)
    finally:
        await database.close()


def _counted(copy: Path, said: list[str], parts: int) -> dict[str, int]:
    """Count messages. One that several sessions share counts once, as before. Afterwards the new file has no
    log."""
    with closing(connect(copy, PATIENCE)) as connection:
        counts = {name: salvage.count(connection, table) or 0 for name, table in COUNTED.items()}
        counts["sessions"] -= parts
        left = {name for (name,) in connection.execute("SELECT digest FROM contents")}
        counts["messages"] = sum(name in left for name in said)
        connection.pragma("synchronous", "FULL")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return counts


def _replace(path: Path, copy: Path, kept: Path) -> None:
    """Replace the old file, and keep it with its log: left in place, the log would meet another file."""
    os.link(path, kept)
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        os.replace(log, kept.with_name(f"{kept.name}-wal"))
    os.replace(copy, path)
    sync_folder(path.parent)


def _clear(copy: Path) -> None:
    for each in copy.parent.glob(f"{copy.name}*"):
        each.unlink()
