"""Rank the skills that fit a task, and find skills similar to a new one, among a store's search results."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from math import log
from pathlib import Path

from msgspec import Struct
from msgspec.structs import astuple

from hone.core.regex import regex
from hone.core.skill import ListedSkill, SkillHits, SkillMatches, SkillWords, to_stem, to_stems
from hone.core.value import replace

CANDIDATES = 120
"""How many to fetch from the store for a good ranking."""
ALIKE = 0.6
"""The similarity from which one of two skills may suffice."""


class Fit(Struct, frozen=True):
    """How well a skill fits a task. `score` orders skills. `shared` is how many content words of the task it
    has; `weight` and `front` are their rarity, and that of those in its name and description: a word that no
    other skill has counts almost one."""

    skill: ListedSkill
    score: float
    shared: int = 0
    weight: float = 0.0
    front: float = 0.0


Candidate = tuple[ListedSkill, SkillWords, float]
"""A skill, its stems, and its score in the store's search."""

# Measured on tasks as users write them, against 5,000 skills: tests/skills/routing.
_PLACES = (1.2, 1.1, 1.0)
"""The weight of a stem in the name, in the description and in the beginning of the body."""
_FOUND, _HINTED, _SURPLUS = 0.1, 0.2, 0.05
MEANT, _MEANING = 50, 0.5
"""How many skills to compare by meaning, too, and the weight of that relative to words."""
NAMED = 5
"""The most skills to name unasked."""
_SHARED, _WEIGHT, _IN_FRONT = 2, 0.95, 0.4
"""Thresholds under which less than 5 of 100 turns of small talk bring up a skill."""
NOTHING = SkillMatches((), {}, 0)

