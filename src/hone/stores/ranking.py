"""Rank the contents that may answer a question, in SQLite: by words, neighbors, time and speaker.

The cost of a question is bounded: only messages with one of its rarest words are read, and the other words
count only in those.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from itertools import accumulate, islice
from math import log
from operator import itemgetter

import apsw
from msgspec import Struct

from hone.core.recall import Query
from hone.stores.question import EMPTY, ParsedQuestion, plain
from hone.stores.window import Window, bounds, days

SCORED, EXTRA = 5_000, 2_000
"""Messages that are gone through for one question, and for words that count for less."""
KIN, SMALL, FEW = 0.6, 0.3, 2
COMMON = 10_000
"""Messages after which a term is no longer counted; alone it is looked for in the latest ones only."""
CANDIDATES, SPREADING, TIMELY = 100, 40, 3_000
"""Messages that are looked at more closely, whose neighbours are, and whose time is."""
OFTEN = 1_000
"""A phrase that stands in so many messages is looked for from the latest on."""
NEAR, NEXT_BUT_ONE = 0.45, 0.3
"""How much of a neighbour's score counts for a message."""
PLACES = 3
"""A message in more places than this gets nothing from its neighbors: "go on" is said everywhere."""
LONG, FALL = 1_000, 0.3
"""Bytes of a message from which on its score falls, and how much for each time it is e times as long."""

COUNT = "SELECT count(*) FROM (SELECT 1 FROM passage_words WHERE passage_words MATCH ? LIMIT ?)"
ALL = "SELECT rowid FROM passage_words WHERE passage_words MATCH ? LIMIT ?"
BOUNDED = "SELECT rowid FROM passage_words WHERE passage_words MATCH ?{} ORDER BY rowid {} LIMIT ?"
SIZE = "SELECT coalesce(max(id), 0) FROM contents"
LENGTHS = "SELECT id, length(body) FROM contents WHERE id IN (SELECT value FROM json_each(?))"
# Of each content the latest two nodes: those before, and those after.
AROUND = """
WITH best (content, node, parent) AS (
    SELECT n.content, n.id, n.parent FROM json_each(?) JOIN nodes AS n
    ON n.id IN (SELECT id FROM nodes WHERE content = value ORDER BY id DESC LIMIT 2)
)
SELECT best.content, p.content, pp.content FROM best
JOIN nodes AS p ON p.id = best.parent LEFT JOIN nodes AS pp ON pp.id = p.parent
UNION ALL
SELECT best.content, c.content, cc.content FROM best
JOIN nodes AS c ON c.id IN (SELECT id FROM nodes WHERE parent = best.node LIMIT 3)
LEFT JOIN nodes AS cc ON cc.parent = c.id
"""


FREQUENT = f"""
SELECT value FROM json_each(?)
WHERE (SELECT count(*) FROM (SELECT 1 FROM nodes WHERE content = value LIMIT {PLACES + 1})) > {PLACES}
"""


class Ranked(Struct, frozen=True):
    """Contents with their scores, and what was looked for."""

    scores: dict[int, float]
    tried: tuple[str, ...]
    dropped: tuple[str, ...]

    @property
    def best(self) -> list[int]:
        return first(self.scores, len(self.scores))


def rank(connection: apsw.Connection, question: ParsedQuestion, query: Query) -> Ranked:
    index = Index(connection, bounds(query))
    times = days(question.spans)
    must = " AND ".join(question.phrases)
    holding = index.some(must) if must else []
    terms = question.terms if holding or not must else (*question.terms, *_loose(question))
    counts = index.counts(terms)
    tried = (*question.phrases, *counts)
    if holding:
        scores = dict.fromkeys(holding, 1.0)
        index.add(scores, known(counts), within=must)
        # Whoever writes a phrase wants the messages that hold it, not those beside them.
        return Ranked(_best(connection, scores, index.only, times), tried, question.dropped)
    scores = _scored(index, question, known(counts)) or index.of(times)
    best = _best(connection, scores, index.only, times)
    if not best and index.only.spans:  # the rarest words were said at other times only
        best = _best(connection, _latest(index, list(known(counts))), index.only, times)
    return Ranked(_spread(connection, best), tried, question.dropped)


