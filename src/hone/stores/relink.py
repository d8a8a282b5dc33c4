"""Rebuild conversations from the saved messages, during a repair, so that each can be read to its end.

Where messages are missing, the ones before the gap keep the session's name. The ones after it become a
separate session that starts with a note, so that no answer seems to belong to another question.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import apsw
from msgspec import Struct
from msgspec.structs import astuple

from hone.core.errors import Corrupt
from hone.core.ids import SessionId
from hone.core.messages import Message, Role, SystemNote, decode, user
from hone.core.ports import Header
from hone.core.prefix import Prefix
from hone.core.transcript import Node, Transcript, chained
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.stores import rules, tree
from hone.stores.tree import SYMPTOMS, NodeRow, moment
from hone.stores.writer import FOREIGN

ORIGINS = ", ".join(f"'{origin}'" for origin in Origin)
LATEST = 253402300799000000
"""In microseconds, up to the end of the year 9999."""
SOUND = (
    f"UPDATE sessions SET origin = '{Origin.USER}' WHERE origin NOT IN ({ORIGINS})",
    "UPDATE sessions SET shared = max(0, min(shared, messages)), parent = nullif(parent, id)",
    f"UPDATE sessions SET created = min(updated, {LATEST}) WHERE created NOT BETWEEN 0 AND {LATEST}",
    "UPDATE nodes SET former = NULL WHERE former NOT IN (SELECT id FROM nodes)",
    f"UPDATE backlog SET upto = {1 << 60}",
)
HEADS = "SELECT rowid, head FROM sessions INDEXED BY sessions_head"
TOUCHES = "SELECT rowid, touched FROM sessions INDEXED BY sqlite_autoindex_sessions_2"
NAMES = """
SELECT rowid, id, title, origin, folder, parent, shared, created, tree FROM sessions INDEXED BY sessions_tree
"""
SAME = """
SELECT count(*) FROM sessions
WHERE id IS ? AND title IS ? AND origin IS ? AND folder IS ? AND parent IS ? AND shared IS ? AND created IS ?
    AND tree IS ?
"""
# If the row and the index name two heads, use the one with the hash that the row names.
REHEAD = """
UPDATE sessions SET head = ?2
WHERE id = ?1 AND head IS NOT ?2 AND hash IS (SELECT hash FROM nodes WHERE id = ?2)
"""
REVIVE = """
INSERT OR IGNORE INTO sessions (id, title, origin, folder, parent, shared, created, tree,
    model, opened, opening, messages, updated, chain, head, hash, touched)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, coalesce(json_extract(body, '$.model'), ''), 0, '', n.depth, n.at,
    n.chain, n.id, n.hash, coalesce(?10, (SELECT coalesce(max(touched), 0) + 1 FROM sessions))
