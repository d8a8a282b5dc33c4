"""Rank the contents that may answer a question: by words, by their neighbors and by time.

The cost of a question is bounded: only messages with one of its rarest words are read, and the other words
count only in those.
"""

from collections.abc import Iterable, Mapping
from itertools import accumulate, pairwise

from msgspec import Struct

from hone.core.recall import Query
from hone.stores.context import NEAR, first, settled, spread
from hone.stores.question import EMPTY, ParsedQuestion, plain
from hone.stores.search_source import Expression, SearchSource, WordSource
from hone.stores.terms import COMMON, EXTRA, LATEST, WordIndex, all_of
from hone.stores.window import Window, bounds, days

SCORED = COMMON
"""The most messages to read for one question."""
MANY, LEADING, ENOUGH = 10, 12, 6
"""Terms of a long question, and the most messages to find by the rarest ones. If these are fewer than enough,
others count in those messages."""
KIN, SMALL, FEW = 0.8, 0.3, 2
"""The weight of a synonym, and of a common word if there are few others."""
PARTED = 0.4
"""The weight of a run's pairs of letters if they are not adjacent."""
POOL, TIMELY, CANDIDATES = 250, 3_000, 100
"""How many messages pass a share on to neighbors, are checked for their time, and are returned."""

APART = 2
"""The largest distance between message ids that count as neighbors until their nodes are read."""

Values = dict[str, dict[int, float]]
"""By term: each message's score for it."""


class Ranked(Struct, frozen=True):
    """The best contents with their scores, and the searched terms. `slight` ones match less than half of it,
    where others match all."""

    scores: dict[int, float]
    tried: tuple[str, ...]
    dropped: tuple[str, ...]
    slight: frozenset[int] = frozenset()

    @property
    def best(self) -> list[int]:
        return first(self.scores, len(self.scores))


def rank(source: SearchSource, question: ParsedQuestion, query: Query) -> Ranked:
    index = WordIndex(source, bounds(query))
    times = days(question.spans)
    exact = _exact(index, question, query.limit) if question.run else {}
    if exact:
        best = _pool(source, exact, index.only, times, CANDIDATES)
        slight = frozenset(id for id, score in best.items() if score < PARTED / 2)
        return Ranked(settled(source, best), question.terms, question.dropped, slight)
    must = all_of(question.phrases)
    holding = index.some(must)[0] if must else []
    if holding:
        # A phrase is for messages that contain it, not for their neighbors.
        scores = _added(index, holding, question.terms, must)
        best = _pool(source, scores, index.only, times, CANDIDATES)
        return Ranked(settled(source, best), (*question.phrases, *question.terms), question.dropped)
    terms = question.terms if not must else (*question.terms, *_loose(question))
    tried = (*question.phrases, *terms)
    values = _valued(index, question, terms)
    scores = _summed(values.values()) or _of(source, index.only & times, bool(times.spans))
    pool = _pool(source, scores, index.only, times, POOL, helped(scores))
    if not pool and index.only.spans:  # the rarest words were said at other times only
        values = _latest(index, [term for term in terms if not is_beginning(term)])
        pool = _pool(source, _summed(values.values()), index.only, times, POOL)
    whole = spread(source, pool, values)
    return Ranked(_cut(whole), tried, question.dropped)


def _cut(scores: Mapping[int, float]) -> dict[int, float]:
    return {id: scores[id] for id in first(scores, CANDIDATES)}


def is_beginning(term: str) -> bool:
    return term.endswith("*")


def _valued(index: WordIndex, question: ParsedQuestion, terms: Iterable[str]) -> Values:
    """Return all messages with one of the rarest terms. The other terms count only in those."""
    begun = {term: index.alike(plain(term)[:-1]) for term in terms if is_beginning(term)}
    whole = [term for term in terms if not is_beginning(term)]
    words = {word for _, words in question.kin for word in words if not is_beginning(word)}
    # Common words matter if there is little else.
    small = [f'"{word}"' for word in question.dropped if len(word) > 1] if len(question.terms) <= FEW else []
    counts, lead = _leading(index, whole, {*words, *small} - {*whole})
    if not lead and not any(begun.values()) and any(counts[term] for term in whole):
        return _latest(index, [term for term in whole if counts[term]])
    values = {term: dict.fromkeys(ids, index.worth(len(ids))) for term, ids in begun.items() if ids}
    following = [term for term in counts if term in whole and counts[term] and term not in lead]
    following = following[: max(0, ENOUGH - len(lead))]
    within = {term: (tuple(lead), (term,)) for term in following} if lead else {}
    others = [*_affordable({term: counts[term] for term in counts if term in words}, EXTRA)]
    little = [*_affordable({term: counts[term] for term in counts if term in small}, EXTRA)]
    plainly = {term: all_of([term]) for term in (*lead, *others, *little)}
    found = index.held([*plainly.values(), *within.values()])
    held = {term: found[each] for term, each in (plainly | within).items()}
    for term in (*lead, *within):
        values[term] = dict.fromkeys(held[term], index.worth(counts[term]))
    _stand_in(index, question, values, {word: held[word] for word in others}, counts)
    for word in little if values else ():
        values[f"small {word}"] = dict.fromkeys(held[word], SMALL * index.worth(counts[word]))
    return values