class Index:
    """What can be asked of the words, within the bounds of a query."""

    def __init__(self, connection: apsw.Connection, only: Window) -> None:
        self._connection = connection
        self.only = only
        self._size: int = connection.execute(SIZE).get

    def counts(self, terms: Iterable[str]) -> dict[str, int]:
        """In how many messages each stands, the rarest first; of common ones it is not known exactly."""
        counts = {term: int(self._connection.execute(COUNT, (term, COMMON)).get) for term in terms}
        return dict(sorted(counts.items(), key=itemgetter(1)))

    def worth(self, count: int) -> float:
        """A word tells the more, the rarer it is."""
        return log(1 + (self._size + 0.5) / (count + 0.5))

    def add(
        self, scores: dict[int, float], counts: Mapping[str, int], weight: float = 1.0, within: str = ""
    ) -> None:
        """Whatever the bounds are: what is out of them goes later, when it is known what is best."""
        for term, count in counts.items():
            worth = weight * self.worth(count)
            expression = f"({within}) AND {term}" if within else term
            for (id,) in self._connection.execute(ALL, (expression, COMMON)):
                scores[id] = scores.get(id, 0.0) + worth

    def some(self, expression: str) -> list[int]:
        """All, or the latest if there are many. To go through all is done faster from the first one on."""
        found = self._bounded(expression, "ASC", OFTEN)
        return found if len(found) < OFTEN else self.latest(expression)

    def latest(self, expression: str) -> list[int]:
        return self._bounded(expression, "DESC", CANDIDATES)

    def _bounded(self, expression: str, order: str, limit: int) -> list[int]:
        condition, values = self.only.condition(self._connection)
        statement = BOUNDED.format(condition, order)
        return [id for (id,) in self._connection.execute(statement, (expression, *values, limit))]

    def of(self, times: Window) -> dict[int, float]:
        """What was said then, if a time is all that is asked for."""
        found = (self.only & times).latest(self._connection, CANDIDATES) if times.spans else ()
        return dict.fromkeys(found, 1.0)


def known(counts: Mapping[str, int]) -> dict[str, int]:
    return {term: count for term, count in counts.items() if count}


def _scored(index: Index, question: ParsedQuestion, counts: Mapping[str, int]) -> dict[int, float]:
    """All messages with one of the rarest terms; the other terms count in those."""
    scores: dict[int, float] = {}
    lead = _affordable(counts, SCORED)
    if counts and not lead:
        lead = dict(islice(((term, count) for term, count in counts.items() if count < COMMON), 1))
    index.add(scores, lead)
    if lead:
        index.add(
            scores, {term: counts[term] for term in counts if term not in lead}, within=" OR ".join(lead)
        )
    else:
        scores = _latest(index, list(counts))
    if scores and len(question.terms) <= FEW:  # small words tell something where there is little else
        small = index.counts(f'"{word}"' for word in question.dropped if len(word) > 1)
        index.add(scores, _affordable(small, EXTRA), SMALL)
    index.add(scores, _affordable(index.counts(question.kin), EXTRA), KIN)
    return scores


def _latest(index: Index, terms: Sequence[str]) -> dict[int, float]:
    """Where all words are common: the latest messages with all of them, or else with one."""
    scores: dict[int, float] = {}
    for expression, fitting in ((" AND ".join(terms), len(terms)), *((term, 1) for term in terms)):
        if expression and len(scores) < CANDIDATES:
            for id in index.latest(expression):
                scores.setdefault(id, fitting * index.worth(COMMON))
    return scores


def _best(
    connection: apsw.Connection, scores: dict[int, float], only: Window, times: Window
) -> dict[int, float]:
    """Within the bounds: the first of all, and the first of those from the time that is asked for."""
    looked = TIMELY if times.spans else CANDIDATES
    order = only.sieve(connection, first(scores, len(scores) if only.spans else looked), looked)
    timely = times.sieve(connection, order, CANDIDATES)
    chosen = dict.fromkeys((*order[:CANDIDATES], *timely))
    return _level(connection, {id: scores[id] for id in chosen})


def first(scores: Mapping[int, float], count: int) -> list[int]:
    """The best so many; of equals the latest."""
    return [id for _, id in nlargest(count, zip(scores.values(), scores, strict=True))]


def _loose(question: ParsedQuestion) -> list[str]:
    """The words of phrases that stand nowhere."""
    loose = [word for phrase in question.phrases for word in plain(phrase).split()]
    return [f'"{word}"' for word in loose if word not in EMPTY] or [f'"{word}"' for word in loose]


def _affordable(counts: Mapping[str, int], most: int) -> dict[str, int]:
    """The rarest ones, as long as all messages that hold one of them can be gone through."""
    sums = zip(counts.items(), accumulate(counts.values()), strict=True)
    return {term: count for (term, count), rows in sums if count and rows <= most}


def _level(connection: apsw.Connection, scores: dict[int, float]) -> dict[int, float]:
    """Long messages hold more words, so that a word in them tells less."""
    lengths = connection.execute(LENGTHS, (json.dumps(list(scores)),))
    return {id: scores[id] / (1 + FALL * log(max(1, length / LONG))) for id, length in lengths}


def _spread(connection: apsw.Connection, scores: dict[int, float]) -> dict[int, float]:
    """A message counts for more if those beside it fit, too, and may be found by them alone."""
    spread = dict(scores)
    best = first(scores, SPREADING)
    shares: dict[tuple[int, int], float] = {}
    for content, near, far in connection.execute(AROUND, (json.dumps(best),)):
        for neighbour, weight in ((far, NEXT_BUT_ONE), (near, NEAR)):
            if neighbour is not None and neighbour != content:
                shares[content, neighbour] = max(weight, shares.get((content, neighbour), 0.0))
    receiving = json.dumps(list({neighbour for _, neighbour in shares}))
    frequent = {id for (id,) in connection.execute(FREQUENT, (receiving,))}
    for (content, neighbour), weight in shares.items():
        if neighbour in frequent:
            continue
        spread[neighbour] = spread.get(neighbour, 0.0) + weight * scores[content]
    return spread
