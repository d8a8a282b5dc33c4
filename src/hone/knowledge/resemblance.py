"""Compare lessons by their words: do two say much the same, cover the same subject, or contradict?

The comparison knows no meaning. Words lose their endings, and words that every lesson has are left out. It
decides whether code asks, refuses or replaces, never whether something is the owner's word.
"""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

import msgspec
from msgspec import Struct

from hone.core import seldom
from hone.core.regex import regex
from hone.core.skill import to_stem
from hone.knowledge.language import Kind
from hone.knowledge.lexicon import Lexicon, detect, lexicons
from hone.knowledge.reading import DENIALS, simplify
from hone.knowledge.tokens import words as words_of

MOST = 5
"""The most entries to name as similar."""
_SHARED = 0.6
"""The share of the smaller lesson's words that the other one must have if they are much the same."""
_HALF = 0.5
_TINY = 2
_LARGE = 12
"""The word count from which both texts must be covered: a long one has words of everything."""
_STEM = 7
"""How many letters of a word count: endings differ between languages."""
_LONGEST = 4_000
"""The most characters of a text to compare."""
_LATIN = regex(r"[a-z]+")
_ANY = regex(r"\w+")
_HINT = 3
_NUMBER = regex(r"\d+")
_WIDE = regex("[\u3040-\u30ff\u3400-\u9fff]")


class _Choice(Struct, frozen=True):
    about: str
    values: tuple[str, ...]


class _Single(Struct, frozen=True):
    words: tuple[str, ...]


class Cues(Struct, frozen=True):
    """Lists of words, split at white space."""

    denying: str
    taking_back: str
    meta: str
    claims: tuple[str, ...]
    conditions: str
    remedies: str
    saving: str
    procedures: str
    changing: str


class Subjects(Struct, frozen=True):
    """The subjects known from the file `subjects.toml`."""

    choices: tuple[_Choice, ...]
    single: _Single
    cues: Cues


class Gist(Struct, frozen=True):
    """The words that carry a text's meaning. `values` are choices and what was chosen, `order` all of its
    words in order."""

    words: frozenset[str]
    values: frozenset[tuple[int, int]]
    negated: bool
    order: tuple[str, ...]

    @property
    def size(self) -> int:
        return len(self.words) + len(self.values)


def resembles(one: str, other: str) -> bool:
    """Tell whether two lessons say much the same."""
    if _hints(one).isdisjoint(_hints(other)):
        return False
    a, b = gist(one), gist(other)
    return a.negated == b.negated and not _differing(a, b) and _overlap(a, b)


def is_part_of(one: str, other: str) -> bool:
    """Tell whether a lesson says much the same as a sentence, and has no word that the sentence lacks."""
    a, b = gist(one), gist(other)
    return resembles(one, other) and a.words <= b.words and a.values <= b.values


def is_same(one: str, other: str) -> bool:
    """Tell whether two lessons have the same words in the same order, ignoring endings and empty words."""
    a, b = gist(one), gist(other)
    return bool(a.order) and (a.order, a.negated) == (b.order, b.negated)


def has_same_words(one: str, other: str) -> bool:
    """Tell whether two lessons have the same words, in any order."""
    a, b = gist(one), gist(other)
    return a.size > 0 and (a.words, a.values, a.negated) == (b.words, b.values, b.negated)


def contradicts(one: str, other: str) -> bool:
    """Tell whether two lessons cannot both hold: they choose differently, or one denies the other."""
    return bool(find_contradicting(one, [other]))


def find_contradicting(text: str, others: Sequence[str]) -> list[int]:
    """Return the indices of the lessons that contradict another one."""
    new = gist(text)
    gists = list(map(gist, others))
    if not new.values:  # then only a denial can contradict
        return [at for at, old in enumerate(gists) if old.negated != new.negated and _excludes(new, old)]
    return [at for at, old in enumerate(gists) if _excludes(new, old)]


def _excludes(a: Gist, b: Gist) -> bool:
    if a.negated != b.negated:
        return a.size > 0 and (a.words, a.values) == (b.words, b.values)
    if not a.values or not b.values:
        return False
    return any(_is_same_case(_case(a, choice), _case(b, choice)) for choice in _differing(a, b))


def is_opposite(one: str, other: str) -> bool:
    """Tell whether two lessons differ in substance, however alike they sound: one denies something, or they
    choose differently."""
    a, b = gist(one), gist(other)
    return a.negated != b.negated or bool(_differing(a, b))


def denies(text: str, said: Sequence[str]) -> bool:
    """Tell whether a lesson denies something that the words it rests on do not deny."""
    return gist(text).negated and not any(gist(each).negated for each in said)


def is_same_subject(one: str, other: str) -> bool:
    """Tell whether one lesson may be meant to replace the other."""
    a, b = gist(one), gist(other)
    return _overlap(a, b) or contradicts(one, other) or bool(_singles(a) & _singles(b))


def shares_words(one: str, other: str) -> bool:
    """Tell whether two texts have some words in common."""
    return _shared(gist(one), gist(other)) >= _TINY


def shares_any(one: str, other: str) -> bool:
    """Tell whether two texts have a word in common."""
    return _shared(gist(one), gist(other)) > 0


