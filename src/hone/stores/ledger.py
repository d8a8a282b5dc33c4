"""The ledger in SQLite, beside the sessions: changes, their contents, what they have made of each target."""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import apsw
from msgspec import Struct

from hone.core.errors import Corrupt
from hone.core.ledger import (
    Actor,
    Author,
    Change,
    ChangeId,
    ChangeKind,
    ChangeState,
    Delta,
    Entry,
    Evidence,
    Holding,
    PublishedFile,
    Target,
)
from hone.core.messages import digest, sound
from hone.core.trust import Trust
from hone.stores import checks, fold
from hone.stores.database import Database
from hone.stores.record import SETTLED, reachable, record
from hone.stores.tree import SYMPTOMS, moment, stamp

COLUMNS = f"""
id, {SETTLED}, at, target, deed, standing, confirmed, cause, about, sources,
actor, session, parent, tool, call, reason, ground, quotes, batch
"""
RESTING = (
    "id IN (SELECT id FROM changes WHERE session = ? UNION SELECT change FROM evidence WHERE session = ?)"
)
WAITING = f"standing = 'pending' AND {SETTLED} IS NULL"
CONTENT = "SELECT body FROM knowledge WHERE digest = ?"
HOLDINGS = "SELECT target, path, digest FROM holdings WHERE target >= ? AND target < ?"
PRINTS = "SELECT target, path, digest, inode, modified FROM prints WHERE target = ?"
PRINT = "INSERT OR REPLACE INTO prints (target, path, digest, inode, modified) VALUES (?, ?, ?, ?, ?)"
UNPRINT = "DELETE FROM prints WHERE target = ? AND path = ?"


