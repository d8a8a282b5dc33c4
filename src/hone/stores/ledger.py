"""The ledger in SQLite, in the same database as the sessions: changes, contents, and holdings."""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Set
from typing import Any

import apsw
from msgspec import Struct

from hone.core.errors import Corrupt
from hone.core.ledger import (
    EVERY,
    Actor,
    Author,
    Change,
    ChangeId,
    ChangeKind,
    ChangeQuery,
    ChangeState,
    Delta,
    Entry,
    Evidence,
    Held,
    LedgerView,
    PublishedFile,
    Target,
)
from hone.core.messages import digest, sound
from hone.core.trust import Trust
from hone.stores import checks
from hone.stores.database import Store, reads, writes
from hone.stores.record import SETTLED, reachable, record, unsound
from hone.stores.tree import SYMPTOMS, intact, moment, stamp

COLUMNS = f"""
id, {SETTLED}, at, target, deed, standing, confirmed, cause, about, sources,
actor, session, parent, tool, call, reason, ground, quotes, batch, platform
"""
RESTING = (
    "id IN (SELECT id FROM changes WHERE session = ? UNION SELECT change FROM evidence WHERE session = ?)"
)
WAITING = f"standing = 'pending' AND {SETTLED} IS NULL"
CHOSEN = "(SELECT value FROM json_each(?))"
CHANGES = f"SELECT {COLUMNS} FROM changes AS c WHERE id IN {CHOSEN} ORDER BY id DESC"
PARTS = f"WHERE change IN {CHOSEN} ORDER BY change, position"
DELTAS = f"SELECT change, path, before, after FROM deltas {PARTS}"
EVIDENCE = f"SELECT change, session, message, trust, digest FROM evidence {PARTS}"
KINDS = "SELECT DISTINCT deed FROM changes WHERE id > ?"
CONTENT = "SELECT body FROM knowledge WHERE digest = ?"
HOLDINGS = "SELECT target, path, digest FROM holdings WHERE target >= ? AND target < ?"
PRINTS = "SELECT target, path, digest, inode, modified FROM prints WHERE target = ?"
PRINT = "INSERT OR REPLACE INTO prints (target, path, digest, inode, modified) VALUES (?, ?, ?, ?, ?)"
UNPRINT = "DELETE FROM prints WHERE target = ? AND path = ?"


class _Choice(Struct, frozen=True):
    """A selection of changes, newest first."""

    where: str
    values: tuple[Any, ...] = ()
    limit: int = -1

    def ids(self, connection: apsw.Connection) -> str:
        """Return the ids as a JSON list, for queries about each of them."""
        chosen = f"SELECT id FROM changes AS c WHERE {self.where} ORDER BY id DESC LIMIT ?"
        return json.dumps([id for (id,) in connection.execute(chosen, (*self.values, self.limit))])


def every(connection: apsw.Connection, id: int | None = None) -> tuple[Entry, ...]:
    """Return all changes or one, for a check of the database. Raises Corrupt."""
    return _entries(connection, _Choice("TRUE") if id is None else _Choice("id = ?", (id,)))


def _entries(connection: apsw.Connection, choice: _Choice) -> tuple[Entry, ...]:
    deltas: defaultdict[int, list[Delta]] = defaultdict(list)
    evidence: defaultdict[int, list[Evidence]] = defaultdict(list)
    entries, ids, id = [], (choice.ids(connection),), 0
    try:
        for id, *delta in connection.execute(DELTAS, ids):
            deltas[id].append(Delta(*delta))
        for id, session, message, trust, name in connection.execute(EVIDENCE, ids):
            evidence[id].append(Evidence(session, message, Trust(trust), name))
        for id, *row in connection.execute(CHANGES, ids):
            entries.append(make_entry(id, row, tuple(deltas[id]), tuple(evidence[id])))
    except SYMPTOMS as error:
        raise Corrupt(
            f"Change {id} is damaged: it is not what was written. Restore the database from a backup."
        ) from error
    return tuple(entries)


def _one(connection: apsw.Connection, id: ChangeId) -> Entry:
    for entry in _entries(connection, _Choice("id = ?", (reachable(id),))):
        return entry
    raise checks.absent(id)


def _chosen(connection: apsw.Connection, query: ChangeQuery = EVERY) -> tuple[Entry, ...]:
    wanted: list[tuple[str, tuple[Any, ...]]] = []
    if query.target.endswith(":"):
        wanted.append(("target >= ? AND target < ?", _span(query.target)))
    elif query.target:
        wanted.append(("target = ?", (sound(query.target),)))
    if query.actor is not None:
        wanted.append(("actor = ?", (query.actor,)))
    if query.kinds:
        wanted.append((f"deed IN ({', '.join('?' * len(query.kinds))})", query.kinds))
    if query.session:
        wanted.append((RESTING, (sound(query.session),) * 2))
    if query.group:
        wanted.append(("batch = ? AND batch <> ''", (sound(query.group),)))
    if query.since is not None:
        wanted.append(("at >= ?", (stamp(query.since),)))
    if query.after is not None:
        wanted.append(("id > ?", (reachable(query.after),)))
    if query.before is not None:
        wanted.append(("id < ?", (reachable(query.before),)))
    where = " AND ".join(condition for condition, _ in wanted)
    values = tuple(value for _, values in wanted for value in values)
    limit = -1 if query.limit is None else query.limit
    return _entries(connection, _Choice(where or "TRUE", values, limit))