def find_alike(text: str, entries: Sequence[str]) -> list[str]:
    """Return the entries that a lesson may repeat, correct or contradict, most similar first."""
    new = gist(text)
    found = [entry for entry in entries if is_same_subject(text, entry)]
    return sorted(found, key=lambda entry: -_shared(new, gist(entry)))[:MOST]


@lru_cache(maxsize=4_096)
def gist(text: str) -> Gist:
    """Reduce a text to the words for comparing it."""
    short = text[:_LONGEST]
    lexicon = detect(short)
    negated = False
    found: list[str] = []
    text, wide = _split_wide(simplify(short, lexicon))
    for word in (*wide, *words_of(text, lexicon)):
        kind = lexicon.written.get(word, Kind.CONTENT)
        negated = negated or kind in DENIALS or word in _denying()
        if _counts(word, kind, lexicon):
            found.append(word)
    values = frozenset(value for word in found for value in _values().get(word, ()))
    about = {word for choice, _ in values for word in _abouts()[choice]}
    rest = {reduce(word) for word in found if word not in _values() and word not in about}
    return Gist(frozenset(rest), values, negated, tuple(map(reduce, found)))


@lru_cache(maxsize=32_768)
def _hints(text: str) -> frozenset[object]:
    """Return word beginnings, quickly. Texts without a common one have no common word either."""
    plain = text[:_LONGEST].casefold()
    words = set(_ANY.findall(plain)) - lexicons()["en"].written.keys()
    values = {value for word in words for value in _values().get(word, ())}
    begins = {_without_accents(word)[:_HINT] for word in words}
    return frozenset(begins | values | set(_WIDE.findall(plain)))


def _without_accents(word: str) -> str:
    if word.isascii():
        return word
    return "".join(each for each in unicodedata.normalize("NFD", word) if not unicodedata.combining(each))


def reduce(word: str) -> str:
    """Return a word without its ending and its accents."""
    base = _without_accents(word)
    return (to_stem(base) if _LATIN.fullmatch(base) else base)[:_STEM] if base.isalpha() else base


def _counts(word: str, kind: Kind, lexicon: Lexicon) -> bool:
    if word in _values():
        return True
    return kind is Kind.CONTENT and not any(
        word in each for each in (lexicon.use, lexicons()["en"].use, _denying())
    )


def _split_wide(text: str) -> tuple[str, list[str]]:
    """Extract the values from a text without spaces between words."""
    found = [word for word in _wide_values() if word in text]
    for word in found:
        text = text.replace(word, " ")
    return text, found


def _differing(a: Gist, b: Gist) -> list[int]:
    """Return the choices that both make differently."""
    mine, yours = _chosen(a), _chosen(b)
    return [choice for choice in mine.keys() & yours.keys() if not mine[choice] & yours[choice]]


def _chosen(each: Gist) -> Mapping[int, set[int]]:
    chosen: dict[int, set[int]] = {}
    for choice, value in each.values:
        chosen.setdefault(choice, set()).add(value)
    return chosen


def _case(each: Gist, choice: int) -> frozenset[str]:
    """Return what a choice is made for: all other words, without numbers."""
    others = {f"{number} {value}" for number, value in each.values if number != choice}
    return frozenset({word for word in each.words if not _NUMBER.search(word)} | others)


def _is_same_case(one: frozenset[str], other: frozenset[str]) -> bool:
    """Tell whether two choices cover the same case. A choice for one case can coexist with one for all
    cases."""
    if not one or not other:
        return one == other
    return len(one & other) >= _HALF * max(len(one), len(other))


def _overlap(a: Gist, b: Gist) -> bool:
    shared, small = _shared(a, b), min(a.size, b.size)
    if small < _TINY:
        return small > 0 and shared == small and max(a.size, b.size) <= _TINY
    whole = (a.size + b.size) / 2 if small > _LARGE else small
    return shared >= _TINY and shared >= _SHARED * whole


def _shared(a: Gist, b: Gist) -> int:
    return len(a.words & b.words) + len(a.values & b.values)


def _singles(each: Gist) -> set[int]:
    """Return the subjects of which a person has one, if little else is said."""
    lines = _single_words()
    return {lines[word] for word in each.words if word in lines} if each.size <= 1 + _TINY else set()


@cache
def subjects() -> Subjects:
    text = Path(__file__).with_name("subjects.toml").read_text("utf-8")
    return msgspec.convert(seldom.tomllib.loads(text), Subjects)


@cache
def _values() -> Mapping[str, tuple[tuple[int, int], ...]]:
    """Return what each word chooses. One word may belong to two choices."""
    found: dict[str, tuple[tuple[int, int], ...]] = {}
    for word, value in _value_words():
        found[word] = (*found.get(word, ()), value)
    return found


def _value_words() -> Iterator[tuple[str, tuple[int, int]]]:
    for number, choice in enumerate(subjects().choices):
        for value, line in enumerate(choice.values):
            yield from ((word, (number, value)) for word in line.split())


@cache
def _wide_values() -> tuple[str, ...]:
    return tuple(word for word in _values() if _WIDE.search(word))


@cache
def _abouts() -> tuple[frozenset[str], ...]:
    return tuple(frozenset(choice.about.split()) for choice in subjects().choices)


@cache
def _single_words() -> Mapping[str, int]:
    lines = enumerate(subjects().single.words)
    return {reduce(word): number for number, line in lines for word in line.split()}


@cache
def _denying() -> frozenset[str]:
    return frozenset(subjects().cues.denying.split())
