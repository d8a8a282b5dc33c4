"""Search over all sessions: find the messages that answer a question, and the session of each."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import apsw
from msgspec import Struct

from hone.core.loading import import_object
from hone.core.messages import Message, Role
from hone.core.ports import Header
from hone.core.recall import Hit, Passage, Query, SearchResult, is_aside, said
from hone.core.trust import Trust
from hone.core.value import replace
from hone.stores import passages
from hone.stores.database import Database, Store
from hone.stores.places import Lineage, Owner, beside, headers, messages, spots
from hone.stores.question import ParsedQuestion, parse, plain
from hone.stores.ranking import Ranked, rank
from hone.stores.search_source import SearchSource, Spot
from hone.stores.sqlite_source import SqliteSource
from hone.stores.tree import SYMPTOMS, moment
from hone.stores.window import bounds, days

if TYPE_CHECKING:
    from hone.stores.sqlite_meaning import SqliteMeaning

MEANING = "hone.stores.sqlite_meaning:SqliteMeaning"
FILLING = 20
"""How many batches of older messages a search indexes before it answers."""
TREES = 3
"""The most conversations to show for the same words."""
MORE = 10
"""How many places beyond the limit to check, since speaker and time may put them first."""
IN_TIME, SPOKEN, QUOTED = 1.6, 1.4, 0.8
"""Bonus for the speaker or time that the question means; malus for results of tools."""
SHARE = 0.7
"""The share of the list that one conversation may fill while others have something, too."""

Combine = Callable[[Ranked, ParsedQuestion, Query], Ranked]


class SqliteRecall(Store):
    """The search in SQLite. The sessions next to it maintain the index."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._meaning: SqliteMeaning | None = None

    async def search(self, query: Query) -> SearchResult:
        """Search. First add what is not in the index yet, as much as takes a second or two, so that recent
        words are found. A read-only file is searched as it is."""
        if not self._database.is_fixed:
            found = await self._database.read(partial(self._search_all, query=query))
            if found:
                return found
            for _ in range(FILLING):
                if not await self._database.write(passages.fill):
                    break
        return await self._database.read(partial(self._search, query=query))

    def _search_all(self, connection: apsw.Connection, query: Query) -> SearchResult | None:
        """Search. Return None if the index is incomplete."""
        if passages.waiting(connection):
            return None
        return search(SqliteSource(connection), query, self._combine(connection, query))

    def _search(self, connection: apsw.Connection, query: Query) -> SearchResult:
        return search(
            SqliteSource(connection), query, self._combine(connection, query), passages.waiting(connection)
        )

    def _combine(self, connection: apsw.Connection, query: Query) -> Combine | None:
        """Return what adds the meaning of a question. It is imported with the first question that has one."""
        if not query.vector:
            return None
        if self._meaning is None:
            self._meaning = import_object(MEANING)()
        return partial(self._meaning.combine, connection)


class _Place(Struct, frozen=True):
    score: float
    spot: Spot
    owner: Owner
    header: Header
    opening: str
    passage: Passage


def search(
    source: SearchSource, query: Query, combine: Combine | None = None, waiting: int = 0
) -> SearchResult:
    """Answer a query. `combine` adds its meaning; `waiting` counts messages that are not indexed."""
    question = parse(query.words, query.today)
    ranked, places = _best(source, question, query, combine)
    if question.run and all(place.spot.content in ranked.slight for place in places):
        # The asker has all of the matching text at hand, or nothing matches.
        ranked, places = _best(source, replace(question, run=""), query, combine)
    hits = _hits(source, spread_out(places, query.limit), ranked.slight)
    tried, dropped = (tuple(map(plain, each)) for each in (ranked.tried, ranked.dropped))
    empty = not hits and source.is_empty()
    return SearchResult(hits, tried, dropped, waiting, empty)


