"""Search over the sessions in the memory of this process: the reference, which reads everything each time."""

from collections import Counter
from dataclasses import dataclass
from math import log

from hone.core.ids import SessionId
from hone.core.messages import Role
from hone.core.ports import StoredSession
from hone.core.recall import Hit, Passage, Query, SearchResult, said, stem
from hone.core.transcript import Node
from hone.core.turn import Origin
from hone.stores.passages import indexed
from hone.stores.question import ParsedQuestion, parse, plain, words
from hone.stores.ranking import KIN, NEAR, PLACES
from hone.stores.recall import ASIDE, IN_TIME, QUOTED, SPOKEN
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
        own = _scores(heard, question)
        scores = {
            place: score * _worth(question, heard[place]) for place, score in _spread(heard, own).items()
        }
        if question.phrases:
            scores = {place: scores[place] for place in own}
        wanted = [
            place
            for place in sorted(scores, key=lambda each: -scores[each])
            if _wanted(heard[place], query, question)
        ]
        hits = tuple(_hit(heard[place], scores[place]) for place in wanted[: query.limit])
        return SearchResult(hits, tuple(map(plain, (*question.phrases, *question.terms))), question.dropped)


def _heard(sessions: InMemorySessions) -> dict[tuple[SessionId, str], _Said]:
    """Each message once in its tree: on a line that goes on if there is one, and where it was said first."""
    found: dict[tuple[SessionId, str], _Said] = {}
    lines = sorted(sessions.lines(), key=lambda line: line[2])
    for tree, stored, left in lines:
        for number, node in enumerate(stored.transcript.nodes, 1):
            if number > stored.header.shared or (tree, node.digest) not in found:
                text = tuple(map(stem, words(indexed(said(node.message)))))
                found.setdefault((tree, node.digest), _Said(tree, stored, number, node, left, text))
    return found


def _scores(heard: list[_Said], question: ParsedQuestion) -> dict[int, float]:
    phrases = [tuple(map(stem, words(plain(each)))) for each in question.phrases]
    whole = [place for place, each in enumerate(heard) if all(_in(phrase, each.words) for phrase in phrases)]
    scores = dict.fromkeys(whole, 1.0) if phrases else {}
    terms = question.terms
    if phrases and not whole:  # then the words of the phrases must do
        whole = list(range(len(heard)))
        terms += tuple(word for phrase in phrases for word in phrase)
    weighed = [*((term, 1.0) for term in terms), *((term, KIN) for term in question.kin)]
    for term, weight in weighed:
        stems = tuple(map(stem, words(plain(term))))
        holding = [place for place in whole if _in(stems, heard[place].words, prefix="*" in term)]
        for place in holding:
            scores[place] = scores.get(place, 0.0) + weight * log(1 + len(heard) / len(holding))
    if not scores and question.spans:
        return {place: 1.0 for place, each in enumerate(heard) if _timely(question, each)}
    return scores


def _in(phrase: tuple[str, ...], text: tuple[str, ...], *, prefix: bool = False) -> bool:
    if prefix:
        return bool(phrase) and any(word.startswith(phrase[-1]) for word in text)
    size = len(phrase)
    return bool(phrase) and any(text[start : start + size] == phrase for start in range(len(text) - size + 1))


def _spread(heard: list[_Said], own: dict[int, float]) -> dict[int, float]:
    at = {(each.tree, each.stored.header.id, each.number): place for place, each in enumerate(heard)}
    spread = dict(own)
    often = Counter(each.node.digest for each in heard)
    for place, score in own.items():
        each = heard[place]
        for number in (each.number - 1, each.number + 1):
            neighbour = at.get((each.tree, each.stored.header.id, number))
            if neighbour is not None and often[heard[neighbour].node.digest] <= PLACES:
                spread[neighbour] = spread.get(neighbour, 0.0) + NEAR * score
    return spread


def _worth(question: ParsedQuestion, each: _Said) -> float:
    role = each.node.message.role
    return (
        (IN_TIME if _timely(question, each) else 1.0)
        * (1.0 if each.stored.header.origin is Origin.USER else ASIDE)
        * (SPOKEN if question.speaker is role else 1.0)
        * (QUOTED if role is Role.TOOL else 1.0)
    )


def _timely(question: ParsedQuestion, each: _Said) -> bool:
    return any(first <= each.node.at.date() <= last for first, last in question.spans)


def _wanted(each: _Said, query: Query, question: ParsedQuestion) -> bool:
    at = each.node.at
    early, late = query.since and at < query.since, query.until and at > query.until
    text = said(each.node.message)
    return (
        not early and not late and each.node.digest not in query.seen and bool(text) and question.fits(text)
    )


def _hit(each: _Said, score: float) -> Hit:
    nodes = each.stored.transcript.nodes
    first = each.stored.transcript.examples + 1
    before = _passage(each.number - 1, nodes[each.number - 2]) if each.number > first else None
    after = _passage(each.number + 1, nodes[each.number]) if each.number < len(nodes) else None
    here = _passage(each.number, each.node)
    return Hit(each.stored.header, each.tree, here, before, after, each.left, score)


def _passage(number: int, node: Node) -> Passage:
    return Passage(number, node.message.role, node.trust, node.at, said(node.message))
