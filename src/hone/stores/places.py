"""Find where contents were said, in SQLite: the nodes of each, and the session that a node is shown in.

What is asked for many contents is one statement. Branched, moved and shortened sessions are included.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

import apsw
from msgspec import Struct

from hone.core.ids import SessionId
from hone.core.messages import Message, decode
from hone.core.ports import Header
from hone.core.turn import Origin
from hone.stores.tree import SYMPTOMS, moment
from hone.stores.window import ALWAYS, Window

OCCURRENCES = 20
"""Nodes of one content that are looked at, the latest first: some words are said every day."""

SPOTS = f"""
SELECT n.content, n.id, n.chain, n.depth, n.parent, n.trust, n.at FROM json_each(?) CROSS JOIN nodes AS n
ON n.id IN (SELECT id FROM nodes WHERE content = value AND ({{}}) ORDER BY id DESC LIMIT {OCCURRENCES})
ORDER BY n.id DESC
"""
NODE = "SELECT content, id, chain, depth, parent, trust, at FROM nodes WHERE id = ?"
CONTENTS = "SELECT id, digest, body FROM contents WHERE id IN (SELECT value FROM json_each(?))"
# A conversation that nobody has branched holds all nodes of its chain.
SESSIONS = """
SELECT chain, id, tree, head, shared, messages, origin, (
    SELECT count(*) = 1 FROM (SELECT 1 FROM sessions AS other WHERE other.tree = s.tree LIMIT 2)
) FROM sessions AS s WHERE chain IN (SELECT value FROM json_each(?)) ORDER BY shared, created
"""
HEADERS = """
SELECT id, created, title, origin, folder, parent, shared, opening FROM sessions
WHERE id IN (SELECT value FROM json_each(?))
"""
# From each head up to its depth.
LINES = """
WITH RECURSIVE line (head, least, id, parent, depth) AS (
    SELECT value ->> 0, value ->> 1, n.id, n.parent, n.depth FROM json_each(?) JOIN nodes AS n
    ON n.id = value ->> 0
    UNION ALL
    SELECT head, least, n.id, n.parent, n.depth
    FROM line JOIN nodes AS n ON n.id = line.parent AND n.depth = line.depth - 1
    WHERE line.depth > least
)
SELECT head, json_group_array(id) FROM line GROUP BY head
"""
# The first node of another line that was put in the place of what follows this one.
LATER = """
WITH RECURSIVE below (id) AS (
    SELECT ?1 UNION SELECT n.id FROM below JOIN nodes AS n ON n.parent = below.id
)
SELECT f.id FROM below JOIN nodes AS f ON f.former = below.id ORDER BY f.id LIMIT 1
"""
BESIDE = """
SELECT value, n.content, n.id, n.chain, n.depth, n.parent, n.trust, n.at FROM json_each(?1)
JOIN nodes AS here ON here.id = value JOIN nodes AS n ON n.id = here.parent
UNION ALL
SELECT value, n.content, n.id, n.chain, n.depth, n.parent, n.trust, n.at FROM json_each(?1)
JOIN nodes AS n ON n.id IN (SELECT id FROM nodes WHERE parent = value ORDER BY id LIMIT 9)
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
    """The session that a spot is shown in. `left` tells that it has gone on without it. `line` are its nodes
    from about the spot on, where others have the same conversation."""

    session: SessionId
    tree: SessionId
    left: bool = False
    line: frozenset[int] | None = None


class Candidate(Struct, frozen=True):
    """A session that may hold the nodes of a chain; `alone` if its conversation has no other."""

    session: SessionId
    tree: SessionId
    head: int
    shared: int
    messages: int
    origin: str
    alone: bool

    def only_shares(self, spot: "Spot") -> bool:
        """Whether it is a fork, and this was said before it began."""
        return self.origin != Origin.USER and self.shared >= spot.depth


def spots(
    connection: apsw.Connection, contents: Sequence[int], only: Window, times: Window
) -> dict[int, list[Spot]]:
    """Where each was said within the bounds, the latest first; at the times asked for, if possible."""
    found = _spots(connection, contents, only & times)
    missing = [id for id in contents if id not in found] if times.spans else []
    return found | (_spots(connection, missing, only) if missing else {})


def _spots(connection: apsw.Connection, contents: Sequence[int], window: Window) -> dict[int, list[Spot]]:
    spans = window.spans or (ALWAYS,)
    statement = SPOTS.format(" OR ".join(["at BETWEEN ? AND ?"] * len(spans)))
    values = (bound for span in spans for bound in span)
    found: dict[int, list[Spot]] = defaultdict(list)
    for row in connection.execute(statement, (json.dumps(contents), *values)):
        found[row[0]].append(Spot(*row))
    return dict(found)


