"""The ledger in PostgreSQL, in the same database as the sessions: changes, contents, and holdings."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Set
from typing import Any

from hone.core.errors import Corrupt
from hone.core.ledger import (
    EVERY,
    ChangeId,
    ChangeKind,
    ChangeQuery,
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
from hone.stores.ledger import make_entry
from hone.stores.postgres.database import PostgresDatabase, PostgresStore, Rows, reads, writes
from hone.stores.postgres.record import SETTLED, record
from hone.stores.record import reachable
from hone.stores.tree import SYMPTOMS, intact, stamp

CHOSEN = "SELECT id FROM changes AS c WHERE owner = %(owner)s AND {} ORDER BY id DESC LIMIT %(limit)s"
CHANGES = f"""
SELECT id, {SETTLED}, at, target, deed, standing, confirmed, cause, about, sources,
    actor, session, parent, tool, call, reason, ground, quotes, batch, platform
FROM changes AS c WHERE owner = %(owner)s AND id = ANY (%(ids)s::bigint[]) ORDER BY id DESC
"""
PARTS = "WHERE owner = %(owner)s AND change = ANY (%(ids)s::bigint[]) ORDER BY change, position"
DELTAS = f"SELECT change, path, before, after FROM deltas {PARTS}"
EVIDENCE = f"SELECT change, session, message, trust, digest FROM evidence {PARTS}"
RESTING = """
id IN (SELECT id FROM changes WHERE owner = %(owner)s AND session = %(session)s
    UNION SELECT change FROM evidence WHERE owner = %(owner)s AND session = %(session)s)
