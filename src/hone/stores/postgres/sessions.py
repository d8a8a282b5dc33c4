"""Sessions in PostgreSQL, for several processes and machines at once."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

from hone.core.errors import Corrupt
from hone.core.ids import SessionId
from hone.core.jobs import Job, Look, TopicCount, Topics
from hone.core.messages import sound
from hone.core.model import Usage
from hone.core.ports import IMPORTED, Header, SessionSummary, Spending, SpendingTotal, StoredSession
from hone.core.prefix import Prefix
from hone.core.transcript import Node, Transcript
from hone.core.turn import Origin
from hone.stores import rules
from hone.stores.postgres import jobs, looks, tree
from hone.stores.postgres.appending import Append, append
from hone.stores.postgres.database import PostgresStore, Rows, reads, writes_session
from hone.stores.sqlite import find_opening, make_header
from hone.stores.tree import NodeRow, intact, moment, stamp

HEADER = "id, created, title, origin, folder, parent, shared"
SESSION = f"""
SELECT head, chain, messages, hash, updated, opened, opening, tree, {HEADER} FROM sessions
WHERE owner = %(owner)s AND id = %(session)s
"""
SUMMARY = f"""
SELECT model, messages, updated, opening, {HEADER} FROM sessions
WHERE owner = %(owner)s AND (%(origin)s::text IS NULL OR origin = %(origin)s) AND
"""
FOREIGN = f"(parent IS NULL AND model ^@ '{IMPORTED}/' AND model <> '{IMPORTED}/')"
OURS = f"{SUMMARY} NOT {FOREIGN} ORDER BY touched DESC LIMIT %(limit)s"
BROUGHT = f"{SUMMARY} {FOREIGN} ORDER BY updated DESC, touched DESC LIMIT %(limit)s"
TAKEN = "SELECT 1 FROM sessions WHERE owner = %(owner)s AND id = %(session)s"
START = """
INSERT INTO sessions (owner, id, title, origin, folder, parent, shared, created, tree, model, opened, opening,
    messages, updated, chain, head, hash)
VALUES (%(owner)s, %(id)s, %(title)s, %(origin)s, %(folder)s, %(parent)s, %(shared)s, %(created)s, %(tree)s,
    %(model)s, %(opened)s, %(opening)s, %(messages)s, %(updated)s, %(chain)s, %(head)s, %(hash)s)
ON CONFLICT DO NOTHING RETURNING 1
"""
ADVANCE = """
UPDATE sessions SET head = %(head)s, chain = %(chain)s, messages = %(messages)s, hash = %(hash)s,
    updated = %(updated)s, opened = %(opened)s, opening = %(opening)s, touched = nextval('touches'),
    model = %(model)s, shared = %(shared)s
WHERE owner = %(owner)s AND id = %(session)s
"""
RENAME = "UPDATE sessions SET title = %(title)s WHERE owner = %(owner)s AND id = %(session)s RETURNING 1"
DELETE = "DELETE FROM sessions WHERE owner = %(owner)s AND id = %(session)s RETURNING id, tree, head"
PRUNE = "SELECT prune(%(owner)s, %(head)s)"
MADE = """
SELECT id FROM sessions WHERE owner = %(owner)s AND parent = %(session)s AND origin <> %(user)s LIMIT 1
"""
"""Forks and children: what Hone made of a session for itself."""
FIND = "SELECT id FROM sessions WHERE owner = %(owner)s AND id ^@ %(beginning)s"
DELETED = """
SELECT DISTINCT session FROM spending
WHERE owner = %(owner)s AND session ^@ %(beginning)s
    AND session NOT IN (SELECT id FROM sessions WHERE owner = %(owner)s) ORDER BY session
"""
SPENT = """
SELECT at, model, origin, input, cached, written, output, cost FROM spending
WHERE owner = %(owner)s AND (%(session)s::text IS NULL OR session = %(session)s)
    AND (%(since)s::bigint IS NULL OR at >= %(since)s)
    AND (%(origins)s::text[] IS NULL OR origin = ANY (%(origins)s)) ORDER BY id