class SqliteLedger:
    """The database belongs to whoever opened it. Only an active change settles another one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(
        self, changes: Sequence[Change], contents: Mapping[str, bytes], at: datetime
    ) -> Sequence[Entry]:
        work = partial(record, changes=tuple(changes), contents=dict(contents), at=at)
        return await self._database.write(work)

    async def entry(self, id: ChangeId) -> Entry:
        chosen = _Choice("id = ?", (reachable(id),))
        for entry in await self._database.read(partial(_entries, choice=chosen)):
            return entry
        raise checks.absent(id)

    async def entries(
        self,
        *,
        target: str = "",
        actor: Actor | None = None,
        session: str = "",
        group: str = "",
        since: datetime | None = None,
        after: ChangeId | None = None,
        limit: int | None = None,
    ) -> Sequence[Entry]:
        wanted: list[tuple[str, tuple[Any, ...]]] = []
        if target.endswith(":"):
            wanted.append(("target >= ? AND target < ?", _span(target)))
        elif target:
            wanted.append(("target = ?", (sound(target),)))
        if actor is not None:
            wanted.append(("actor = ?", (actor,)))
        if session:
            wanted.append((RESTING, (sound(session),) * 2))
        if group:
            wanted.append(("batch = ? AND batch <> ''", (sound(group),)))
        if since is not None:
            wanted.append(("at >= ?", (stamp(since),)))
        if after is not None:
            wanted.append(("id > ?", (reachable(after),)))
        where = " AND ".join(condition for condition, _ in wanted)
        values = tuple(value for _, values in wanted for value in values)
        choice = _Choice(where or "TRUE", values, -1 if limit is None else limit)
        return await self._database.read(partial(_entries, choice=choice))

    async def pending(self) -> Sequence[Entry]:
        waiting = await self._database.read(partial(_entries, choice=_Choice(WAITING)))
        return tuple(reversed(waiting))

    async def latest(self) -> ChangeId:
        return await self._database.read(
            lambda connection: connection.execute("SELECT coalesce(max(id), 0) FROM changes").get
        )

    async def holding(self, target: Target) -> Holding:
        return await self._database.read(partial(_holding, target=sound(target)))

    async def holdings(self, beginning: str) -> Mapping[Target, Holding]:
        return await self._database.read(partial(_holdings, beginning=beginning))

    async def contents(self, digests: Collection[str]) -> Mapping[str, bytes]:
        if not digests:
            return {}
        return await self._database.read(partial(_contents, digests=tuple(digests)))

    async def published_files(
        self, targets: Collection[Target]
    ) -> Mapping[tuple[Target, str], PublishedFile]:
        return await self._database.read(partial(_prints, targets=tuple(targets)))

    async def mark_published(self, files: Mapping[tuple[Target, str], PublishedFile | None]) -> None:
        await self._database.write(partial(_publish, files=dict(files)))

    async def unsound(self) -> Sequence[str]:
        """For whoever examines the database: where it is not what the changes say. Reads all of it."""
        return await self._database.read(fold.unsound)


class _Choice(Struct, frozen=True):
    """Which changes, the newest first."""

    where: str
    values: tuple[Any, ...] = ()
    limit: int = -1

    def ask(self, connection: apsw.Connection, question: str) -> apsw.Cursor:
        chosen = f"SELECT id FROM changes AS c WHERE {self.where} ORDER BY id DESC LIMIT ?"
        return connection.execute(f"WITH chosen AS ({chosen}) {question}", (*self.values, self.limit))


def every(connection: apsw.Connection, id: int | None = None) -> tuple[Entry, ...]:
    """For whoever examines the database: all changes, or one. Raises Corrupt."""
    return _entries(connection, _Choice("TRUE") if id is None else _Choice("id = ?", (id,)))


def _entries(connection: apsw.Connection, choice: _Choice) -> tuple[Entry, ...]:
    deltas: defaultdict[int, list[Delta]] = defaultdict(list)
    evidence: defaultdict[int, list[Evidence]] = defaultdict(list)
    id = 0
    try:
        parts = "FROM {} WHERE change IN chosen ORDER BY change, position"
        for id, *delta in choice.ask(
            connection, f"SELECT change, path, before, after {parts.format('deltas')}"
        ):
            deltas[id].append(Delta(*delta))
        named = f"SELECT change, session, message, trust, digest {parts.format('evidence')}"
        for id, session, message, trust, name in choice.ask(connection, named):
            evidence[id].append(Evidence(session, message, Trust(trust), name))
        rows = f"SELECT {COLUMNS} FROM changes AS c WHERE id IN chosen ORDER BY id DESC"
        entries = []
        for id, *row in choice.ask(connection, rows):
            entries.append(_entry(id, row, tuple(deltas[id]), tuple(evidence[id])))
    except SYMPTOMS as error:
        raise Corrupt(
            f"Change {id} is damaged: it is not what was written. Restore the database from a backup."
        ) from error
    return tuple(entries)


def _entry(id: int, row: list[Any], deltas: tuple[Delta, ...], evidence: tuple[Evidence, ...]) -> Entry:
    settled, at, target, deed, standing, confirmed, cause, about, sources, *made = row
    actor, session, parent, tool, call, reason, trust_floor, quotes, group = made
    author = Author(
        Actor(actor),
        session,
        parent,
        tool,
        call,
        reason,
        evidence,
        Trust(trust_floor),
        tuple(json.loads(quotes)),
    )
    known = tuple(json.loads(sources))
    stands = ChangeState(standing)
    change = Change(
        target, ChangeKind(deed), deltas, author, stands, bool(confirmed), cause, about, known, group
    )
    return Entry(ChangeId(id), moment(at), change, settled)


def _span(beginning: str) -> tuple[str, str | bytes]:
    """The first text that begins like this, and the first after all that do. If there is none, a blob: SQLite
    puts every text before it."""
    first = sound(beginning)
    last = first.rstrip("\U0010ffff")
    if not last:
        return first, b""
    following = 0xE000 if last[-1] == "\ud7ff" else ord(last[-1]) + 1
    return first, last[:-1] + chr(following)


def _holding(connection: apsw.Connection, target: str) -> Holding:
    return dict(connection.execute("SELECT path, digest FROM holdings WHERE target = ?", (target,)))


def _holdings(connection: apsw.Connection, beginning: str) -> Mapping[Target, Holding]:
    held: dict[Target, dict[str, str]] = {}
    for target, path, name in connection.execute(HOLDINGS, _span(beginning)):
        held.setdefault(target, {})[path] = name
    return held


def _contents(connection: apsw.Connection, digests: Sequence[str]) -> Mapping[str, bytes]:
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
    connection: apsw.Connection, targets: Sequence[Target]
) -> Mapping[tuple[Target, str], PublishedFile]:
    try:
        return {
            (target, path): PublishedFile(name, int(inode), int(modified))
            for each in targets
            for target, path, name, inode, modified in connection.execute(PRINTS, (sound(each),))
        }
    except SYMPTOMS as error:
        raise Corrupt(
            "The list of published files is damaged. Restore the database from a backup."
        ) from error


def _publish(connection: apsw.Connection, files: Mapping[tuple[Target, str], PublishedFile | None]) -> None:
    for (target, path), made in files.items():
        key = (sound(target), sound(path))
        if made is None:
            connection.execute(UNPRINT, key)
        else:
            connection.execute(PRINT, (*key, made.digest, str(made.inode), str(made.modified)))
