"""Search over all sessions in SQLite: find the messages that answer a question, and the session of each.

Branched, moved and shortened sessions are included.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import apsw
from msgspec import Struct

from hone.core.ids import SessionId
from hone.core.loading import import_object
from hone.core.messages import Message, Role, decode
from hone.core.ports import Header
from hone.core.recall import Hit, Passage, Query, SearchResult, said
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.stores import passages
from hone.stores.database import Database, Store
from hone.stores.question import ParsedQuestion, parse, plain
from hone.stores.ranking import rank
from hone.stores.tree import SYMPTOMS, moment
from hone.stores.window import ALWAYS, Window, bounds, days

if TYPE_CHECKING:
    from hone.stores.meaning import Combine

COMBINE = "hone.stores.meaning:Combine"
FILLING = 20
"""Batches of older messages that a search adds before it answers."""
TREES = 3
"""Conversations in which the same words are shown."""
MORE = 10
"""Places beyond the limit that are looked at, since who said it and when may put them first."""
IN_TIME, SPOKEN, ASIDE, QUOTED = 1.6, 1.4, 0.5, 0.8
"""Counts for more: said when, or by whom, the question means. For less: Hone's own forks, and results."""

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


HEADER = "SELECT id, created, title, origin, folder, parent, shared FROM sessions WHERE id = ?"
CONTENT = "SELECT digest, body FROM contents WHERE id = ?"


class SqliteRecall(Store):
    """The sessions beside this keep the index."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._by_meaning: Combine | None = None

    async def search(self, query: Query) -> SearchResult:
        """What was stored before there was an index is added first, as much as takes a second or two."""
        if await self._database.read(passages.waiting):
            for _ in range(FILLING):
                if not await self._database.write(passages.fill):
                    break
        return await self._database.read(partial(_search, query=query, combine=self._combine(query)))

    def _combine(self, query: Query) -> "Combine | None":
        """Return what adds the meaning of a question. It is loaded with the first that has one."""
        if not query.vector:
            return None
        if self._by_meaning is None:
            self._by_meaning = import_object(COMBINE)()
        return self._by_meaning


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


class _Place(Struct, frozen=True):
    score: float
    spot: Spot
    owner: Owner
    header: Header
    passage: Passage


def _search(connection: apsw.Connection, query: Query, combine: "Combine | None" = None) -> SearchResult:
    question = parse(query.words, query.today)
    ranked = rank(connection, question, query)
    if combine:
        ranked = combine(connection, ranked, question, query)
    line = Lineage(connection)
    places: list[_Place] = []
    for id in ranked.best:
        if len(places) >= query.limit + MORE:
            break
        places += _places(connection, line, id, ranked.scores[id], question, query)
    chosen = sorted(places, key=lambda place: (-place.score, -place.spot.id))[: query.limit]
    hits = tuple(_hit(connection, place) for place in chosen)
    tried, dropped = (tuple(map(plain, each)) for each in (ranked.tried, ranked.dropped))
    return SearchResult(hits, tried, dropped, passages.waiting(connection))


def _places(
    connection: apsw.Connection, line: Lineage, id: int, score: float, question: ParsedQuestion, query: Query
) -> Iterator[_Place]:
    """Where a content was said, as far as it is wanted."""
    only, times = bounds(query), days(question.spans)
    found = spots(connection, id, only & times) or spots(connection, id, only)
    digest, message = _content(connection, id) if found else ("", None)
    text = said(message) if message else ""
    if message is None or not text or digest in query.seen or not question.fits(text):
        return
    for spot, owner in line.owners(found)[:TREES]:
        header, passage = _header(connection, owner.session), _passage(spot, message)
        if header and passage:
            yield _Place(score * _worth(question, header.origin, passage), spot, owner, header, passage)


def _worth(question: ParsedQuestion, origin: Origin, passage: Passage) -> float:
    role, day = passage.role, passage.at.date()
    timely = any(first <= day <= last for first, last in question.spans)
    return (
        (IN_TIME if timely else 1.0)
        * (SPOKEN if question.speaker is role else 1.0)
        * (1.0 if origin is Origin.USER else ASIDE)
        * (QUOTED if role is Role.TOOL else 1.0)
    )


def _hit(connection: apsw.Connection, place: _Place) -> Hit:
    spot, owner = place.spot, place.owner
    return Hit(
        place.header,
        owner.tree,
        place.passage,
        _neighbour(connection, before(connection, spot)),
        _neighbour(connection, after(connection, spot)),
        owner.left,
        place.score,
    )


def _neighbour(connection: apsw.Connection, spot: Spot | None) -> Passage | None:
    message = None if spot is None else _content(connection, spot.content)[1]
    return None if spot is None or message is None or message.template else _passage(spot, message)


def _passage(spot: Spot, message: Message) -> Passage | None:
    try:
        return Passage(spot.depth, message.role, Trust(spot.trust), moment(spot.at), said(message))
    except SYMPTOMS:
        return None


def _content(connection: apsw.Connection, id: int) -> tuple[str, Message | None]:
    """No message where a row is damaged: opening the session will say so."""
    row = connection.execute(CONTENT, (id,)).fetchone()
    try:
        return ("", None) if row is None else (row[0], decode(row[1]))
    except SYMPTOMS:
        return "", None


def _header(connection: apsw.Connection, session: str) -> Header | None:
    id, created, title, origin, folder, parent, shared = connection.execute(HEADER, (session,)).get
    try:
        return Header(id, moment(created), title, Origin(origin), folder, parent, shared)
    except SYMPTOMS:
        return None
