"""Search over all sessions in SQLite."""

from collections.abc import Iterator
from functools import partial

import apsw
from msgspec import Struct

from hone.core.messages import Message, Role, decode
from hone.core.ports import Header
from hone.core.recall import Hit, Passage, Query, SearchResult, said
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.stores import lineage, passages
from hone.stores.database import Database
from hone.stores.lineage import Lineage, Owner, Spot
from hone.stores.question import ParsedQuestion, parse, plain
from hone.stores.ranking import rank
from hone.stores.tree import SYMPTOMS, moment
from hone.stores.window import bounds, days

FILLING = 20
"""Batches of older messages that a search adds before it answers."""
TREES = 3
"""Conversations in which the same words are shown."""
MORE = 10
"""Places beyond the limit that are looked at, since who said it and when may put them first."""
IN_TIME, SPOKEN, ASIDE, QUOTED = 1.6, 1.4, 0.5, 0.8
"""Counts for more: said when, or by whom, the question means. For less: Hone's own forks, and results."""

HEADER = "SELECT id, created, title, origin, folder, parent, shared FROM sessions WHERE id = ?"
CONTENT = "SELECT digest, body FROM contents WHERE id = ?"


class SqliteRecall:
    """The database belongs to whoever opened it; the sessions beside this keep the index."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def search(self, query: Query) -> SearchResult:
        """What was stored before there was an index is added first, as much as takes a second or two."""
        if await self._database.read(passages.waiting):
            for _ in range(FILLING):
                if not await self._database.write(passages.fill):
                    break
        return await self._database.read(partial(_search, query=query))


class _Place(Struct, frozen=True):
    score: float
    spot: Spot
    owner: Owner
    header: Header
    passage: Passage


def _search(connection: apsw.Connection, query: Query) -> SearchResult:
    question = parse(query.words, query.today)
    ranked = rank(connection, question, query)
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
    spots = lineage.spots(connection, id, only & times) or lineage.spots(connection, id, only)
    digest, message = _content(connection, id) if spots else ("", None)
    text = said(message) if message else ""
    if message is None or not text or digest in query.seen or not question.fits(text):
        return
    for spot, owner in line.owners(spots)[:TREES]:
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
        _neighbour(connection, lineage.before(connection, spot)),
        _neighbour(connection, lineage.after(connection, spot)),
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
