"""Sessions in one SQLite file, for several processes at once."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import apsw
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
from hone.stores import jobs, looks, rules, tree
from hone.stores.database import Store, reads, writes
from hone.stores.tree import NodeRow, moment, stamp

HEADER = "id, created, title, origin, folder, parent, shared"
SESSION = f"""
SELECT head, chain, messages, hash, updated, opened, opening, tree,
    touched = (SELECT max(touched) FROM sessions), {HEADER} FROM sessions WHERE id = ?
"""
SUMMARY = f"""
SELECT model, messages, updated, opening, {HEADER} FROM sessions WHERE (?1 IS NULL OR origin = ?1) AND
"""
FOREIGN = f"(parent IS NULL AND model GLOB '{IMPORTED}/?*')"
OURS = f"{SUMMARY} NOT {FOREIGN} ORDER BY touched DESC LIMIT ?2"
BROUGHT = f"{SUMMARY} {FOREIGN} ORDER BY updated DESC, touched DESC LIMIT ?2"
START = f"""
INSERT INTO sessions ({HEADER}, tree, model, head, chain, messages, hash, updated, opened, opening, touched)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT coalesce(max(touched), 0) + 1 FROM sessions))
"""
ADVANCE = """
UPDATE sessions SET head = ?, chain = ?, messages = ?, hash = ?, updated = ?, opened = ?, opening = ?,
    touched = (SELECT max(touched) + 1 FROM sessions) WHERE id = ?
"""
# If the session was already the latest one, only one index changes, not two.
CONTINUE = """
UPDATE sessions SET head = ?, messages = ?, hash = ?, updated = ?, opened = ?, opening = ? WHERE id = ?
"""
RETURN = CONTINUE.replace(" WHERE", ", touched = (SELECT max(touched) + 1 FROM sessions) WHERE")
DELETE = "DELETE FROM sessions WHERE id = ? RETURNING id, tree, head"
DELETED = """
SELECT DISTINCT session FROM spending
WHERE session >= ? AND session <= ? AND session NOT IN (SELECT id FROM sessions) ORDER BY session
"""
MADE = "SELECT id FROM sessions WHERE parent = ? AND origin <> ? LIMIT 1"
"""Forks and children: what Hone made of a session for itself."""
SPEND = """
INSERT INTO spending (session, at, model, origin, input, cached, written, output, cost)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
SPENT = "SELECT at, model, origin, input, cached, written, output, cost FROM spending WHERE {} ORDER BY id"

TOTAL = """
SELECT total(cost), coalesce(sum(CASE WHEN cost IS NULL THEN input + output END), 0) FROM spending
WHERE at >= ? AND at < ? AND origin IN ({})
"""


class _Session(Struct, frozen=True):
    """The row of a session. `opening` is the result of rules.opening for all of its messages; `latest`: no
    other session has changed since."""

    header: Header
    head: NodeRow
    opening: tuple[int, str]
    tree: SessionId
    latest: bool


def _get(connection: apsw.Connection, session: SessionId) -> _Session:
    row = connection.execute(SESSION, (sound(session),)).fetchone()
    if row is None:
        raise rules.missing(session)
    return _Session(make_header(row[9:]), NodeRow(*row[:5]), row[5:7], row[7], bool(row[8]))


def read_session(connection: apsw.Connection, session: SessionId) -> tuple[Header, NodeRow]:
    """Return the header and the head of a session. Raises Missing."""
    found = _get(connection, session)
    return found.header, found.head


def make_header(row: Sequence[Any]) -> Header:
    id, created, title, origin, folder, parent, shared = row
    with tree.intact(tree.damaged(id, "its header")):
        return Header(id, moment(created), title, Origin(origin), folder, parent, shared)


def _start(
    connection: apsw.Connection,
    header: Header,
    prefix: Prefix,
    nodes: Sequence[Node],
    look: Look | None = None,
) -> None:
    if connection.execute("SELECT 1 FROM sessions WHERE id = ?", (header.id,)).get:
        raise rules.taken(header.id)
    header = rules.storable(header)
    rules.begin(header, nodes)
    parent = None if header.parent is None else _get(connection, header.parent)
    base, known = _base(connection, header, prefix, parent)
    rules.follow(header.id, base.hash, nodes)
    head = tree.put_nodes(connection, base, nodes)
    opening = find_opening(known, base.depth, nodes)
    root = header.id if parent is None else parent.tree
    id, _, *names = astuple(header)
    row = (id, stamp(header.created), *names, root, prefix.model, *astuple(head), *opening)
    connection.execute(START, row)
    if look:
        looks.put(connection, header, root, head.depth, look)