"""
WAITING = f"standing = 'pending' AND {SETTLED} IS NULL"
KINDS = "SELECT DISTINCT deed FROM changes WHERE owner = %(owner)s AND id > %(since)s"
LATEST = "SELECT coalesce(max(id), 0) FROM changes WHERE owner = %(owner)s"
HELD = "SELECT path, digest FROM holdings WHERE owner = %(owner)s AND target = %(target)s"
HELD_BELOW = "SELECT target, path, digest FROM holdings WHERE owner = %(owner)s AND target ^@ %(beginning)s"
CONTENTS = "SELECT digest, body FROM knowledge WHERE owner = %(owner)s AND digest = ANY (%(digests)s)"
PUBLISHED = """
SELECT target, path, digest, inode, modified FROM published
WHERE owner = %(owner)s AND checkout = %(checkout)s AND target = ANY (%(targets)s)
"""
PUBLISH = """
INSERT INTO published (owner, checkout, target, path, digest, inode, modified)
VALUES (%(owner)s, %(checkout)s, %(target)s, %(path)s, %(digest)s, %(inode)s, %(modified)s)
ON CONFLICT (owner, checkout, target, path) DO UPDATE
SET digest = excluded.digest, inode = excluded.inode, modified = excluded.modified
"""
UNPUBLISH = """
DELETE FROM published
WHERE owner = %(owner)s AND checkout = %(checkout)s AND target = %(target)s AND path = %(path)s
"""


def _entries(rows: Rows, where: str, limit: int | None = None, **values: Any) -> tuple[Entry, ...]:
    ids = [id for (id,) in rows.execute(CHOSEN.format(where), limit=limit, **values)]
    deltas: defaultdict[int, list[Delta]] = defaultdict(list)
    evidence: defaultdict[int, list[Evidence]] = defaultdict(list)
    entries, id = [], 0
    try:
        for id, *delta in rows.execute(DELTAS, ids=ids):
            deltas[id].append(Delta(*delta))
        for id, session, message, trust, name in rows.execute(EVIDENCE, ids=ids):
            evidence[id].append(Evidence(session, message, Trust(trust), name))
        for id, *row in rows.execute(CHANGES, ids=ids):
            entries.append(make_entry(id, row, tuple(deltas[id]), tuple(evidence[id])))
    except SYMPTOMS as error:
        raise Corrupt(
            f"Change {id} is damaged: it is not what was written. Restore the database from a backup."
        ) from error
    return tuple(entries)


def _one(rows: Rows, id: ChangeId) -> Entry:
    for entry in _entries(rows, "id = %(id)s", id=reachable(id)):
        return entry
    raise checks.absent(id)


def _chosen(rows: Rows, query: ChangeQuery = EVERY) -> tuple[Entry, ...]:
    wanted: list[str] = []
    if query.target:
        wanted.append("target ^@ %(target)s" if query.target.endswith(":") else "target = %(target)s")
    if query.actor is not None:
        wanted.append("actor = %(actor)s")
    if query.kinds:
        wanted.append("deed = ANY (%(kinds)s)")
    if query.session:
        wanted.append(RESTING)
    if query.group:
        wanted.append("batch = %(group)s AND batch <> ''")
    if query.since is not None:
        wanted.append("at >= %(since)s")
    if query.after is not None:
        wanted.append("id > %(after)s")
    if query.before is not None:
        wanted.append("id < %(before)s")
    return _entries(
        rows,
        " AND ".join(wanted) or "TRUE",
        query.limit,
        target=sound(query.target),
        actor=query.actor,
        kinds=list(query.kinds),
        session=sound(query.session),
        group=sound(query.group),
        since=None if query.since is None else stamp(query.since),
        after=None if query.after is None else reachable(query.after),
        before=None if query.before is None else reachable(query.before),
    )


def _pending(rows: Rows, target: Target | None = None) -> tuple[Entry, ...]:
    if target is None:
        return _entries(rows, WAITING)[::-1]
    return _entries(rows, f"{WAITING} AND target = %(target)s", target=sound(target))[::-1]


def _latest(rows: Rows) -> ChangeId:
    return ChangeId(rows.value(LATEST))


def _held(rows: Rows, target: Target) -> Held:
    return dict(rows.pairs(HELD, target=sound(target)))


def _held_below(rows: Rows, beginning: str) -> Mapping[Target, Held]:
    held: dict[Target, dict[str, str]] = {}
    for target, path, name in rows.execute(HELD_BELOW, beginning=sound(beginning)):
        held.setdefault(target, {})[path] = name
    return held


def _contents(rows: Rows, digests: Collection[str]) -> Mapping[str, bytes]:
    wanted = dict.fromkeys(digests)
    found = dict(rows.pairs(CONTENTS, digests=[sound(name) for name in wanted]))
    for name in wanted:
        if name not in found:
            raise checks.unknown(name)
        if digest(found[name]) != name:
            raise Corrupt(
                f"The content {name[:12]} is damaged: it is not what was written. "
                "Restore the database from a backup."
            )
    return {name: found[name] for name in wanted}


def _published(
    rows: Rows, checkout: str, targets: Collection[Target]
) -> Mapping[tuple[Target, str], PublishedFile]:
    wanted = [sound(each) for each in targets]
    with intact(Corrupt("The list of published files is damaged. Restore the database from a backup.")):
        return {
            (target, path): PublishedFile(name, int(inode), int(modified))
            for target, path, name, inode, modified in rows.execute(
                PUBLISHED, checkout=checkout, targets=wanted
            )
        }


def _publish(rows: Rows, checkout: str, files: Mapping[tuple[Target, str], PublishedFile | None]) -> None:
    for (target, path), made in sorted(files.items(), key=lambda each: each[0]):
        key = {"checkout": checkout, "target": sound(target), "path": sound(path)}
        if made is None:
            rows.execute(UNPUBLISH, **key)
        else:
            facts = {"digest": made.digest, "inode": str(made.inode), "modified": str(made.modified)}
            rows.execute(PUBLISH, **key, **facts)


def _view(
    rows: Rows, checkout: str, targets: Collection[Target], known: Set[str], since: ChangeId | None
) -> LedgerView:
    held = {target: _held(rows, target) for target in targets}
    contents = _contents(rows, {name for each in held.values() for name in each.values()} - known)
    kinds = None
    if since is not None:
        kinds = frozenset(ChangeKind(kind) for (kind,) in rows.execute(KINDS, since=since))
    return LedgerView(_latest(rows), held, _published(rows, checkout, targets), contents, kinds)


class PostgresLedger(PostgresStore):
    """Only an active change settles another one. `checkout` is the folder that its files are published to."""

    def __init__(self, database: PostgresDatabase, checkout: str) -> None:
        super().__init__(database)
        self._checkout = checkout

    record = writes(record)
    entry = reads(_one)
    entries = reads(_chosen)
    pending = reads(_pending)
    latest = reads(_latest, single=True)
    held = reads(_held)
    held_below = reads(_held_below)
    contents = reads(_contents)

    async def view(
        self,
        targets: Collection[Target],
        known: Set[str] = frozenset(),
        since: ChangeId | None = None,
    ) -> LedgerView:
        return await self._database.read(lambda rows: _view(rows, self._checkout, targets, known, since))

    async def published_files(
        self, targets: Collection[Target]
    ) -> Mapping[tuple[Target, str], PublishedFile]:
        return await self._database.read(lambda rows: _published(rows, self._checkout, targets))

    async def mark_published(self, files: Mapping[tuple[Target, str], PublishedFile | None]) -> None:
        await self._database.write(lambda rows: _publish(rows, self._checkout, files))
