"""Measure how much of an item shows in a turn: cheaply, without a model, and reproducibly.

The measure looks for what an item could have added. Its content words lose their endings and get a weight: a
word that no other item has counts most. A word counts for an item if the model used it in a call or in the
answer before it appeared anywhere else: in the user's request, an earlier message or a tool's result. If such
a word belongs to several items, it counts for those that the request is about. An item about the form of an
answer (its language, a table) counts if the answer has that form.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import exp, log

from msgspec import Struct

from hone.core.regex import regex
from hone.features.attribution.traits import match_traits
from hone.knowledge.language import Kind
from hone.knowledge.lexicon import detect, lexicons
from hone.knowledge.resemblance import reduce

LIKELY = 0.5
"""The score from which an item counts as having shaped the answer."""
SHOWN = 6
"""The most words to name as the reason."""
_NUMBER = regex(r"\d+(?:[.:,/-]\d+)+|\d{2,}")
_WORD = regex(r"[^\W_]+")
_HUMP = regex(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NAME = regex(r"(?<![.!?:] )(?<!^)(?<!\w)[A-Z][^\W_]+")
_IDENTIFIER = regex(r"\b[a-z]+(?:_[a-z]+)+\b")
_WEIGHTS = {"bias": -2.6, "added": 2.3, "share": 1.2, "about": 1.0, "trait": 3.2, "near": 1.5}
_EXACT = 1.2
_MOST = 2.5
"""The weight of added words beyond which more of them add nothing."""


class TurnStep(Struct, frozen=True):
    """One reply: the model's text, including the values in its calls, the results, and the tools called."""

    written: str
    results: str = ""
    tools: tuple[str, ...] = ()


class TurnText(Struct, frozen=True):
    """`before` is what was said earlier in the conversation, by anybody."""

    request: str
    steps: tuple[TurnStep, ...]
    before: str = ""

    @property
    def answer(self) -> str:
        return self.steps[-1].written if self.steps else ""


class TraceScore(Struct, frozen=True):
    """`value` is from 0 to 1; `words` are those that the item may have added, `trait` is the form that it
    asks for and the answer has."""

    value: float
    words: tuple[str, ...] = ()
    trait: str = ""


def rate(texts: Sequence[str], turn: TurnText, near: Sequence[float] = ()) -> list[TraceScore]:
    """Score each text. `near` is how near each is to the answer in meaning, if known."""
    found = [content(text) for text in texts]
    weights = weigh_rarity(found)
    asked = stems(turn.request)
    new = find_new(turn)
    return [
        _rate(text, own, weights, asked, new, turn, near[at] if near else 0.0)
        for at, (text, own) in enumerate(zip(texts, found, strict=True))
    ]


def _rate(
    text: str,
    own: frozenset[str],
    weights: Mapping[str, float],
    asked: frozenset[str],
    new: frozenset[str],
    turn: TurnText,
    near: float,
) -> TraceScore:
    could, added = own - asked, own & new
    room, got = _sum(weights, could), _sum(weights, added)
    trait = match_traits(text, turn.request, turn.answer)
    value = _WEIGHTS["bias"] + _WEIGHTS["added"] * min(got, _MOST)
    value += _WEIGHTS["share"] * (got / room if room else 0.0)
    value += _WEIGHTS["about"] * (_sum(weights, own & asked) / (_sum(weights, own) or 1.0))
    value += _WEIGHTS["trait"] * bool(trait) + _WEIGHTS["near"] * max(0.0, near)
    words = sorted(added, key=lambda each: (-weights[each], each))[:SHOWN]
    return TraceScore(1 / (1 + exp(-value)), tuple(words), trait)


def content(text: str) -> frozenset[str]:
    """Return the part of an item to compare: its content words without their endings, its numbers, and whole
    identifiers with an underscore, such as the names of tools. A capital inside a sentence makes a name of
    any word: "Begin my mails with Dear"."""
    lexicon, own = detect(text), lexicons()["en"]
    idle = own.use | lexicon.use | own.idle | lexicon.idle
    telling = {
        each
        for each in split(text)
        if lexicon.written.get(each, Kind.CONTENT) is Kind.CONTENT
        and own.written.get(each, Kind.CONTENT) is Kind.CONTENT
        and each not in idle
        and (len(each) > 1 or not each.isascii())
    }
    names = {each.lower() for each in _NAME.findall(text)}
    return frozenset(map(reduce, telling | names)) | _exact(text)


def stems(text: str) -> frozenset[str]:
    """Return the same for all words, for the texts that items are compared with."""
    return frozenset(map(reduce, split(text))) | _exact(text)


def split(text: str) -> set[str]:
    """Return the words of a text in lower case, parts of identifiers included."""
    parts = _WORD.findall(_HUMP.sub(" ", text))
    return {word.lower() for word in (*_WORD.findall(text), *parts) if not word.isdecimal()}


def _exact(text: str) -> frozenset[str]:
    return frozenset((*_NUMBER.findall(text), *_IDENTIFIER.findall(text)))


def weigh_rarity(found: Sequence[frozenset[str]]) -> Mapping[str, float]:
    """Return the weight of each stem: 1 if one text has it, less if many do, a little more for numbers and
    identifiers, which nobody uses by chance."""
    counts, total = Counter(stem for each in found for stem in each), max(2, len(found))
    rarity = {stem: log(1 + total / count) / log(1 + total) for stem, count in counts.items()}
    return {stem: weight * (1.0 if stem.isalpha() else _EXACT) for stem, weight in rarity.items()}


def find_new(turn: TurnText) -> frozenset[str]:
    """Return the stems that the model used first, in the order of the turn."""
    heard = stems(turn.request) | stems(turn.before)
    new: set[str] = set()
    for step in turn.steps:
        written = stems(step.written) | frozenset(step.tools)
        new |= written - heard
        heard |= written | stems(step.results)
    return frozenset(new)


def _sum(weights: Mapping[str, float], some: frozenset[str]) -> float:
    return sum(weights[each] for each in some)