def _base(
    connection: apsw.Connection, header: Header, prefix: Prefix, parent: _Session | None
) -> tuple[NodeRow, tuple[int, str]]:
    """Return the base of a new session, and the opening if it is shared."""
    if parent is None:
        return tree.put_chain(connection, prefix), (0, "")
    root = tree.read_root(connection, parent.head.chain)
    rules.reach(header, root, prefix.digest, parent.head.depth)
    if not header.shared:
        return tree.put_chain(connection, prefix), (0, "")
    base = tree.read_place(connection, parent.head, header.shared, parent.header.id)
    return base, parent.opening if parent.opening[0] <= header.shared else (0, "")


def _append(
    connection: apsw.Connection,
    session: SessionId,
    nodes: Sequence[Node],
    spending: Spending | None = None,
    counts: Sequence[TopicCount] = (),
    look: Look | None = None,
) -> Job | None:
    stored = _get(connection, session)
    rules.follow(session, stored.head.hash, nodes)
    head = tree.put_nodes(connection, stored.head, nodes)
    opening = find_opening(stored.opening, stored.head.depth, nodes)
    place = (head.id, head.depth, head.hash, head.at, *opening, session)
    connection.execute(CONTINUE if stored.latest else RETURN, place)
    if spending is not None:
        use = spending.usage
        tokens = (use.input, use.cached, use.written, use.output)
        row = (session, stamp(spending.at), spending.model, spending.origin, *tokens, use.cost)
        connection.execute(SPEND, row)
    header, root = stored.header, stored.tree
    wider = look.topics if look else frozenset()
    job = jobs.count(connection, header, root, head, counts, wider) if counts else None
    if look and job is None:
        looks.put(connection, header, root, head.depth, look)
    return job


def find_opening(known: tuple[int, str], depth: int, nodes: Sequence[Node]) -> tuple[int, str]:
    if known[0]:
        return known
    number, words = rules.opening(node.message for node in nodes)
    return (depth + number, words) if number else known


def _move(connection: apsw.Connection, session: SessionId, prefix: Prefix, transcript: Transcript) -> None:
    stored, nodes = _get(connection, session), transcript.nodes
    rules.follow(session, prefix.digest, nodes)
    before = tree.read_digests(connection, stored.head)
    if list(before.values()) != [node.digest for node in nodes]:
        raise rules.changed(session)
    head = tree.put_nodes(connection, tree.put_chain(connection, prefix), nodes, formers=before)
    connection.execute(ADVANCE, (*astuple(head), *stored.opening, session))
    connection.execute("UPDATE sessions SET model = ? WHERE id = ?", (prefix.model, session))


def _shorten(
    connection: apsw.Connection,
    session: SessionId,
    after: str,
    transcript: Transcript,
    topics: Topics = frozenset(),
    look: Look | None = None,
) -> Job | None:
    """Link the last node of the new line to the old head, so that nothing said is lost with it."""
    stored, nodes = _get(connection, session), transcript.nodes
    rules.replaces(session, stored.head.hash, after, nodes)
    prefix = tree.read_prefix(connection, stored.head.chain, session)
    rules.follow(session, prefix.digest, nodes)
    formers = [None] * (len(nodes) - 1) + [stored.head.id]
    head = tree.put_nodes(connection, tree.put_chain(connection, prefix), nodes, formers)
    connection.execute(ADVANCE, (*astuple(head), *find_opening((0, ""), 0, nodes), session))
    connection.execute("UPDATE sessions SET shared = 0 WHERE id = ?", (session,))
    job = jobs.queue_pending(connection, session, stored.head.depth, topics, head.at)
    if look:
        looks.put(connection, stored.header, stored.tree, head.depth, look)
    return job


