"""Search over the sessions in the memory of this process: the reference, which reads everything each time."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from math import log

from hone.core.ids import SessionId
from hone.core.messages import Role
from hone.core.ports import StoredSession
from hone.core.recall import Hit, Passage, Query, SearchResult, is_aside, said, stem
from hone.core.transcript import Node
from hone.core.turn import Origin
from hone.core.value import replace
from hone.stores.context import AROUND_IT, NEAR, NEXT_BUT_ONE, PLACES
from hone.stores.passages import indexed
from hone.stores.question import ParsedQuestion, parse, plain, words
from hone.stores.ranking import KIN, PARTED
from hone.stores.recall import IN_TIME, QUOTED, SHARE, SPOKEN
from tests.reference.sessions import InMemorySessions


@dataclass(frozen=True, slots=True)
class _Said:
    tree: SessionId
    stored: StoredSession
    number: int
    node: Node
    left: bool
    words: tuple[str, ...]


class InMemoryRecall:
    def __init__(self, sessions: InMemorySessions) -> None:
        self._sessions = sessions

    async def search(self, query: Query) -> SearchResult:
        question = parse(query.words, query.today)
        heard = list(_heard(self._sessions).values())
        values = _values(heard, question)
        if question.run and (exact := _exact(heard, question, query, values)):
            hits = tuple(_spread_out(exact, query.limit))
            return SearchResult(hits, tuple(map(plain, question.terms)), question.dropped)
        own = {place: sum(each.get(place, 0.0) for each in values.values()) for place in _places(values)}
        whole = own if question.phrases else _spread(heard, own, values)
        scores = {place: score * _worth(question, heard[place]) for place, score in whole.items()}
        wanted = [
            _hit(heard[place], scores[place])
            for place in sorted(scores, key=lambda each: -scores[each])
            if _wanted(heard[place], query, question)
        ]
        hits = tuple(_spread_out(wanted, query.limit))
        return SearchResult(hits, tuple(map(plain, (*question.phrases, *question.terms))), question.dropped)


def _exact(
    heard: list[_Said], question: ParsedQuestion, query: Query, values: dict[str, dict[int, float]]
) -> list[Hit]:
    """What holds a run of letters as it is, then what holds some of its pairs; nothing if none holds it."""
    wanted = [place for place, each in enumerate(heard) if _wanted(each, query, question)]
    holding = _holding(heard, wanted, question.run)
    if not holding:
        return []
    whole = sum(max(of.values(), default=log(1 + len(heard) / 0.5)) for of in values.values())
    own = {place: sum(of.get(place, 0.0) for of in values.values()) / whole for place in _places(values)}
    hits = [
        _hit(heard[place], PARTED * own[place] * _worth(question, heard[place]))
        for place in own
        if place in wanted and place not in holding
    ]
    alone = [replace(hit, before=None, after=None) if hit.score < PARTED / 2 else hit for hit in hits]
    first = [_hit(heard[place], _worth(question, heard[place])) for place in holding]
    return sorted([*first, *alone], key=lambda hit: -hit.score)


def _spread_out(hits: list[Hit], limit: int) -> list[Hit]:
    counts: Counter[str] = Counter()
    kept: list[tuple[bool, int]] = []
    for number, hit in enumerate(hits):
        kept.append((counts[hit.tree] >= max(1, round(SHARE * limit)), number))
        counts[hit.tree] += 1
    return [hits[number] for number in sorted(number for _, number in sorted(kept)[:limit])]


def _places(values: dict[str, dict[int, float]]) -> set[int]:
    return {place for each in values.values() for place in each}


def _heard(sessions: InMemorySessions) -> dict[tuple[SessionId, str], _Said]:
    """Each message once in its tree: not in a fork, on a line that goes on if there is one, and where it was
    said first."""
    found: dict[tuple[SessionId, str], _Said] = {}
    lines = sorted(sessions.lines(), key=lambda line: (line[1].header.origin is not Origin.USER, line[2]))
    for tree, stored, left in lines:
        for number, node in enumerate(stored.transcript.nodes, 1):
            if number > stored.header.shared or (tree, node.digest) not in found:
                text = tuple(map(stem, words(indexed(said(node.message)))))
                found.setdefault((tree, node.digest), _Said(tree, stored, number, node, left, text))
    return found


def _values(heard: list[_Said], question: ParsedQuestion) -> dict[str, dict[int, float]]:
    """By term: what each message gets for it."""
    phrases = [tuple(map(stem, words(plain(each)))) for each in question.phrases]
    whole = [place for place, each in enumerate(heard) if all(_in(phrase, each.words) for phrase in phrases)]
    values = {"": dict.fromkeys(whole, 1.0)} if phrases and whole else {}
    terms = question.terms
    if phrases and not whole:  # then the words of the phrases must do
        whole = list(range(len(heard)))
        terms += tuple(word for phrase in phrases for word in phrase)
    kin = dict(question.kin)
    for term in terms:
        holding = _holding(heard, whole, term)
        worth = log(1 + len(heard) / (len(holding) or 0.5))
        of = dict.fromkeys(holding, worth)
        for word in kin.get(term, ()) if not phrases else ():
            others = _holding(heard, whole, word)
            for place in others:
                of[place] = max(of.get(place, 0.0), KIN * min(worth, log(1 + len(heard) / len(others))))
        values[term] = of
    if not _places(values) and question.spans:
        return {"": {place: 1.0 for place, each in enumerate(heard) if _timely(question, each)}}
    return values


def _holding(heard: list[_Said], whole: list[int], term: str) -> list[int]:
    stems = tuple(map(stem, words(plain(term))))
    return [place for place in whole if _in(stems, heard[place].words, prefix="*" in term)]


def _in(phrase: tuple[str, ...], text: tuple[str, ...], *, prefix: bool = False) -> bool:
    if prefix:
        return bool(phrase) and any(word.startswith(phrase[-1]) for word in text)
    size = len(phrase)
    return bool(phrase) and any(text[start : start + size] == phrase for start in range(len(text) - size + 1))


def _spread(
    heard: list[_Said], own: dict[int, float], values: dict[str, dict[int, float]]
) -> dict[int, float]:
    at = {(each.tree, each.stored.header.id, each.number): place for place, each in enumerate(heard)}
    often = Counter(each.node.digest for each in heard)
    spread = dict(own)
    around: dict[str, dict[str, float]] = defaultdict(dict)
    for term, of in values.items():
        for place, value in of.items():
            words = around[heard[place].tree]
            words[term] = max(value, words.get(term, 0.0))
    for place, each in enumerate(heard):
        if often[each.node.digest] > PLACES:
            continue
        numbers = ((each.number + away, NEAR if abs(away) == 1 else NEXT_BUT_ONE) for away in (-2, -1, 1, 2))
        beside = ((at.get((each.tree, each.stored.header.id, number)), weight) for number, weight in numbers)
        gain = sum(weight * own.get(neighbor, 0.0) for neighbor, weight in beside if neighbor is not None)
        if gain or place in own:
            lacking = (value for term, value in around[each.tree].items() if place not in values[term])
            spread[place] = spread.get(place, 0.0) + gain + AROUND_IT * sum(lacking)
    return spread


def _worth(question: ParsedQuestion, each: _Said) -> float:
    role = each.node.message.role
    return (
        (IN_TIME if _timely(question, each) else 1.0)
        * (SPOKEN if question.is_meant(role, said(each.node.message)) else 1.0)
        * (QUOTED if role is Role.TOOL else 1.0)
    )


def _timely(question: ParsedQuestion, each: _Said) -> bool:
    return any(first <= each.node.at.date() <= last for first, last in question.spans)


def _wanted(each: _Said, query: Query, question: ParsedQuestion) -> bool:
    at = each.node.at
    early, late = query.since and at < query.since, query.until and at > query.until
    text = said(each.node.message)
    aside = is_aside(each.stored.header, _passage(each.number, each.node)) and not query.asides
    new = each.node.digest not in query.seen
    return not early and not late and not aside and new and bool(text) and question.fits(text)


def _hit(each: _Said, score: float) -> Hit:
    nodes = each.stored.transcript.nodes
    first = each.stored.transcript.examples + 1
    before = _passage(each.number - 1, nodes[each.number - 2]) if each.number > first else None
    after = _passage(each.number + 1, nodes[each.number]) if each.number < len(nodes) else None
    here = _passage(each.number, each.node)
    opening = next((node.message.text for node in nodes if node.message.role is Role.USER), "")
    return Hit(each.stored.header, each.tree, here, before, after, each.left, score, opening)


def _passage(number: int, node: Node) -> Passage:
    return Passage(number, node.message.role, node.trust, node.at, said(node.message))