def _best(
    source: SearchSource, question: ParsedQuestion, query: Query, combine: Combine | None
) -> tuple[Ranked, list[_Place]]:
    """Rank, and return the places of the best, enough to choose from."""
    ranked = rank(source, question, query)
    if combine:
        ranked = combine(ranked, question, query)
    places: list[_Place] = []
    # If some match all of a run and others a part of it, nothing else decides the order.
    best, step = ranked.best, query.limit + (0 if ranked.slight else MORE)
    for start in range(0, len(best), step):
        if _enough(places, query.limit, step):
            break
        places += _places(source, best[start : start + step], ranked, question, query)
    return ranked, places


def _places(
    source: SearchSource, ids: Sequence[int], ranked: Ranked, question: ParsedQuestion, query: Query
) -> Iterator[_Place]:
    """Yield where contents were said, as far as they are wanted."""
    found = spots(source, ids, bounds(query), days(question.spans))
    told = {
        id: message
        for id, (digest, message) in messages(source, found).items()
        if digest not in query.seen and (text := said(message)) and question.fits(text)
    }
    line = Lineage(source, [spot for id in told for spot in found[id]])
    owned = [(*each, told[id]) for id in ids if id in told for each in line.owners(found[id])[:TREES]]
    known = headers(source, {owner.session for _, owner, _ in owned})
    for spot, owner, message in owned:
        header, opening = known.get(owner.session, (None, ""))
        passage = _passage(spot, message)
        if header is None or passage is None or (is_aside(header, passage) and not query.asides):
            continue
        score = ranked.scores[spot.content] * _worth(question, passage)
        yield _Place(score, spot, owner, header, opening, passage)


def _worth(question: ParsedQuestion, passage: Passage) -> float:
    role, day = passage.role, passage.at.date()
    timely = any(first <= day <= last for first, last in question.spans)
    return (
        (IN_TIME if timely else 1.0)
        * (SPOKEN if question.is_meant(role, passage.text) else 1.0)
        * (QUOTED if role is Role.TOOL else 1.0)
    )


def _enough(places: Sequence[_Place], limit: int, wanted: int) -> bool:
    """Tell whether there is enough to choose from, even if one conversation has most of it."""
    most = _most(limit)
    trees = Counter(place.owner.tree for place in places).values()
    return len(places) >= wanted and sum(min(count, most) for count in trees) >= limit


def _most(limit: int) -> int:
    return max(1, round(SHARE * limit))


def spread_out(places: Sequence[_Place], limit: int) -> list[_Place]:
    """Return the best first. What a conversation has beyond its share is placed after others."""
    counts: Counter[str] = Counter()
    kept, beyond = list[_Place](), list[_Place]()
    for place in sorted(places, key=_order):
        (kept if counts[place.owner.tree] < _most(limit) else beyond).append(place)
        counts[place.owner.tree] += 1
    return sorted([*kept, *beyond][:limit], key=_order)


def _order(place: _Place) -> tuple[float, int]:
    return -place.score, -place.spot.id


def _hits(source: SearchSource, chosen: Sequence[_Place], slight: Collection[int]) -> tuple[Hit, ...]:
    """Return hits with the messages before and after, except around slight ones."""
    full = [place for place in chosen if place.spot.content not in slight]
    before, after = beside(source, [(place.spot, place.owner) for place in full])
    around = [*before.values(), *after.values()]
    told = {id: each for id, (_, each) in messages(source, {spot.content for spot in around}).items()}

    def neighbor(spot: Spot | None) -> Passage | None:
        message = None if spot is None else told.get(spot.content)
        return None if spot is None or message is None or message.template else _passage(spot, message)

    return tuple(
        Hit(
            place.header,
            place.owner.tree,
            place.passage,
            neighbor(before.get(place.spot.id)),
            neighbor(after.get(place.spot.id)),
            place.owner.left,
            place.score,
            place.opening,
        )
        for place in chosen
    )


def _passage(spot: Spot, message: Message) -> Passage | None:
    try:
        return Passage(spot.depth, message.role, Trust(spot.trust), moment(spot.at), said(message))
    except SYMPTOMS:
        return None
