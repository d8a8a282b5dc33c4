"""The tree of messages in SQLite: prefixes, contents by digest, chains and their nodes.

It knows only one thing about sessions: their heads keep nodes alive.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import repeat
from operator import itemgetter
from typing import Any

import apsw
from msgspec import Struct

from hone.core.errors import Corrupt
from hone.core.messages import decode, digest
from hone.core.prefix import Prefix
from hone.core.transcript import Node, chained
from hone.core.trust import Trust
from hone.stores import passages

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
SYMPTOMS = (KeyError, TypeError, ValueError, OverflowError)
"""Errors of reading a damaged row as if it were whole."""

ROOT = "SELECT digest FROM chains JOIN prefixes AS p ON p.id = prefix WHERE chains.id = ?"
PREFIX = "SELECT digest, body FROM chains JOIN prefixes AS p ON p.id = prefix WHERE chains.id = ?"

# From a node up to its root. The depth must fall with each step, so that a damaged link cannot form a cycle.
LINE = """
WITH RECURSIVE line (id, parent, content, depth, trust, at, hash) AS (
    SELECT id, parent, content, depth, trust, at, hash FROM nodes WHERE id = ?1
    UNION ALL
    SELECT n.id, n.parent, n.content, n.depth, n.trust, n.at, n.hash
    FROM line JOIN nodes AS n ON n.id = line.parent AND n.depth = line.depth - 1
)
"""
WHOLE = (
    f"{LINE} SELECT depth, trust, at, hash, digest, body FROM line LEFT JOIN contents AS c ON c.id = content"
)
DIGESTS = f"{LINE} SELECT depth, line.id, digest FROM line LEFT JOIN contents AS c ON c.id = content"

# The messages of a window, and the hash before them, without walking further up.
WINDOW = """
WITH RECURSIVE line (id, parent, content, depth, trust, at, hash) AS (
    SELECT id, parent, content, depth, trust, at, hash FROM nodes WHERE id = ?1
    UNION ALL
    SELECT n.id, n.parent, n.content, n.depth, n.trust, n.at, n.hash
    FROM line JOIN nodes AS n ON n.id = line.parent AND n.depth = line.depth - 1 AND n.depth >= ?2 - 1
)
SELECT depth, trust, at, hash, digest, CASE WHEN depth >= ?2 THEN body END
FROM line LEFT JOIN contents AS c ON c.id = content WHERE depth <= ?3 ORDER BY depth
"""

PLACE = f"{LINE} SELECT id, hash, at FROM line WHERE depth = ?2 LIMIT 1"

# Former lines are older than later ones, so that a damaged link cannot form a cycle.
FORMER = f"""{LINE}
SELECT f.id, f.chain, f.depth, f.hash, f.at
FROM line JOIN nodes AS n ON n.id = line.id JOIN nodes AS f ON f.id = n.former AND f.id < n.id
ORDER BY line.depth DESC LIMIT 1
"""

PUT_PREFIX = "INSERT INTO prefixes (digest, body) VALUES (?, ?) ON CONFLICT DO NOTHING"
PUT_CHAIN = "INSERT INTO chains (prefix) SELECT id FROM prefixes WHERE digest = ? RETURNING id"
PUT_CONTENT = "INSERT INTO contents (digest, body) VALUES (?, ?) ON CONFLICT DO NOTHING"
LAST_NODE = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'nodes'), 0)"
PUT_NODE = """
INSERT INTO nodes (id, chain, parent, former, depth, trust, at, hash, content)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, (SELECT id FROM contents WHERE digest = ?))
"""

NEEDED = """
SELECT EXISTS (SELECT 1 FROM nodes WHERE parent = ?1) OR EXISTS (SELECT 1 FROM sessions WHERE head = ?1)
    OR EXISTS (SELECT 1 FROM nodes WHERE former = ?1)
"""
DROP_NODE = "DELETE FROM nodes WHERE id = ? RETURNING parent, former, content, chain"
DROP_CONTENT = """
DELETE FROM contents WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM nodes WHERE content = ?1) RETURNING id, body
"""
DROP_CHAIN = "DELETE FROM chains WHERE id = ? RETURNING prefix"
DROP_PREFIX = "DELETE FROM prefixes WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM chains WHERE prefix = ?1)"


class NodeRow(Struct, frozen=True):
    """Where a conversation can continue: after a node, or at the root of a chain without nodes."""

    id: int | None
    chain: int
    depth: int
    hash: str
    at: int


def stamp(at: datetime) -> int:
    return (at - EPOCH) // MICROSECOND


def moment(stamp: int) -> datetime:
    return EPOCH + timedelta(microseconds=stamp)


def put_chain(connection: apsw.Connection, prefix: Prefix) -> NodeRow:
    connection.execute(PUT_PREFIX, (prefix.digest, prefix.encode()))
    chain = _put(connection, PUT_CHAIN, (prefix.digest,))
    return NodeRow(None, chain, 0, prefix.digest, 0)


def put_nodes(
    connection: apsw.Connection,
    place: NodeRow,
    nodes: Sequence[Node],
    formers: Iterable[int | None] = repeat(None),
) -> NodeRow:
    """Add the nodes after a place. Return the place after them. Each table gets all of its rows at once,
    which halves the time if there are many."""
    connection.executemany(PUT_CONTENT, [(node.digest, node.encoded) for node in nodes])
    id: int = connection.execute(LAST_NODE).get
    rows: list[tuple[int | str | None, ...]] = []
    for node, former in zip(nodes, formers, strict=False):
        parent, id, depth, at = place.id, id + 1, place.depth + 1, stamp(node.at)
        rows.append((id, place.chain, parent, former, depth, int(node.trust), at, node.hash, node.digest))
        place = NodeRow(id, place.chain, depth, node.hash, at)
    connection.executemany(PUT_NODE, rows)
    return place


def read_root(connection: apsw.Connection, chain: int) -> str:
    """Return the digest of the chain's prefix."""
    return str(connection.execute(ROOT, (chain,)).get)


