"""Which contents may answer a question, in SQLite, best first: words, their neighbours, time and speaker.

What a question costs is bounded: a term of very many messages tells little and is not gone through.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import apsw

from hone.core.recall import Query
from hone.stores.passages import exact, month
from hone.stores.question import EMPTY, Question, Span, plain

SCORED = 5_000
"""Messages that are scored for one question, about a microsecond each."""
EXTRA = 2_000
"""The same for words that count for less."""
KIN, SMALL, FEW = 0.6, 0.3, 2
COMMON = 10_000
"""Messages after which a term is no longer counted, and left out if there are others."""
CANDIDATES, SPREADING = 200, 60
DAYS = 62
"""Up to here a span is looked up by days, beyond by months."""
NEAR, NEXT_BUT_ONE = 0.45, 0.3
"""How much of a neighbour's score counts for a message."""

COUNT = f"SELECT count(*) FROM (SELECT 1 FROM passage_words WHERE passage_words MATCH ? LIMIT {COMMON})"
RANK = """
SELECT rowid, -bm25(passage_words, 1.0, 0.0) AS score FROM passage_words WHERE passage_words MATCH ?
ORDER BY score DESC LIMIT ?
"""
LATEST = "SELECT rowid, 1.0 FROM passage_words WHERE passage_words MATCH ? ORDER BY rowid DESC LIMIT ?"
AROUND = """
SELECT n.id, p.content, pp.content
FROM nodes AS n LEFT JOIN nodes AS p ON p.id = n.parent LEFT JOIN nodes AS pp ON pp.id = p.parent
WHERE n.content = ? ORDER BY n.id DESC LIMIT 2
"""
BELOW = """
SELECT c.content, cc.content FROM nodes AS c LEFT JOIN nodes AS cc ON cc.parent = c.id
WHERE c.parent = ? LIMIT 3
"""


@dataclass(frozen=True, slots=True)
class Ranked:
    """Contents with their scores, and what was looked for."""

    scores: dict[int, float]
    tried: tuple[str, ...]
    dropped: tuple[str, ...]

    @property
    def best(self) -> list[int]:
        return sorted(self.scores, key=lambda id: (-self.scores[id], -id))


@dataclass(frozen=True, slots=True)
class _Plan:
    """Expressions to score all messages by, and those of which the latest must do."""

    scored: tuple[str, ...] = ()
    latest: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    exact: bool = False


def rank(connection: apsw.Connection, question: Question, query: Query) -> Ranked:
    plan = _plan(connection, question)
    only, times = _during(_bounds(query)), _during(question.spans)
    scores: dict[int, float] = {}
    for expression in plan.scored:
        _collect(connection, scores, RANK, _both(expression, only))
        if times and not only:
            _collect(connection, scores, RANK, _both(expression, times))
    if not plan.exact:
        _add(connection, scores, _both(_small(connection, question), only) if scores else "", SMALL)
        _add(connection, scores, _both(_kin(connection, question), only), KIN)
    latest = plan.latest or (() if scores or not times else (times,))
    for expression in latest:
        if len(scores) < CANDIDATES:
            _collect(connection, scores, LATEST, _both(expression, only))
    # Whoever writes a phrase wants the messages that hold it, not those beside them.
    whole = scores if plan.exact else _spread(connection, scores)
    return Ranked(whole, plan.tried, plan.dropped)


def _plan(connection: apsw.Connection, question: Question) -> _Plan:
    must, terms = " AND ".join(question.phrases), question.terms
    stands = bool(must) and connection.execute(LATEST, (must, 1)).get is not None
    if must and not stands:  # then the words of the phrases must do
        loose = [word for phrase in question.phrases for word in plain(phrase).split()]
        told = [word for word in loose if word not in EMPTY] or loose
        terms = tuple(dict.fromkeys((*terms, *(f'"{word}"' for word in told))))
    counts = {term: int(connection.execute(COUNT, (term,)).get) for term in terms}
    tried = (*question.phrases, *counts)
    known = sorted((term for term in counts if counts[term]), key=lambda term: counts[term])
    if stands:
        better = (f"({must}) AND ({' OR '.join(known)})",) if known else ()
        return _Plan(better, (must,), tried, question.dropped, exact=True)
    lead = _affordable(known, counts)
    tail = [term for term in known if term not in lead and counts[term] < COMMON]
    common = tuple(term for term in known if counts[term] >= COMMON)
    if lead or tail:
        return _Plan(_scored(lead, tail), (), tried, (*question.dropped, *common))
    whole = (" AND ".join(common),) if len(common) > 1 else ()
    return _Plan((), (*whole, *common), tried, question.dropped)