FROM nodes AS n LEFT JOIN chains ON chains.id = n.chain LEFT JOIN prefixes AS p ON p.id = prefix
WHERE n.id = ?9 AND NOT EXISTS (SELECT 1 FROM sessions WHERE head = ?9)
"""
PLACES = "SELECT rowid, at, content, trust FROM nodes INDEXED BY nodes_at"
PARENTS = "SELECT rowid, parent FROM nodes INDEXED BY nodes_parent WHERE parent IS NOT NULL"
FORMERS = "SELECT rowid, former FROM nodes INDEXED BY nodes_former WHERE former IS NOT NULL"
DOUBT = "UPDATE nodes SET trust = min(trust, ?3) WHERE id = ?1 AND (at, content, trust) IS NOT (?2, ?4, ?3)"
ABOVE = "SELECT chain, depth, hash FROM nodes WHERE id = ?"
ROOT = "SELECT chains.id, 0, digest FROM chains JOIN prefixes AS p ON p.id = prefix WHERE chains.id = ?"
CHAINS = "SELECT head, chain FROM sessions UNION SELECT id, chain FROM nodes"
PUT = """
INSERT OR IGNORE INTO nodes (id, chain, parent, former, depth, trust, at, content, hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
SESSIONS = """
SELECT id, title, origin, folder, shared, model, head, chain, messages FROM sessions ORDER BY touched
"""
END = "SELECT id, chain, depth, hash, at FROM nodes WHERE id = ?"
NODE = """
SELECT n.parent, n.depth, n.trust, n.at, body
FROM nodes AS n LEFT JOIN contents AS c ON c.id = n.content WHERE n.id = ?
"""
DEPTHS = "SELECT depth, id FROM nodes WHERE chain = ?"
MOVE = """
UPDATE sessions SET head = ?, chain = ?, messages = ?, hash = ?, updated = ?, opened = ?, opening = ?,
    shared = ?, model = ? WHERE id = ?
"""
REACHED = """
WITH RECURSIVE reached (id) AS (
    SELECT head FROM sessions
    UNION SELECT parent FROM reached JOIN nodes USING (id) WHERE parent IS NOT NULL
    UNION SELECT former FROM reached JOIN nodes USING (id) WHERE former IS NOT NULL
)
"""
PRUNE = (
    f"{REACHED} DELETE FROM nodes WHERE id NOT IN (SELECT id FROM reached)",
    "DELETE FROM contents WHERE id NOT IN (SELECT content FROM nodes)",
    "DELETE FROM chains WHERE id NOT IN (SELECT chain FROM nodes)",
    "DELETE FROM prefixes WHERE id NOT IN (SELECT prefix FROM chains)",
    # The index of what was said is rebuilt bit by bit, as for older messages.
    "UPDATE backlog SET (upto, done) = (SELECT coalesce(max(id), 0), coalesce(max(id), 0) FROM contents)",
)


LOST = "The messages before this one were lost: the database was damaged."

Said = tuple[Message, Trust, int]


class SavedMessage(Struct, frozen=True):
    """Consecutive messages. `start` is the number that the first of them had."""

    start: int
    said: tuple[Said, ...]

    @property
    def noted(self) -> bool:
        """Whether it begins in the middle of somebody's work."""
        return self.start > 1 and self.said[0][0].role is not Role.USER

    def nodes(self, root: str) -> tuple[Node, ...]:
        transcript = Transcript(root)
        if self.noted:
            transcript = transcript.then(user(SystemNote(LOST)), Trust.AGENT, moment(self.said[0][2]))
        for message, trust, at in self.said:
            transcript = transcript.then(message, trust, moment(at))
        return transcript.nodes


Rest = tuple[Header, Prefix, Sequence[Node]]
"""A session to create from what came after a gap."""


def restore_nodes(source: apsw.Connection, target: apsw.Connection) -> int:
    """Add the nodes that only indexes have. Return how many differ there. Of two labels the lower one
    stays."""
    places, parents, formers = (_indexed(source, each) for each in (PLACES, PARENTS, FORMERS))
    known = {id for (id,) in target.execute("SELECT id FROM nodes")}
    roots = _roots(target, parents) if places.keys() - known else {}
    doubtful = 0
    for id, (at, content, trust) in sorted(places.items()):
        if id in known:
            target.execute(DOUBT, (id, at, trust, content))
            doubtful += target.changes()
            continue
        parent = parents.get(id, (None,))[0]
        above = (ROOT, roots.get(id)) if parent is None else (ABOVE, parent)
        row: Any = target.execute(above[0], above[1:]).get
        digest: Any = target.execute("SELECT digest FROM contents WHERE id = ?", (content,)).get
        if row is not None and digest is not None:
            chain, depth, hash = row
            made = (depth + 1, trust, at, content, chained(hash, digest))
            target.execute(PUT, (id, chain, parent, formers.get(id, (None,))[0], *made))
    return doubtful


def _roots(target: apsw.Connection, parents: Mapping[int, tuple[Any, ...]]) -> dict[int, int]:
    """Return the chain that each first message begins, according to its successors."""
    roots: dict[int, int] = {}
    seen: set[int] = set()
    ends: list[Any] = target.execute(CHAINS).fetchall()
    for end, chain in ends:
        node = end
        while node not in seen:
            seen.add(node)
            if node not in parents:
                roots[node] = chain
                break
            (node,) = parents[node]
    return roots


def restore_sessions(source: apsw.Connection, target: apsw.Connection) -> int:
    """Add the sessions that only indexes have. Return how many differ there."""
    heads, touches, doubtful = _indexed(source, HEADS), _indexed(source, TOUCHES), 0
    for row, said in _indexed(source, NAMES).items():
        if target.execute("SELECT count(*) FROM sessions WHERE id = ?", said[:1]).get:
            doubtful += not target.execute(SAME, said).get
            target.execute(REHEAD, (*said[:1], *heads.get(row, (None,))))
        elif row in heads:
            target.execute(REVIVE, (*said, *heads[row], *touches.get(row, (None,))))
    return doubtful


def _indexed(source: apsw.Connection, query: str) -> dict[int, tuple[Any, ...]]:
    """Return sessions by row number; nothing if that index is damaged, too."""
    try:
        rows: list[Any] = source.execute(query).fetchall()
    except FOREIGN:
        return {}
    return {number: tuple(values) for number, *values in rows}


def relink(connection: apsw.Connection) -> list[Rest]:
    """Relink conversations. Return the sessions to create afterwards."""
    for statement in SOUND:
        connection.execute(statement)
    rest = [each for row in connection.execute(SESSIONS).fetchall() for each in _session(connection, row)]
    for statement in PRUNE:
        connection.execute(statement)
    return rest


def _session(connection: apsw.Connection, row: Sequence[Any]) -> Iterator[Rest]:
    """Rebuild a session from its messages; only the head comes from the row."""
    id, title, origin, folder, shared, model, head, chain, messages = row
    found: Any = connection.execute(END, (head,)).fetchone()
    deepest: Any = connection.execute("SELECT max(depth) FROM nodes WHERE chain = ?", (chain,)).get
    place = NodeRow(*found) if found else NodeRow(head, chain, min(messages, deepest or 0), "", 0)
    prefix = _prefix(connection, place.chain, model)
    try:
        nodes = tree.read_nodes(connection, place, prefix.digest, id)
    except Corrupt:
        nodes = ()
    if nodes and len(nodes) == place.depth:
        connection.execute(MOVE, _columns(place, nodes, shared, prefix.model, id))
        return
    pieces = _pieces(connection, place)
    if not pieces:
        connection.execute("DELETE FROM sessions WHERE id = ?", (id,))
        return
    made = pieces[0].nodes(prefix.digest)
    place = tree.put_nodes(connection, tree.put_chain(connection, prefix), made)
    common = min(shared, len(made)) if pieces[0].start == 1 else 0
    connection.execute(MOVE, _columns(place, made, common, prefix.model, id))
    for number, piece in enumerate(pieces[1:], 2):
        name = f"{title or id} (from message {piece.start} on)"
        header = Header(SessionId(f"{id}-{number}"), moment(piece.said[0][2]), name, Origin(origin), folder)
        yield header, prefix, piece.nodes(prefix.digest)


def _columns(place: NodeRow, nodes: Sequence[Node], shared: int, model: str, id: str) -> tuple[Any, ...]:
    return (*astuple(place), *rules.opening(node.message for node in nodes), shared, model, id)


def _prefix(connection: apsw.Connection, chain: int, model: str) -> Prefix:
    """Return what is left of the prefix. An unreadable one is recreated when the conversation continues."""
    try:
        return tree.read_prefix(connection, chain, "")
    except Corrupt:
        return Prefix(model or "unknown/unknown", "")


def _pieces(connection: apsw.Connection, end: NodeRow) -> list[SavedMessage]:
    pieces: list[SavedMessage] = []
    run: list[Said] = []
    for number, said in enumerate([*_line(connection, end), None], 1):
        # After a gap, results of lost calls are dropped.
        if said is not None and (run or number == 1 or said[0].role is not Role.TOOL):
            run.append(said)
        elif said is None and run:
            pieces.append(SavedMessage(number - len(run), tuple(run)))
            run = []
    return pieces


def _line(connection: apsw.Connection, end: NodeRow) -> list[Said | None]:
    """Return the messages of a conversation in their places; None for lost ones. Where a link is missing, the
    line continues with the only message of its chain in that place."""
    depths: defaultdict[int, list[int]] = defaultdict(list)
    for depth, id in connection.execute(DEPTHS, (end.chain,)):
        depths[depth].append(id)
    line: list[Said | None] = []
    node = end.id
    for depth in range(end.depth, 0, -1):
        if node not in depths[depth]:
            node = depths[depth][0] if len(depths[depth]) == 1 else None
        parent, said = (None, None) if node is None else _said(connection, node)
        line.append(said)
        node = parent
    return line[::-1]


def _said(connection: apsw.Connection, node: int) -> tuple[int | None, Said | None]:
    row: Any = connection.execute(NODE, (node,)).fetchone()
    parent, _, trust, at, body = row
    try:
        moment(at)
        return parent, (decode(body), Trust(trust), at)
    except SYMPTOMS:
        return parent, None
