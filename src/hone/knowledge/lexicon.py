"""Look words up in the lists of a language, and detect the language of a text."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from pathlib import Path

import msgspec

from hone.core import seldom
from hone.core.regex import find_needles, regex
from hone.knowledge.language import Kind, Language

_FILES = Path(__file__).with_name("languages")
_KANA = regex("[ぁ-ヺ]")
_HAN = regex("[\u3400-\u4dbf\u4e00-\u9fff]")
_IDEOGRAPHIC = regex("[ぁ-ヺ\u3400-\u4dbf\u4e00-\u9fff]")
_LETTERS = regex(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_ELIDED = regex("(?='(?:[sdm]|re|ve|ll|t)$)|(?<=')")
"""Where to split a word with an apostrophe: before an English ending, else after the apostrophe."""
_STEM = 2
_USER = 3
"""The weight of the user's name in detecting a language."""
_NEVER = "(?!)"
_DENIALS = frozenset({Kind.NOT, Kind.NEVER})


class Lexicon:
    """A language in a form for look-ups. `frames` is another language in which an entry may say "the user
    prefers"."""

    def __init__(self, language: Language, frames: Language) -> None:
        self.language = language
        self.said = _kinds(language)
        self.written = self.said | _frames(frames) | _frames(language)
        lines = (line.partition("=>") for line in language.phrases.strip().splitlines())
        self._phrases = [(pattern.strip(), f" {words.strip()} ") for pattern, _, words in lines]
        self.same = {word: line.split()[0] for line in language.same for word in line.split()}
        self.users = _set(language.user, language.user_object, language.users)
        self.subjects, self.we = _set(language.i, language.we, language.user), _set(language.we)
        self.objects = _set(language.me, language.user_object)
        self.limits, self.because = _set(language.limits), _set(language.because)
        self._doubts, self.times = _set(language.doubts), _set(language.times)
        self._turning = self.limits | (_set(language.subordinates) - self.because)
        self.use, self.naming = _set(language.use), _set(language.naming)
        self.first, self.either = tuple(language.first.split()), tuple(language.either.split())
        self.adverb, self.case = _pattern(language.adverbs), _pattern(language.cases)
        self.tag = re.compile(rf"[,;]?\s*(?:{language.tag or _NEVER})\s*[?？]\s*$", re.IGNORECASE)
        self.question, self.comment = _pattern(language.question), _pattern(language.comment)
        self.chatter = _set(language.chatter)
        self.idle = self.chatter | _set(language.polite, language.please)
        self.generic, self.others = _pattern(language.generic), _pattern(language.others)
        self.consequence, self.ands = _pattern(language.consequence), _set(language.ands)
        self._known = {*self.said, *_frames(language), *language.common.split(), *self.same}
        self._longest = max(map(len, filter(_IDEOGRAPHIC.search, self._known)), default=0)
        self._folds = list(zip(language.folds.split()[::2], language.folds.split()[1::2], strict=True))
        self._endings, self._tenses = _lines(language.endings), _lines(language.tenses)
        self._participles = _lines(language.participles)
        self._forms, self._participle_forms = _groups(language.forms), _groups(language.participle_forms)
        self._participle = {word for line in language.participle_forms for word in line.split()[1:]}
        self.modals, self.should = _set(language.modals), _set(language.should)

    @property
    def drops_subjects(self) -> bool:
        """Whether the language omits subjects, so that nothing shows who does it."""
        return self.first == ("*",)

    @cached_property
    def phrases(self) -> Sequence[tuple[re.Pattern[str], str, Sequence[str]]]:
        """Return expressions, their rewrites, and what a text with a match contains."""
        return [(re.compile(text), spelled, find_needles(text)) for text, spelled in self._phrases]

    @property
    def listed(self) -> Iterable[tuple[str, int]]:
        """Return the words of this language, each with its weight as evidence for it."""
        return ((word, _USER if word in self.users else 1) for word in self._known)

    def count_typical(self, words: Sequence[str]) -> int:
        """Count the words with endings of this language."""
        return sum(1 for word in words if self.adverb.fullmatch(word) or self.case.fullmatch(word))

    def longest(self, text: str, at: int) -> str:
        """Return the longest listed word that begins there, in a language without spaces, or nothing."""
        sizes = range(self._longest, 0, -1)
        return next((text[at : at + size] for size in sizes if text[at : at + size] in self._known), "")

    def is_doubt(self, word: str) -> bool:
        return word in self._doubts or (word.removesuffix("s") in self._doubts and word not in self._known)

    def turns(self, word: str) -> bool:
        """Tell whether the word can turn the meaning of a sentence that it is added to."""
        return word in self._turning or self.is_doubt(word)

    def limits_alone(self, word: str) -> bool:
        """Tell whether the word alone can limit the sentence before it."""
        kind = self.said.get(word)
        return self.turns(word) or word in self.times or kind in _DENIALS or bool(self.adverb.fullmatch(word))

    def is_participle(self, word: str) -> bool:
        if word in self._forms:
            return False
        return word in self._participle or any(word.endswith(line[-1]) for line in self._participles)

    def inflected(self, one: str, other: str) -> bool:
        """Tell whether both are forms of one word that say the same: no other tense, mood or degree."""
        if _share(self._forms, one, other):
            return True
        for old, new in self._folds:
            one, other = one.replace(old, new), other.replace(old, new)
        return _alternate(self._endings, one, other) and not _alternate(self._tenses, one, other)

    def passive(self, active: str, participle: str) -> bool:
        return _share(self._participle_forms, active, participle) or _alternate(
            self._participles, active, participle
        )