def _kin(connection: apsw.Connection, question: Question) -> str:
    return " OR ".join(_counted(connection, question.kin, EXTRA))


def _small(connection: apsw.Connection, question: Question) -> str:
    """Small words tell something where there is little else to go by."""
    if len(question.terms) > FEW:
        return ""
    terms = [f'"{word}"' for word in question.dropped if len(word) > 1]
    return " OR ".join(_counted(connection, terms, EXTRA))


def _counted(connection: apsw.Connection, terms: Sequence[str], most: int) -> list[str]:
    counts = {term: int(connection.execute(COUNT, (term,)).get) for term in terms}
    known = sorted((term for term in counts if counts[term]), key=lambda term: counts[term])
    return _affordable(known, counts, most)


def _affordable(terms: Sequence[str], counts: dict[str, int], most: int = SCORED) -> list[str]:
    """The rarest ones, as long as all messages that hold one of them can be scored."""
    taken, rows = [], 0
    for term in terms:
        rows += counts[term]
        if rows > most:
            break
        taken.append(term)
    return taken


def _scored(lead: Sequence[str], tail: Sequence[str]) -> tuple[str, ...]:
    """Rare terms alone and with the others; the others alone only by twos, or if there is nothing else."""
    rare, other = " OR ".join(lead), " OR ".join(tail)
    if not tail:
        return (rare,)
    if lead:
        return rare, f"({rare}) AND ({other})"
    if len(tail) == 1:
        return (other,)
    return tuple(f"{tail[0]} AND {each}" for each in tail[1:4])


def _collect(connection: apsw.Connection, scores: dict[int, float], how: str, expression: str) -> None:
    for id, score in connection.execute(how, (expression, CANDIDATES)):
        scores[id] = max(score, scores.get(id, 0.0))


def _add(connection: apsw.Connection, scores: dict[int, float], expression: str, weight: float) -> None:
    more: dict[int, float] = {}
    if expression:
        _collect(connection, more, RANK, expression)
    for id, score in more.items():
        scores[id] = scores.get(id, 0.0) + weight * score


def _both(expression: str, times: str) -> str:
    return f"({expression}) AND ({times})" if times and expression else expression


def _bounds(query: Query) -> tuple[Span, ...]:
    """The days the query is bound to, if few enough to be looked up; else what is found is sieved."""
    if query.since is None:
        return ()
    first = query.since.date() - timedelta(days=1)
    last = query.until.date() if query.until else query.today
    if last is None or not 0 <= (last - first).days <= DAYS:
        return ()
    return ((first, last + timedelta(days=1)),)


def _during(spans: Sequence[Span]) -> str:
    """Said on one of these days. Whole months are looked up as such."""
    found: dict[str, None] = {}
    for first, last in spans:
        whole = first.day == 1 and (last + timedelta(days=1)).day == 1
        step, name = (
            (_months(first, last), month)
            if whole or (last - first).days > DAYS
            else (_days(first, last), exact)
        )
        found.update(dict.fromkeys(name(day) for day in step))
    return " OR ".join(f'"{each}"' for each in found)


def _days(first: date, last: date) -> list[date]:
    return [first + timedelta(days=each) for each in range((last - first).days + 1)]


def _months(first: date, last: date) -> list[date]:
    """A day of each month of the span, however long it is."""
    count = (last.year - first.year) * 12 + last.month - first.month + 1
    numbers = (first.month - 1 + each for each in range(count))
    return [date(first.year + number // 12, number % 12 + 1, 1) for number in numbers]


def _spread(connection: apsw.Connection, scores: dict[int, float]) -> dict[int, float]:
    """A message counts for more if those beside it fit, too, and may be found by them alone."""
    spread = dict(scores)
    for id in sorted(scores, key=lambda each: -scores[each])[:SPREADING]:
        for neighbour, weight in _around(connection, id).items():
            spread[neighbour] = spread.get(neighbour, 0.0) + weight * scores[id]
    return spread


def _around(connection: apsw.Connection, content: int) -> dict[int, float]:
    found: dict[int, float] = {}
    for node, parent, grandparent in connection.execute(AROUND, (content,)).fetchall():
        pairs = [(parent, grandparent), *connection.execute(BELOW, (node,))]
        for near, far in pairs:
            for neighbour, weight in ((far, NEXT_BUT_ONE), (near, NEAR)):
                if neighbour is not None and neighbour != content:
                    found[neighbour] = max(weight, found.get(neighbour, 0.0))
    return found