def _load(connection: apsw.Connection, session: SessionId) -> StoredSession:
    stored = _get(connection, session)
    prefix = tree.read_prefix(connection, stored.head.chain, session)
    nodes = tree.read_nodes(connection, stored.head, prefix.digest, session)
    return StoredSession(stored.header, prefix, Transcript(prefix.digest, nodes, stored.header.shared))


def _earlier(connection: apsw.Connection, session: SessionId) -> Sequence[StoredSession]:
    stored = _get(connection, session)
    lines: list[StoredSession] = []
    head = tree.read_former(connection, stored.head)
    while head is not None:
        prefix = tree.read_prefix(connection, head.chain, session)
        nodes = tree.read_nodes(connection, head, prefix.digest, session)
        lines.append(StoredSession(stored.header, prefix, Transcript(prefix.digest, nodes)))
        head = tree.read_former(connection, head)
    return tuple(reversed(lines))


def _find(connection: apsw.Connection, beginning: str) -> SessionId:
    first = sound(beginning)
    rows = connection.execute(
        "SELECT id FROM sessions WHERE id >= ? AND id <= ?", (first, f"{first}\U0010ffff")
    )
    return rules.select(beginning, [id for (id,) in rows])


def _list(
    connection: apsw.Connection,
    limit: int | None = None,
    origin: Origin | None = Origin.USER,
    *,
    own: bool = False,
) -> Sequence[SessionSummary]:
    most = (origin, -1 if limit is None else limit)
    brought = [] if own else _summaries(connection, BROUGHT, most)
    return tuple(rules.interleave(_summaries(connection, OURS, most), brought))[:limit]


def _summaries(
    connection: apsw.Connection, query: str, most: tuple[Origin | None, int]
) -> list[SessionSummary]:
    return [
        SessionSummary(make_header(header), model, messages, moment(at), opening)
        for model, messages, at, opening, *header in connection.execute(query, most)
    ]


def _rename(connection: apsw.Connection, session: SessionId, title: str) -> None:
    stored = _get(connection, session)
    connection.execute("UPDATE sessions SET title = ? WHERE id = ?", (sound(title), stored.header.id))


def delete_session(connection: apsw.Connection, session: SessionId) -> None:
    row = connection.execute(DELETE, (sound(session),)).fetchone()
    if row is None:
        raise rules.missing(session)
    id, root, head = row
    tree.prune(connection, head)
    jobs.forsake(connection, id, root)
    while own := connection.execute(MADE, (id, Origin.USER)).get:
        delete_session(connection, SessionId(own))


def _find_deleted(connection: apsw.Connection, beginning: str) -> Sequence[SessionId]:
    first = sound(beginning)
    return tuple(id for (id,) in connection.execute(DELETED, (first, f"{first}\U0010ffff")))


def _spent(
    connection: apsw.Connection,
    session: SessionId | None = None,
    *,
    since: datetime | None = None,
    origins: Collection[Origin] = (),
) -> Sequence[Spending]:
    wanted, values = ["TRUE"], list[str | int]()
    if session is not None:
        wanted, values = [*wanted, "session = ?"], [*values, sound(session)]
    if since is not None:
        wanted, values = [*wanted, "at >= ?"], [*values, stamp(since)]
    if origins:
        wanted.append(f"origin IN ({', '.join('?' for _ in origins)})")
        values += origins
    rows = connection.execute(SPENT.format(" AND ".join(wanted)), values)
    with tree.intact(Corrupt("What was spent is damaged. Restore the database from a backup.")):
        return tuple(
            Spending(moment(at), model, Origin(origin), Usage(*usage)) for at, model, origin, *usage in rows
        )


def _total(
    connection: apsw.Connection, since: datetime, until: datetime, origins: Collection[Origin]
) -> SpendingTotal:
    marks = ", ".join("?" for _ in origins)
    return SpendingTotal(*connection.execute(TOTAL.format(marks), (stamp(since), stamp(until), *origins)).get)


class SqliteSessions(Store):
    start = writes(_start)
    append = writes(_append)
    move = writes(_move)
    shorten = writes(_shorten)
    load = reads(_load)
    earlier = reads(_earlier)
    find = reads(_find)
    list = reads(_list)
    rename = writes(_rename, lasting=True)
    delete = writes(delete_session, lasting=True)
    find_deleted = reads(_find_deleted)
    spending = reads(_spent)
    total_spending = reads(_total)