def _stand_in(
    index: WordIndex,
    question: ParsedQuestion,
    values: Values,
    held: Mapping[str, list[int]],
    counts: Mapping[str, int],
) -> None:
    """Score synonyms. One counts if the original word is missing, and less than the original would."""
    for term, words in question.kin:
        most = index.worth(counts[term]) if counts.get(term) else index.worth(0)
        gained: dict[int, float] = {}
        for word in words:
            ids = index.alike(plain(word)[:-1]) if is_beginning(word) else held.get(word, [])
            worth = KIN * min(most, index.worth(counts.get(word, len(ids))))
            for id in ids:
                gained[id] = max(worth, gained.get(id, 0.0))
        if gained:
            values[term] = gained | values.get(term, {})


def _leading(index: WordIndex, terms: list[str], others: set[str]) -> tuple[dict[str, int], list[str]]:
    """Return the counts of all terms, and the rarest ones. A long question has enough rare ones, so that none
    is counted far."""
    if len(terms) > MANY:
        counts = index.counts((), {*terms, *others})
        lead = _affordable({term: counts[term] for term in counts if term in terms}, EXTRA - 1)
        if lead:
            return counts, lead[:LEADING]
    counts = index.counts(terms, others)
    return counts, _affordable({term: counts[term] for term in counts if term in terms}, SCORED - 1)


def _affordable(counts: Mapping[str, int], most: int) -> list[str]:
    """Return the rarest terms, as long as all messages with one of them can be read."""
    sums = zip(counts.items(), accumulate(counts.values()), strict=True)
    return [term for (term, count), rows in sums if count and rows <= most]


def _latest(index: WordIndex, terms: list[str]) -> Values:
    """If all words are common, return the latest messages with all of them, or else with one."""
    worth, together = index.worth(COMMON), all_of(terms)
    found = index.newest([together])[together] if terms else []
    values = {term: dict.fromkeys(found, worth) for term in terms}
    if len(found) < LATEST and len(terms) > 1:
        single = {all_of([term]): term for term in terms}
        for each, ids in index.newest(list(single)).items():
            values[single[each]] |= dict.fromkeys(ids, worth)
    return values


def _added(index: WordIndex, holding: list[int], terms: Iterable[str], must: Expression) -> dict[int, float]:
    """Return what contains the phrases. Each other word in it counts, too."""
    values: Values = {"": dict.fromkeys(holding, 1.0)}
    whole = [term for term in terms if not is_beginning(term)]
    counts = index.counts(whole)
    within = {term: (*must, (term,)) for term in counts if counts[term]}
    held = index.held(within.values())
    among = frozenset(holding)
    for term, expression in within.items():
        values[term] = {id: index.worth(counts[term]) for id in held[expression] if id in among}
    return _summed(values.values())


def _exact(index: WordIndex, question: ParsedQuestion, wanted: int) -> dict[int, float]:
    """Return what contains a run of letters as it is; if that is too little, then also what contains some of
    its pairs, by how much they say about the whole. Empty if nothing contains the run."""
    [holding] = index.some(all_of([question.run]))
    scores: dict[int, float] = {}
    if 0 < len(holding) < wanted:
        held = index.some(*(all_of([term]) for term in question.terms))
        worth = [index.worth(len(ids)) for ids in held]
        pairs = (dict.fromkeys(ids, each) for ids, each in zip(held, worth, strict=True))
        scores = {id: PARTED * score / sum(worth) for id, score in _summed(pairs).items()}
    return scores | dict.fromkeys(holding, 1.0)


def _summed(values: Iterable[Mapping[int, float]]) -> dict[int, float]:
    scores: dict[int, float] = {}
    for each in values:
        sums = {id: scores[id] + each[id] for id in scores.keys() & each.keys()}
        scores = {**scores, **each, **sums}
    return scores


def _of(source: WordSource, window: Window, wanted: bool) -> dict[int, float]:
    """Return what was said then, if a time is all that is asked for."""
    return dict.fromkeys(source.latest(window, CANDIDATES), 1.0) if wanted else {}


def helped(scores: Mapping[int, float]) -> dict[int, float]:
    """Estimate what each will get from its neighbors. Neighbors are mostly stored together, so the next ids
    suggest where to look; the nodes decide."""
    ids, guess = sorted(scores), dict(scores)
    for one, two in pairwise(ids):
        if two - one <= APART:
            guess[one] += NEAR * scores[two]
            guess[two] += NEAR * scores[one]
    return guess


def _pool(
    source: WordSource,
    scores: dict[int, float],
    only: Window,
    times: Window,
    count: int,
    order_by: Mapping[int, float] | None = None,
) -> dict[int, float]:
    """Return the top ones within the bounds, and the top ones from the requested time."""
    looked = TIMELY if times.spans else count
    guess = scores if order_by is None else order_by
    order = source.sieve(first(guess, len(scores) if only.spans else looked), only, looked)
    timely = source.sieve(order, times, CANDIDATES) if times.spans else ()
    return {id: scores[id] for id in dict.fromkeys((*order[:count], *timely))}


def _loose(question: ParsedQuestion) -> list[str]:
    """Return the words of phrases that are found nowhere."""
    loose = [word for phrase in question.phrases for word in plain(phrase).split()]
    return [f'"{word}"' for word in loose if word not in EMPTY] or [f'"{word}"' for word in loose]
