"""Which session a message belongs to, in SQLite, whatever has been branched, moved or left behind."""

from collections.abc import Iterable, Sequence
from typing import Any

import apsw
from msgspec import Struct

from hone.core.ids import SessionId
from hone.stores.window import ALWAYS, Window

OCCURRENCES = 20
"""Nodes of one content that are looked at, the latest first: some words are said every day."""

NODES = f"""
SELECT content, id, chain, depth, parent, trust, at FROM nodes WHERE content = ? AND at BETWEEN ? AND ?
ORDER BY id DESC LIMIT {OCCURRENCES}
"""
NODE = "SELECT content, id, chain, depth, parent, trust, at FROM nodes WHERE id = ?"
NEXT = "SELECT content, id, chain, depth, parent, trust, at FROM nodes WHERE parent = ? ORDER BY id LIMIT 1"
SESSIONS = "SELECT id, tree, head, shared FROM sessions WHERE chain = ? ORDER BY shared, created"
ALONE = "SELECT count(*) = 1 FROM (SELECT 1 FROM sessions WHERE tree = ? LIMIT 2)"
# From a head up to a depth.
LINE = """
WITH RECURSIVE line (id, parent, depth) AS (
    SELECT id, parent, depth FROM nodes WHERE id = ?1
    UNION ALL
    SELECT n.id, n.parent, n.depth
    FROM line JOIN nodes AS n ON n.id = line.parent AND n.depth = line.depth - 1
    WHERE line.depth > ?2
)
SELECT id FROM line
"""
# The first node of another line that was put in the place of what follows this one.
LATER = """
WITH RECURSIVE below (id) AS (
    SELECT ?1 UNION SELECT n.id FROM below JOIN nodes AS n ON n.parent = below.id
)
SELECT f.id FROM below JOIN nodes AS f ON f.former = below.id ORDER BY f.id LIMIT 1
"""


class Spot(Struct, frozen=True):
    """A node of a message; `depth` is the number of the message."""

    content: int
    id: int
    chain: int
    depth: int
    parent: int | None
    trust: int
    at: int


class Owner(Struct, frozen=True):
    """The session that a spot is shown in. `left` tells that it has gone on without it."""

    session: SessionId
    tree: SessionId
    left: bool = False


def spots(connection: apsw.Connection, content: int, window: Window) -> list[Spot]:
    """Where a content was said in this time, the latest first."""
    spans = window.spans or (ALWAYS,)
    found = [Spot(*row) for span in spans for row in connection.execute(NODES, (content, *span))]
    return sorted(found, key=lambda spot: -spot.id)[:OCCURRENCES]


def before(connection: apsw.Connection, spot: Spot) -> Spot | None:
    return None if spot.parent is None else _spot(connection, NODE, spot.parent)


def after(connection: apsw.Connection, spot: Spot) -> Spot | None:
    return _spot(connection, NEXT, spot.id)


def _spot(connection: apsw.Connection, statement: str, id: int) -> Spot | None:
    row = connection.execute(statement, (id,)).fetchone()
    return None if row is None else Spot(*row)


class Lineage:
    """Remembers what it has walked, for the time of one search."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._sessions: dict[int, Sequence[Any]] = {}
        self._alone: dict[str, bool] = {}
        self._lines: dict[tuple[int, int], frozenset[int]] = {}

    def owners(self, found: Iterable[Spot]) -> list[tuple[Spot, Owner]]:
        """For each tree one spot with its owner: the first said of those on a line that goes on, if any."""
        trees: dict[str, tuple[Spot, Owner]] = {}
        for spot in found:
            owner = self.owner(spot)
            if owner is None:
                continue
            known = trees.get(owner.tree)
            if known is None or (owner.left, spot.id) < (known[1].left, known[0].id):
                trees[owner.tree] = spot, owner
        return list(trees.values())

    def owner(self, spot: Spot) -> Owner | None:
        """None only if a row is damaged: every node is there for the sake of a session."""
        visited: set[int] = set()
        place, left = spot, False
        while place.id not in visited:
            visited.add(place.id)
            for session, tree, head, _ in self._candidates(place):
                if self._holds(tree, head, place):
                    return Owner(session, tree, left)
            later = self._connection.execute(LATER, (place.id,)).get
            node = None if later is None else _spot(self._connection, NODE, later)
            if node is None:
                return None
            place, left = node, True
        return None

    def _candidates(self, spot: Spot) -> list[Any]:
        """Who said it before who shares it."""
        if spot.chain not in self._sessions:
            self._sessions[spot.chain] = self._connection.execute(SESSIONS, (spot.chain,)).fetchall()
        return sorted(self._sessions[spot.chain], key=lambda row: bool(row[3] >= spot.depth))

    def _holds(self, tree: str, head: int, spot: Spot) -> bool:
        """A conversation that nobody has branched holds all nodes of its chain; else its line is walked."""
        if tree not in self._alone:
            self._alone[tree] = bool(self._connection.execute(ALONE, (tree,)).get)
        if self._alone[tree]:
            return True
        known = next(
            (line for (of, upto), line in self._lines.items() if of == head and upto <= spot.depth), None
        )
        if known is None:
            rows = self._connection.execute(LINE, (head, spot.depth))
            known = self._lines[head, spot.depth] = frozenset(id for (id,) in rows)
        return spot.id in known