_APOSTROPHE = regex(r"['’](?:s|t|re|ve|ll|d|m)\b")
_HUMP = regex(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = regex(r"[^\W_]+")
_JOINED = regex(r"\b([^\W_]{1,3})-([^\W_]{2,})\b")
_LINKS = frozenset({"a", "an", "and", "for", "in", "of", "or", "the", "to", "with"})
_EMPTY = regex(r"a|an|and|are|at|be|by|do|for|i|in|is|it|my|of|on|or|our|that|the|this|to|we|with|you|\w")


def words(query: str) -> list[str]:
    """Return what to search for: each word once, without stop words unless there are no others. Common words
    stay: if no skill has the rare ones, they are the only evidence."""
    found = _tokens(query)
    return [word for word in found if not _EMPTY.fullmatch(word)] or found


def content_words(query: str) -> list[str]:
    """Return the words of a task that tell its subject; if there are none, all of them."""
    found = _tokens(query)
    return [word for word in found if not _is_common(word)] or found


def rank(query: str, candidates: Sequence[Candidate], known: SkillMatches = NOTHING) -> list[Fit]:
    """Rank skills, best first: by how much of the task the beginning of a skill covers, by common words as a
    tie-breaker, by the store's own score, and by how much a name promises that nobody asked for. `known` is
    the rarity of each word."""
    content, every = content_stems(query), _stems(" ".join(word for word in _tokens(query) if len(word) > 1))
    hits = [words.find(content | every) for _, words, _ in candidates]
    task = _Task.of(content, every, hits, known)
    best = max((score for *_, score in candidates), default=0.0) or 1.0
    fits = [
        Fit(listed, task.weigh(found, score / best), *task.share(found))
        for (listed, _, score), found in zip(candidates, hits, strict=True)
    ]
    return sorted(fits, key=lambda fit: (-fit.score, fit.skill.name))


def blend(ranked: Sequence[Fit], meanings: Sequence[float]) -> list[Fit]:
    """Rerank the first ones by words and by meaning. `meanings` are from -1 to 1, one for each of the first;
    those without one stay behind them."""
    best = max((fit.score for fit in ranked), default=0.0) or 1.0
    first = [
        replace(fit, score=(1 - _MEANING) * fit.score / best + _MEANING * meaning)
        for fit, meaning in zip(ranked, meanings, strict=False)
    ]
    return [*sorted(first, key=lambda fit: (-fit.score, fit.skill.name)), *ranked[len(first) :]]


def choose_close(ranked: Sequence[Fit]) -> list[ListedSkill]:
    """Return what may be named unasked: nothing unless one of the first is close to the task, and then also
    those that share a good part of it."""
    first = ranked[:NAMED]
    if not any(fit.shared >= _SHARED and fit.weight >= _WEIGHT and fit.front >= _IN_FRONT for fit in first):
        return []
    return [fit.skill for fit in first if fit.weight >= _WEIGHT / 2]


def similar(
    name: str, description: str, candidates: Sequence[Candidate], threshold: float = ALIKE
) -> list[ListedSkill]:
    """Return those that share most of their name and description with this one, most similar first."""
    wanted = _gist(name, description)
    scored = [(_likeness(wanted, _gist(each.name, each.description)), each) for each, *_ in candidates]
    found = [(-likeness, each.name, each) for likeness, each in scored if likeness >= threshold]
    return [each for _, _, each in sorted(found, key=lambda item: item[:2])]


class _Task(Struct, frozen=True):
    """The stems of a task with their weights: the fewer skills have one, the higher. `told` are those that
    some skill has: content words, or all of them if there are none. `unit` is the highest possible weight."""

    content: frozenset[str]
    told: Mapping[str, float]
    hints: Mapping[str, float]
    unit: float

    @classmethod
    def of(
        cls, content: frozenset[str], every: frozenset[str], hits: Sequence[SkillHits], known: SkillMatches
    ) -> "_Task":
        told = content or every
        held = Counter(stem for each in hits for stem in each.all)
        hinted = {stem: log(1 + len(hits) / (1 + held[stem])) for stem in every - told}
        for word, count in known.counts.items():
            for stem in to_stems(word):
                held[stem] = max(held[stem], count)
        total = max(known.total, len(hits))
        weights = {stem: log(1 + total / (1 + held[stem])) for stem in told if held[stem]}
        return cls(content, weights, hinted, log(1 + total) or 1.0)

    def weigh(self, hits: SkillHits, found: float) -> float:
        told = sum(
            share * _sum(self.told, stems) for share, stems in zip(_PLACES, astuple(hits), strict=True)
        )
        covered = told / (sum(self.told.values()) or 1.0)
        return (
            covered
            + _FOUND * (found or covered)
            + _HINTED * _sum(self.hints, hits.all) / (sum(self.hints.values()) or 1.0)
            - _SURPLUS * len(hits.name - _LINKS - self.told.keys())
        )

    def share(self, hits: SkillHits) -> tuple[int, float, float]:
        """Return how many content words a skill has, and the rarity of these and of those in its front."""
        shared = self.content & hits.all
        front = shared & (hits.name | hits.description)
        return len(shared), _sum(self.told, shared) / self.unit, _sum(self.told, front) / self.unit


def _sum(weights: Mapping[str, float], stems: Iterable[str]) -> float:
    return sum(weights[stem] for stem in stems if stem in weights)


def _gist(name: str, description: str) -> tuple[frozenset[str], frozenset[str]]:
    told = frozenset(to_stem(token) for token in _tokens(description) if not _is_common(token))
    return _stems(name) - _LINKS, told


def _likeness(
    one: tuple[frozenset[str], frozenset[str]], other: tuple[frozenset[str], frozenset[str]]
) -> float:
    """Return the larger of the similarities of the names and of all words, from 0 to 1."""
    names, texts = (_shared(one[0], other[0]), _shared(one[0] | one[1], other[0] | other[1]))
    return max(names, texts)


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other)) if one or other else 0.0


def _tokens(text: str) -> list[str]:
    """Return lowercase words, each once: parts of identifiers, and the whole of camel-case ones."""
    plain = _JOINED.sub(r"\1-\2 \1\2", _APOSTROPHE.sub("", text))
    parts = _WORD.findall(_HUMP.sub(" ", plain))
    return list(dict.fromkeys(word.lower() for word in [*_WORD.findall(plain), *parts]))


def _stems(text: str) -> frozenset[str]:
    return frozenset(to_stems(text))


def content_stems(text: str) -> frozenset[str]:
    """Return the stems of the words that tell a text's subject."""
    return _stems(" ".join(word for word in _tokens(text) if not _is_common(word)))


def _is_common(word: str) -> bool:
    return len(word) == 1 or word in _common() or (word.isdecimal() and len(word) < 3)


@cache
def _common() -> frozenset[str]:
    """Return stop words, and words of questions and dates, which are in any task."""
    return frozenset(Path(__file__).with_name("common.txt").read_text(encoding="utf-8").split())