"""
TOTAL = """
SELECT coalesce(sum(cost), 0), coalesce(sum(CASE WHEN cost IS NULL THEN input + output END), 0)::bigint
FROM spending WHERE owner = %(owner)s AND at >= %(since)s AND at < %(until)s AND origin = ANY (%(origins)s)
"""


class _Session(Struct, frozen=True):
    """The row of a session. `opening` is the result of rules.opening for all of its messages."""

    header: Header
    head: NodeRow
    opening: tuple[int, str]
    tree: SessionId


def _get(rows: Rows, session: SessionId, *, lock: bool = False) -> _Session:
    """Return the row of a session. `lock`: nobody else changes it until this transaction ends."""
    row = rows.one(f"{SESSION} FOR UPDATE" if lock else SESSION, session=sound(session))
    if row is None:
        raise rules.missing(session)
    return _Session(make_header(row[8:]), NodeRow(*row[:5]), row[5:7], row[7])


def read_session(rows: Rows, session: SessionId) -> tuple[Header, NodeRow]:
    """Return the header and the head of a session. Raises Missing."""
    found = _get(rows, session)
    return found.header, found.head


def _start(
    rows: Rows,
    id: SessionId,
    header: Header,
    prefix: Prefix,
    nodes: Sequence[Node],
    look: Look | None = None,
) -> None:
    if rows.one(TAKEN, session=id):
        raise rules.taken(id)
    header = rules.storable(header)
    rules.begin(header, nodes)
    parent = None if header.parent is None else _get(rows, header.parent)
    base, known = _base(rows, header, prefix, parent)
    rules.follow(id, base.hash, nodes)
    head = tree.put_nodes(rows, base, nodes)
    opened, opening = find_opening(known, base.depth, nodes)
    root = id if parent is None else parent.tree
    made = rows.one(
        START,
        **{name: getattr(header, name) for name in ("id", "title", "origin", "folder", "parent", "shared")},
        created=stamp(header.created),
        tree=root,
        model=prefix.model,
        opened=opened,
        opening=opening,
        **_place(head),
    )
    if made is None:
        raise rules.taken(id)
    if look:
        looks.put(rows, header, root, head.depth, look)


def _place(head: NodeRow) -> dict[str, Any]:
    id, chain, depth, hash, at = astuple(head)
    return {"head": id, "chain": chain, "messages": depth, "hash": hash, "updated": at}


def _base(
    rows: Rows, header: Header, prefix: Prefix, parent: _Session | None
) -> tuple[NodeRow, tuple[int, str]]:
    """Return the base of a new session, and the opening if it is shared."""
    if parent is None:
        return tree.put_chain(rows, prefix), (0, "")
    root = tree.read_root(rows, parent.head.chain)
    rules.reach(header, root, prefix.digest, parent.head.depth)
    if not header.shared:
        return tree.put_chain(rows, prefix), (0, "")
    base = tree.read_place(rows, parent.head, header.shared, parent.header.id)
    return base, parent.opening if parent.opening[0] <= header.shared else (0, "")


def _advance(rows: Rows, stored: _Session, head: NodeRow, opening: tuple[int, str], **changed: Any) -> None:
    opened, words = opening
    rows.execute(ADVANCE, session=stored.header.id, opened=opened, opening=words, **_place(head), **changed)


def _move(rows: Rows, session: SessionId, prefix: Prefix, transcript: Transcript) -> None:
    stored, nodes = _get(rows, session, lock=True), transcript.nodes
    rules.follow(session, prefix.digest, nodes)
    before = tree.read_digests(rows, stored.head)
    if [content for _, content in before] != [node.digest for node in nodes]:
        raise rules.changed(session)
    head = tree.put_nodes(rows, tree.put_chain(rows, prefix), nodes, [id for id, _ in before])
    _advance(rows, stored, head, stored.opening, model=prefix.model, shared=stored.header.shared)


def _shorten(
    rows: Rows,
    session: SessionId,
    after: str,
    transcript: Transcript,
    topics: Topics = frozenset(),
    look: Look | None = None,
) -> Job | None:
    """Link the last node of the new line to the old head, so that nothing said is lost with it."""
    stored, nodes = _get(rows, session, lock=True), transcript.nodes
    rules.replaces(session, stored.head.hash, after, nodes)
    prefix = tree.read_prefix(rows, stored.head.chain, session)
    rules.follow(session, prefix.digest, nodes)
    at = stamp(nodes[-1].at)
    job = jobs.queue_pending(rows, session, stored.head.depth, topics, at)
    formers = [*[None] * (len(nodes) - 1), stored.head.id]
    head = tree.put_nodes(rows, tree.put_chain(rows, prefix), nodes, formers)
    _advance(rows, stored, head, find_opening((0, ""), 0, nodes), model=prefix.model, shared=0)
    if look:
        looks.put(rows, stored.header, stored.tree, head.depth, look)
    return job


def _load(rows: Rows, session: SessionId) -> StoredSession:
    stored = _get(rows, session)
    prefix = tree.read_prefix(rows, stored.head.chain, session)
    nodes = tree.read_nodes(rows, stored.head, prefix.digest, session)
    return StoredSession(stored.header, prefix, Transcript(prefix.digest, nodes, stored.header.shared))


def _earlier(rows: Rows, session: SessionId) -> Sequence[StoredSession]:
    stored = _get(rows, session)
    lines: list[StoredSession] = []
    head = tree.read_former(rows, stored.head)
    while head is not None:
        prefix = tree.read_prefix(rows, head.chain, session)
        nodes = tree.read_nodes(rows, head, prefix.digest, session)
        lines.append(StoredSession(stored.header, prefix, Transcript(prefix.digest, nodes)))
        head = tree.read_former(rows, head)
    return tuple(reversed(lines))


def _find(rows: Rows, beginning: str) -> SessionId:
    return rules.select(beginning, [id for (id,) in rows.execute(FIND, beginning=sound(beginning))])


def _list(
    rows: Rows, limit: int | None = None, origin: Origin | None = Origin.USER, *, own: bool = False
) -> Sequence[SessionSummary]:
    brought = [] if own else _summaries(rows, BROUGHT, origin, limit)
    return tuple(rules.interleave(_summaries(rows, OURS, origin, limit), brought))[:limit]


def _summaries(rows: Rows, query: str, origin: Origin | None, limit: int | None) -> list[SessionSummary]:
    return [
        SessionSummary(make_header(header), model, messages, moment(at), opening)
        for model, messages, at, opening, *header in rows.execute(query, origin=origin, limit=limit)
    ]


def _rename(rows: Rows, session: SessionId, title: str) -> None:
    if rows.one(RENAME, session=sound(session), title=sound(title)) is None:
        raise rules.missing(session)


def delete_session(rows: Rows, session: SessionId) -> None:
    row = rows.one(DELETE, session=sound(session))
    if row is None:
        raise rules.missing(session)
    id, root, head = row
    rows.execute(PRUNE, head=head)
    jobs.forsake(rows, id, root)
    while own := rows.value(MADE, session=id, user=Origin.USER):
        delete_session(rows, SessionId(own))


def _find_deleted(rows: Rows, beginning: str) -> Sequence[SessionId]:
    return tuple(id for (id,) in rows.execute(DELETED, beginning=sound(beginning)))


def _spent(
    rows: Rows,
    session: SessionId | None = None,
    *,
    since: datetime | None = None,
    origins: Collection[Origin] = (),
) -> Sequence[Spending]:
    found = rows.execute(
        SPENT,
        session=None if session is None else sound(session),
        since=None if since is None else stamp(since),
        origins=list(origins) or None,
    )
    with intact(Corrupt("What was spent is damaged. Restore the database from a backup.")):
        return tuple(
            Spending(moment(at), model, Origin(origin), Usage(*usage)) for at, model, origin, *usage in found
        )


def _total(rows: Rows, since: datetime, until: datetime, origins: Collection[Origin]) -> SpendingTotal:
    row = rows.one(TOTAL, since=stamp(since), until=stamp(until), origins=list(origins))
    return SpendingTotal(*row) if row else SpendingTotal()


class PostgresSessions(PostgresStore):
    move = writes_session(_move)
    shorten = writes_session(_shorten)
    load = reads(_load)
    earlier = reads(_earlier)
    find = reads(_find, single=True)
    list = reads(_list)
    rename = writes_session(_rename)
    delete = writes_session(delete_session, alone=True)
    find_deleted = reads(_find_deleted)
    spending = reads(_spent)
    total_spending = reads(_total)

    async def start(
        self, header: Header, prefix: Prefix, nodes: Sequence[Node], look: Look | None = None
    ) -> None:
        def work(rows: Rows) -> None:
            _start(rows, header.id, header, prefix, nodes, look)

        await self._database.write(work, header.id)

    async def append(
        self,
        session: SessionId,
        nodes: Sequence[Node],
        spending: Spending | None = None,
        counts: Sequence[TopicCount] = (),
        look: Look | None = None,
    ) -> Job | None:
        return await append(self._database, Append(session, nodes, spending, counts, look))