def _kinds(language: Language) -> dict[str, Kind]:
    """Map words to kinds. The first list that names a word decides."""
    lists = (
        (Kind.NEVER, language.nevers),
        (Kind.NOT, language.negations),
        (Kind.OWN_AFTER, language.users_after),
        (Kind.OWN, f"{language.users} {language.my}"),
        (Kind.SELF, f"{language.i} {language.we} {language.me}"),
        (Kind.YOU, language.you),
        (Kind.YOUR, language.your),
        (Kind.THIRD, language.third),
        (Kind.THEIRS, language.theirs),
        (Kind.PREFER, language.prefer),
        (Kind.WANT, language.want),
        (Kind.PLEASE, language.please),
        (Kind.POLITE, language.polite),
        (Kind.FILLER, language.fillers),
        (Kind.SUBORDINATE, language.subordinates),
        (Kind.LIMIT, language.limits),
        (Kind.JOIN, language.joins),
        (Kind.BE, language.be),
        (Kind.HAVE, language.have),
        (Kind.PREPOSITION, language.prepositions),
        (Kind.POSTPOSITION, language.postpositions),
        (Kind.LINK, language.links),
        (Kind.GLUE, language.glue),
    )
    return {word: kind for kind, words in reversed(lists) for word in words.split()}


def _frames(language: Language) -> dict[str, Kind]:
    """Return the words by which an entry refers to the owner."""
    lists = (
        (Kind.WANT, language.wants),
        (Kind.PREFER, language.prefers),
        (Kind.SELF, f"{language.user} {language.user_object}"),
    )
    return {word: kind for kind, words in lists for word in words.split()}


def _set(*lists: str) -> frozenset[str]:
    return frozenset(word for words in lists for word in words.split())


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(rf"\W*(?:{text or _NEVER})")


def _lines(lines: Iterable[str]) -> list[tuple[str, ...]]:
    return [tuple("" if ending == "-" else ending for ending in line.split()) for line in lines]


def _groups(lines: Iterable[str]) -> dict[str, frozenset[int]]:
    found: dict[str, frozenset[int]] = {}
    for number, line in enumerate(lines):
        for word in line.split():
            found[word] = found.get(word, frozenset()) | {number}
    return found


def _share(groups: Mapping[str, frozenset[int]], one: str, other: str) -> bool:
    return not groups.get(one, frozenset()).isdisjoint(groups.get(other, ()))


def _alternate(lines: Sequence[tuple[str, ...]], one: str, other: str) -> bool:
    """Tell whether the words differ in nothing but endings of one line."""
    pairs = enumerate(zip(one, other, strict=False))
    alike = next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
    ends = [(one[at:], other[at:]) for at in range(max(_STEM, alike - 3), alike + 1)]
    return any(a in line and b in line for a, b in ends for line in lines)


@cache
def lexicons() -> Mapping[str, Lexicon]:
    files = {path.stem: path.read_text("utf-8") for path in sorted(_FILES.glob("*.toml"))}
    read = {name: msgspec.convert(seldom.tomllib.loads(text), Language) for name, text in files.items()}
    return {name: Lexicon(language, read["en"]) for name, language in read.items()}


@cache
def _unknown() -> Lexicon:
    return Lexicon(Language(moves=False), Language())


@cache
def _speaking() -> Mapping[str, Sequence[tuple[str, int]]]:
    """Return for each word which languages list it, and its weight as evidence for them."""
    found: dict[str, list[tuple[str, int]]] = {}
    for name, lexicon in lexicons().items():
        for word, weight in lexicon.listed:
            found.setdefault(word, []).append((name, weight))
    return found


@lru_cache(maxsize=256)
def detect(text: str) -> Lexicon:
    """Return the language that knows most words of the text. In an unknown one nothing may change."""
    if _KANA.search(text):
        return lexicons()["ja"]
    if _HAN.search(text):
        return lexicons()["zh"]
    words = [word.replace("’", "'") for word in _LETTERS.findall(text.casefold())]
    parts = [part for word in words for part in _ELIDED.split(word)]
    listed = dict.fromkeys(lexicons(), 0)
    for part in parts:
        for name, weight in _speaking().get(part, ()):
            listed[name] += weight
    most = max(listed.values())
    # Endings decide between languages that list as many of the words.
    first = [name for name, count in listed.items() if count == most]
    scores = {name: (lexicons()[name].count_typical(parts), name == "en") for name in first}
    best = max(scores, key=scores.__getitem__)
    return lexicons()[best] if most or scores[best][0] else _unknown()
