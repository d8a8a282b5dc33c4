"""Rebuild what is known from the saved changes, during a repair.

Afterwards nothing refers to lost changes, and everything else is complete.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import apsw

from hone.core.errors import Corrupt
from hone.core.jobs import JobId
from hone.core.ledger import SKILL, Actor, Author, Change, ChangeKind, Delta, Target
from hone.stores import curator_runs as rounds
from hone.stores import jobs, ledger
from hone.stores.record import ACTIVE, HOLD, record, shelve
from hone.stores.relink import LATEST

Reader = Callable[[apsw.Connection, int], object]
READERS: Mapping[str, Reader] = {
    "changes": ledger.every,
    "jobs": lambda connection, id: jobs.get(connection, JobId(id)),
    "rounds": lambda connection, id: rounds.select(connection, only=id),
}
"""By table, a function that raises Corrupt for a damaged row."""
LOOSE = (
    "DELETE FROM deltas WHERE change NOT IN (SELECT id FROM changes)",
    "DELETE FROM evidence WHERE change NOT IN (SELECT id FROM changes)",
    "DELETE FROM outbox WHERE change NOT IN (SELECT id FROM changes)",
    "UPDATE changes SET about = NULL WHERE about NOT IN (SELECT id FROM changes)",
    "DELETE FROM mirror WHERE rowid > (SELECT min(rowid) FROM mirror)",
    "DELETE FROM holdings",
    "DELETE FROM skills",
    f"UPDATE jobs SET state = 'cancelled', error = '{jobs.DELETED}' "
    "WHERE state = 'queued' AND session NOT IN (SELECT id FROM sessions)",
    f"DELETE FROM looks WHERE session NOT IN (SELECT id FROM sessions) OR due NOT BETWEEN 0 AND {LATEST}",
)
WITHOUT = """
DELETE FROM deltas WHERE change IN (SELECT id FROM changes WHERE target = ? AND standing = 'active')
"""
HELD = "SELECT digest FROM knowledge"
REASON = "Some of what led to this is lost: the database was damaged."


def refold(connection: apsw.Connection, now: datetime) -> list[str]:
    """Rebuild the holdings. Return the targets whose changes can no longer be undone, since some of them are
    lost."""
    for table, read in READERS.items():
        _drop_unreadable(connection, table, read)
    for statement in LOOSE:
        connection.execute(statement)
    held, broken = _folded(connection)
    for target in broken:
        connection.execute(WITHOUT, (target,))
    for (target, path), name in held.items():
        if target not in broken:
            connection.execute(HOLD, (target, path, name))
    known = {name for (name,) in connection.execute(HELD)}
    for target in broken:
        left = {path: name for (each, path), name in held.items() if each == target and name in known}
        if left:
            deltas = tuple(Delta(path, None, name) for path, name in sorted(left.items()))
            author = Author(Actor.OWNER, reason=REASON)
            record(connection, [Change(Target(target), ChangeKind.REPAIR, deltas, author)], {}, now)
    shelve(connection, [Target(each) for each in _skills(connection)])
    return sorted(broken)


def _drop_unreadable(connection: apsw.Connection, table: str, read: Reader) -> None:
    rows: list[Any] = connection.execute(f"SELECT id FROM {table}").fetchall()
    for (id,) in rows:
        try:
            read(connection, id)
        except Corrupt:
            connection.execute(f"DELETE FROM {table} WHERE id = ?", (id,))


def _folded(connection: apsw.Connection) -> tuple[dict[tuple[str, str], str], set[str]]:
    """Return what the changes make of each target, later ones over earlier ones, and where some are
    missing."""
    known = {name for (name,) in connection.execute(HELD)}
    held: dict[tuple[str, str], str] = {}
    broken: set[str] = set()
    active: list[Any] = connection.execute(ACTIVE).fetchall()
    for _, target, path, before, after in active:
        if held.pop((target, path), None) != before or not {before, after} - {None} <= known:
            broken.add(target)
        if after is not None:
            held[target, path] = after
    waiting: list[Any] = connection.execute(
        "SELECT change, before, after FROM deltas JOIN changes ON id = change WHERE standing <> 'active'"
    ).fetchall()
    for change, before, after in waiting:
        if not {before, after} - {None} <= known:  # nothing that could be shown, let alone approved
            connection.execute("DELETE FROM deltas WHERE change = ?", (change,))
    return held, broken


def _skills(connection: apsw.Connection) -> list[str]:
    rows = connection.execute("SELECT DISTINCT target FROM holdings WHERE target GLOB ?", (f"{SKILL}*",))
    return [str(target) for (target,) in rows]