def _pending(connection: apsw.Connection, target: Target | None = None) -> tuple[Entry, ...]:
    choice = _Choice(WAITING) if target is None else _Choice(f"{WAITING} AND target = ?", (sound(target),))
    return _entries(connection, choice)[::-1]


def _latest(connection: apsw.Connection) -> ChangeId:
    return ChangeId(connection.execute("SELECT coalesce(max(id), 0) FROM changes").get)


def make_entry(id: int, row: list[Any], deltas: tuple[Delta, ...], evidence: tuple[Evidence, ...]) -> Entry:
    settled, at, target, deed, standing, confirmed, cause, about, sources, *made = row
    actor, session, parent, tool, call, reason, trust_floor, quotes, group, platform = made
    place = (session, parent, tool, call, reason)
    said = tuple(json.loads(quotes))
    author = Author(Actor(actor), *place, evidence, Trust(trust_floor), said, platform)
    known = tuple(json.loads(sources))
    stands = ChangeState(standing)
    change = Change(
        target, ChangeKind(deed), deltas, author, stands, bool(confirmed), cause, about, known, group
    )
    return Entry(ChangeId(id), moment(at), change, settled)


def _span(beginning: str) -> tuple[str, str | bytes]:
    """Return the first text with this prefix, and the first text after all of them. If there is none, return
    a blob: SQLite sorts every text before it."""
    first = sound(beginning)
    last = first.rstrip("\U0010ffff")
    if not last:
        return first, b""
    following = 0xE000 if last[-1] == "\ud7ff" else ord(last[-1]) + 1
    return first, last[:-1] + chr(following)


def _held(connection: apsw.Connection, target: Target) -> Held:
    held = "SELECT path, digest FROM holdings WHERE target = ?"
    return dict(connection.execute(held, (sound(target),)))


def _held_below(connection: apsw.Connection, beginning: str) -> Mapping[Target, Held]:
    held: dict[Target, dict[str, str]] = {}
    for target, path, name in connection.execute(HOLDINGS, _span(beginning)):
        held.setdefault(target, {})[path] = name
    return held


def _contents(connection: apsw.Connection, digests: Collection[str]) -> Mapping[str, bytes]:
    found: dict[str, bytes] = {}
    for name in digests:
        body = connection.execute(CONTENT, (sound(name),)).get
        if body is None:
            raise checks.unknown(name)
        if not isinstance(body, bytes) or digest(body) != name:
            raise Corrupt(
                f"The content {name[:12]} is damaged: it is not what was written. "
                "Restore the database from a backup."
            )
        found[name] = body
    return found


def _prints(
    connection: apsw.Connection, targets: Collection[Target]
) -> Mapping[tuple[Target, str], PublishedFile]:
    with intact(Corrupt("The list of published files is damaged. Restore the database from a backup.")):
        return {
            (target, path): PublishedFile(name, int(inode), int(modified))
            for each in targets
            for target, path, name, inode, modified in connection.execute(PRINTS, (sound(each),))
        }


def _publish(connection: apsw.Connection, files: Mapping[tuple[Target, str], PublishedFile | None]) -> None:
    for (target, path), made in files.items():
        key = (sound(target), sound(path))
        if made is None:
            connection.execute(UNPRINT, key)
        else:
            connection.execute(PRINT, (*key, made.digest, str(made.inode), str(made.modified)))


def _view(
    connection: apsw.Connection,
    targets: Collection[Target],
    known: Set[str] = frozenset(),
    since: ChangeId | None = None,
) -> LedgerView:
    held = {target: _held(connection, target) for target in targets}
    contents = _contents(connection, {name for each in held.values() for name in each.values()} - known)
    made = () if since is None else connection.execute(KINDS, (since,))
    kinds = None if since is None else frozenset(ChangeKind(kind) for (kind,) in made)
    return LedgerView(_latest(connection), held, _prints(connection, targets), contents, kinds)


class SqliteLedger(Store):
    """The ledger in SQLite. Only an active change settles another one."""

    record = writes(record)
    entry = reads(_one)
    entries = reads(_chosen)
    pending = reads(_pending)
    latest = reads(_latest)
    held = reads(_held)
    view = reads(_view)
    held_below = reads(_held_below)
    contents = reads(_contents)
    published_files = reads(_prints)
    mark_published = writes(_publish)
    unsound = reads(unsound)