def read_prefix(connection: apsw.Connection, chain: int, whose: str) -> Prefix:
    with intact(damaged(whose, "its prefix")):
        written, body = connection.execute(PREFIX, (chain,)).get
        if digest(body) != written:
            raise ValueError(written)
        return Prefix.decode(body)


def read_nodes(connection: apsw.Connection, head: NodeRow, root: str, whose: str) -> tuple[Node, ...]:
    """Return the line from the root to the head. Each content and each link is checked against its digest."""
    nodes: list[Node] = []
    parent = root
    try:
        for row in sorted(connection.execute(WHOLE, (head.id,)), key=itemgetter(0)):
            nodes.append(make_node(parent, len(nodes) + 1, row))
            parent = nodes[-1].hash
    except SYMPTOMS as error:
        raise damaged(whose, f"message {len(nodes) + 1}") from error
    if parent != head.hash:
        raise damaged(whose, "its last message")
    return tuple(nodes)


def read_window(
    connection: apsw.Connection, head: NodeRow, first: int, last: int, root: str, whose: str
) -> tuple[Node, ...]:
    """Return the messages from number `first` to `last`. Each content and each link is checked against its
    digest."""
    if first > head.depth:
        return ()
    last = min(last, head.depth)
    rows: list[Any] = connection.execute(WINDOW, (head.id, first, last)).fetchall()
    nodes: list[Node] = []
    with intact(damaged(whose, f"a message between {first} and {last}")):
        if len(rows) != last - first + (2 if first > 1 else 1):
            raise ValueError(last)
        parent = str(rows.pop(0)[3]) if first > 1 else root
        for number, row in enumerate(rows, first):
            nodes.append(make_node(parent, number, row))
            parent = nodes[-1].hash
        if last == head.depth and parent != head.hash:
            raise ValueError(parent)
    return tuple(nodes)


def read_former(connection: apsw.Connection, head: NodeRow) -> NodeRow | None:
    """Return the end of the line that was abandoned for the one that ends in `head`."""
    row = connection.execute(FORMER, (head.id,)).fetchone()
    return None if row is None else NodeRow(*row)


def read_digests(connection: apsw.Connection, head: NodeRow) -> dict[int, str]:
    """Return node ids and the digests of their contents, from the root to the head."""
    rows = sorted(connection.execute(DIGESTS, (head.id,)), key=itemgetter(0))
    return {id: content for _, id, content in rows}


def read_place(connection: apsw.Connection, head: NodeRow, depth: int, whose: str) -> NodeRow:
    """Return the place at this depth on the line that ends in `head`."""
    with intact(damaged(whose, f"message {depth}")):
        id, hash, at = connection.execute(PLACE, (head.id, depth)).get
    return NodeRow(id, head.chain, depth, hash, at)


def prune(connection: apsw.Connection, head: int) -> None:
    """Remove what nothing needs any more of a line: its head, the nodes before it, and their former versions.
    Damaged rows are removed as far as possible."""
    waiting: list[int | None] = [head]
    gone: list[Any] = []
    while waiting:
        node = waiting.pop()
        if node is None or connection.execute(NEEDED, (node,)).get:
            continue
        dropped: list[Any] = connection.execute(DROP_NODE, (node,)).fetchall()
        for parent, former, content, chain in dropped:
            gone += connection.execute(DROP_CONTENT, (content,)).fetchall()
            if parent is None:
                prefix = connection.execute(DROP_CHAIN, (chain,)).get
                connection.execute(DROP_PREFIX, (prefix,))
            waiting += (parent, former)
    passages.drop(connection, gone)


@contextmanager
def intact(damage: Corrupt) -> Iterator[None]:
    """Turn any error inside into Corrupt: a row is not what was written."""
    try:
        yield
    except SYMPTOMS as error:
        raise damage from error


def damaged(whose: str, what: str) -> Corrupt:
    return Corrupt(
        f"Session {whose} is damaged: {what} is not what was written. "
        "Restore the database from a backup, or delete the session."
    )


def make_node(parent: str, number: int, row: tuple[Any, ...]) -> Node:
    depth, trust, at, hash, content, body = row
    if depth != number or digest(body) != content or chained(parent, content) != hash:
        raise ValueError(hash)
    return Node(decode(body), Trust(trust), moment(at), parent, body, content, hash)


def _put(connection: apsw.Connection, statement: str, row: tuple[int | str | None, ...]) -> int:
    id = connection.execute(statement, row).get
    if id is None:  # only a damaged index hides what was inserted just before
        raise Corrupt("The database is damaged: an index has lost an entry. Rebuild it: hone doctor --repair")
    return int(id)
