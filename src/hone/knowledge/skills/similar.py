"""Rank the skills that fit a task, and find skills similar to a new one, among a store's search results."""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from math import log
from pathlib import Path

from msgspec import Struct

from hone.core.regex import regex
from hone.core.skill import ListedSkill

CANDIDATES = 200
"""How many to take from the store for a good ranking."""
ALIKE = 0.6
"""From here on two skills are so much alike that one may do."""

Candidate = tuple[ListedSkill, str, float]
"""A skill, its body, and what the store's search gave it."""

# Measured on tasks as users write them, beside 5,000 skills: tests/skills/routing.
_FOUND, _COVERED, _HINTED, _SURPLUS = 1.0, 1.0, 0.5, 0.06
_BODY = 0.8
_READ = 8_000
"""Characters of a body: the beginning says what it is about."""

_APOSTROPHE = regex(r"['’](?:s|t|re|ve|ll|d|m)\b")
_HUMP = regex(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = regex(r"[^\W_]+")
_JOINED = regex(r"\b([^\W_]{1,3})-([^\W_]{2,})\b")
_ENDINGS = ("ations", "ation", "ings", "ing", "ers", "ed", "es", "er", "ly", "s", "e")
_LINKS = frozenset({"a", "an", "and", "for", "in", "of", "or", "the", "to", "with"})
_EMPTY = regex(r"a|an|and|are|at|be|by|do|for|i|in|is|it|my|of|on|or|our|that|the|this|to|we|with|you|\w")


def words(query: str) -> list[str]:
    """What to search for: each word once, without those of every sentence unless there are no others.
    Small words stay: where the large ones are in no skill, they are all there is to go by."""
    found = _tokens(query)
    return [word for word in found if not _EMPTY.fullmatch(word)] or found


def rank(query: str, candidates: Sequence[Candidate]) -> list[ListedSkill]:
    """Best first. What counts: the store's own score, how much of the task a skill speaks of, the small words
    as a hint between equals, and how much its name promises that nobody asked for."""
    if not candidates:
        return []
    summaries = [_Words.of(listed, body) for listed, body, _ in candidates]
    task = _Task.of(query, summaries)
    best = max(score for _, _, score in candidates) or 1.0
    scored = [
        (-task.fit(summary, score / best), listed.name, listed)
        for summary, (listed, _, score) in zip(summaries, candidates, strict=True)
    ]
    return [listed for _, _, listed in sorted(scored, key=lambda item: item[:2])]


def similar(
    name: str, description: str, candidates: Sequence[Candidate], threshold: float = ALIKE
) -> list[ListedSkill]:
    """Those that share most of their name and description with this one, most alike first."""
    wanted = _gist(name, description)
    scored = [(_likeness(wanted, _gist(each.name, each.description)), each) for each, _, _ in candidates]
    found = [(-likeness, each.name, each) for likeness, each in scored if likeness >= threshold]
    return [each for _, _, each in sorted(found, key=lambda item: item[:2])]


class _Words(Struct, frozen=True):
    """The stems of a skill. `front` are those of name and description."""

    name: frozenset[str]
    front: frozenset[str]
    all: frozenset[str]

    @classmethod
    def of(cls, listed: ListedSkill, body: str) -> "_Words":
        name = _stems(listed.name)
        front = name | _stems(listed.description)
        return cls(name - _LINKS, front, front | _stems(body[:_READ]))


class _Task(Struct, frozen=True):
    """The stems of a task with their weights: the fewer candidates have one, the more it tells."""

    told: dict[str, float]
    hints: dict[str, float]

    @classmethod
    def of(cls, query: str, summaries: Sequence[_Words]) -> "_Task":
        tokens = _tokens(query)
        counts = Counter(stem for summary in summaries for stem in summary.all)
        told = {to_stem(token) for token in tokens if not _is_common(token)}
        hints = {to_stem(token) for token in tokens if len(token) > 1} - told
        weights = {stem: log(1 + len(summaries) / (1 + counts[stem])) for stem in told | hints}
        return cls({stem: weights[stem] for stem in told}, {stem: weights[stem] for stem in hints})

    def fit(self, summary: _Words, found: float) -> float:
        """`found` is the store's score as a part of the best one; what is in no store has none."""
        covered = self._covered(summary)
        hinted = sum(weight for stem, weight in self.hints.items() if stem in summary.all)
        return (
            _FOUND * (found or covered)
            + _COVERED * covered
            + _HINTED * hinted / (sum(self.hints.values()) or 1.0)
            - _SURPLUS * len(summary.name - self.told.keys())
        )

    def _covered(self, summary: _Words) -> float:
        told = sum(
            weight * (1.0 if stem in summary.front else _BODY)
            for stem, weight in self.told.items()
            if stem in summary.all
        )
        return told / (sum(self.told.values()) or 1.0)


def _gist(name: str, description: str) -> tuple[frozenset[str], frozenset[str]]:
    told = frozenset(to_stem(token) for token in _tokens(description) if not _is_common(token))
    return _stems(name) - _LINKS, told


def _likeness(
    one: tuple[frozenset[str], frozenset[str]], other: tuple[frozenset[str], frozenset[str]]
) -> float:
    """From 0 to 1: the larger of how alike the names are and how alike all words are."""
    names, texts = (_shared(one[0], other[0]), _shared(one[0] | one[1], other[0] | other[1]))
    return max(names, texts)


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other)) if one or other else 0.0


def _tokens(text: str) -> list[str]:
    """Words in lower case, each once. Parts of identifiers, and the whole of what is written with humps."""
    plain = _JOINED.sub(r"\1-\2 \1\2", _APOSTROPHE.sub("", text))
    parts = _WORD.findall(_HUMP.sub(" ", plain))
    return list(dict.fromkeys(word.lower() for word in [*_WORD.findall(plain), *parts]))


def _stems(text: str) -> frozenset[str]:
    return frozenset(map(to_stem, _WORD.findall(text.lower())))


@cache
def to_stem(word: str) -> str:
    """Near enough for English; other words lose little."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    doubled = len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls"
    return word[:-1] if doubled else word


def _is_common(word: str) -> bool:
    return len(word) == 1 or word in _common() or (word.isdecimal() and len(word) < 3)


@cache
def _common() -> frozenset[str]:
    """Words of every sentence, of asking and of dates: they are in any task."""
    return frozenset(Path(__file__).with_name("common.txt").read_text(encoding="utf-8").split())