def messages(connection: apsw.Connection, contents: Collection[int]) -> dict[int, tuple[str, Message]]:
    """Digest and message of each. A damaged one is left out: opening its session will say so."""
    found: dict[int, tuple[str, Message]] = {}
    for id, digest, body in connection.execute(CONTENTS, (json.dumps(list(contents)),)):
        try:
            found[id] = digest, decode(body)
        except SYMPTOMS:
            continue
    return found


def headers(connection: apsw.Connection, sessions: Iterable[str]) -> dict[str, tuple[Header, str]]:
    """The header of each, and the user's first words in it."""
    found: dict[str, tuple[Header, str]] = {}
    rows = connection.execute(HEADERS, (json.dumps(list(sessions)),))
    for id, created, title, origin, folder, parent, shared, opening in rows:
        try:
            header = Header(id, moment(created), title, Origin(origin), folder, parent, shared)
        except SYMPTOMS:
            continue
        found[id] = header, opening
    return found


def beside(
    connection: apsw.Connection, chosen: Sequence[tuple[Spot, Owner]]
) -> tuple[dict[int, Spot], dict[int, Spot]]:
    """What stands before and after each, by the node. A fork may go on from there, too: that is not it."""
    before: dict[int, Spot] = {}
    after: dict[int, Spot] = {}
    known = {spot.id: (spot, owner) for spot, owner in chosen}
    for node, *row in connection.execute(BESIDE, (json.dumps(list(known)),)):
        beside, (spot, owner) = Spot(*row), known[node]
        if beside.depth < spot.depth:
            before[node] = beside
        elif owner.line is None or beside.id in owner.line:
            after.setdefault(node, beside)
    return before, after


class Lineage:
    """Tells who holds a node. Remembers what it has walked, for the time of one search."""

    def __init__(self, connection: apsw.Connection, found: Collection[Spot]) -> None:
        self._connection = connection
        self._sessions: dict[int, list[Candidate]] = {}
        self._least: dict[int, int] = {}
        self._lines: dict[int, tuple[int, frozenset[int]]] = {}
        self._learn(found)

    def owners(self, found: Iterable[Spot]) -> list[tuple[Spot, Owner]]:
        """For each tree one spot with its owner: the first said of those on a current line, if any."""
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
            held = self._holder(place, shared=False)
            later = None if held else self._connection.execute(LATER, (place.id,)).get
            row = None if later is None else self._connection.execute(NODE, (later,)).fetchone()
            if row is None:
                held = held or self._holder(place, shared=True)
                return self._owner(held, place, left=left) if held else None
            place, left = Spot(*row), True
        return None

    def _owner(self, held: Candidate, place: Spot, *, left: bool) -> Owner:
        line = None if held.alone or left else self._line(held, place)
        return Owner(held.session, held.tree, left, line)

    def _holder(self, spot: Spot, *, shared: bool) -> Candidate | None:
        """What a session was shortened by is still its own, even where a fork is all that holds it."""
        for each in self._candidates(spot):
            if each.only_shares(spot) is shared and (each.alone or spot.id in self._line(each, spot)):
                return each
        return None

    def _learn(self, found: Collection[Spot]) -> None:
        """One statement for the sessions of all chains, and one for the lines of those that said it first."""
        for spot in found:
            self._least[spot.chain] = min(spot.depth, self._least.get(spot.chain, spot.depth))
        self._sessions |= {chain: [] for chain in self._least}
        for chain, *row in self._connection.execute(SESSIONS, (json.dumps(list(self._least)),)):
            self._sessions[chain].append(Candidate(*row))
        firsts = {spot.chain: self._candidates(spot)[:1] for spot in found}
        self._walk(
            {each.head: self._least[chain] for chain, of in firsts.items() for each in of if not each.alone}
        )

    def _candidates(self, spot: Spot) -> list[Candidate]:
        """Who said it before who shares it."""
        if spot.chain not in self._sessions:
            self._learn([spot])
        able = [each for each in self._sessions[spot.chain] if each.alone or each.messages >= spot.depth]
        return sorted(able, key=lambda each: each.shared >= spot.depth)

    def _line(self, each: Candidate, spot: Spot) -> frozenset[int]:
        least, line = self._lines.get(each.head, (spot.depth + 1, frozenset()))
        if least > spot.depth:
            self._walk({each.head: min(spot.depth, self._least.get(spot.chain, spot.depth))})
            least, line = self._lines[each.head]
        return line

    def _walk(self, heads: dict[int, int]) -> None:
        """From each head up to a depth."""
        self._lines |= {head: (least, frozenset()) for head, least in heads.items()}
        if heads:
            for head, ids in self._connection.execute(LINES, (json.dumps(list(heads.items())),)):
                self._lines[head] = heads[head], frozenset(json.loads(ids))
