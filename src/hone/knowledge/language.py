"""Load what the quoting rule knows about each language.

The word lists are data: one file per language in `languages/`. A word that no list names is a content word. So a
word that is missing from a list can make a lesson wait, but cannot turn its meaning.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from hone.core.regex import regex

_FILES = Path(__file__).with_name("languages")
_KANA = regex("[ぁ-ヺ]")
_HAN = regex("[\u3400-\u4dbf\u4e00-\u9fff]")
_IDEOGRAPHIC = regex("[ぁ-ヺ\u3400-\u4dbf\u4e00-\u9fff]")
_LETTERS = regex(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_ELIDED = regex("(?='(?:[sdm]|re|ve|ll|t)$)|(?<=')")
"""Where a word with an apostrophe is split: before an English ending, else after the apostrophe."""
_STEM = 2
_USER = 3
"""What the name of the user counts for when a language is detected."""
_NEVER = "(?!)"


class Kind(IntEnum):
    """What a word does in a sentence."""

    CONTENT = 0
    GLUE = 1
    BE = 2
    HAVE = 3
    JOIN = 4
    SUBORDINATE = 5
    PREPOSITION = 6
    POSTPOSITION = 7
    LINK = 8
    LIMIT = 9
    NOT = 10
    NEVER = 11
    SELF = 12
    OWN = 13
    OWN_AFTER = 14
    YOU = 15
    YOUR = 16
    THIRD = 17
    THEIRS = 18
    POLITE = 19
    PLEASE = 20
    FILLER = 21
    PREFER = 22
    WANT = 23


class Language(Struct, frozen=True, kw_only=True):
    """The lists of one language, as its file has them. A list of words is one string, split at white space; a
    pattern is a regular expression; a list of lines has one group of words or endings on each line."""

    glue: str = ""
    """Articles and other words that hold a sentence together: ignored on both sides."""
    be: str = ""
    """Forms of "be" in the present: ignored, but a participle after them is passive."""
    have: str = ""
    joins: str = ""
    """Between two clauses: and, but."""
    subordinates: str = ""
    """Begin a clause that can change places with its neighbor: if, when, because."""
    because: str = ""
    """Those that begin a reason."""
    prepositions: str = ""
    """May be left out or added, but not exchanged: in, for, with."""
    postpositions: str = ""
    """The same, after their word."""
    links: str = ""
    """Prepositions that must stay: from, to, over."""
    cases: str = ""
    """Pattern: endings that do the work of a preposition."""
    limits: str = ""
    """Must stay where they are, in this form: only, except, could, was, today."""
    should: str = ""
    """What an entry may say as "the user wants"."""
    modals: str = ""
    """Verbs that make no order: can, will, need."""
    negations: str = ""
    nevers: str = ""
    i: str = ""
    we: str = ""
    me: str = ""
    my: str = ""
    you: str = ""
    your: str = ""
    third: str = ""
    theirs: str = ""
    user: str = ""
    """How an entry names the owner."""
    user_object: str = ""
    users: str = ""
    """The same as a possessive, before what is owned."""
    users_after: str = ""
    polite: str = ""
    """May be left out at the beginning of a part."""
    please: str = ""
    """May be left out anywhere, and makes a question a request."""
    fillers: str = ""
    """May be left out where no "not" stands before them, and may move."""
    prefer: str = ""
    want: str = ""
    """As the owner says it: in the first person, or as an order."""
    prefers: str = ""
    wants: str = ""
    """As an entry says it: in the third person."""
    use: str = ""
    """Orders that say no more than "I prefer": use, give, write."""
    naming: str = ""
    """Participles between a thing and its name: called, named."""
    ands: str = ""
    """Those joins that add, and do not contrast."""
    chatter: str = ""
    """A part of a sentence that has nothing but these and glue says nothing: the thing is, to be honest."""
    comment: str = ""
    """Pattern: how a remark begins that may be left out at the end of a sentence: it, that, I."""
    generic: str = ""
    """Pattern: the same, about people and things in general: everybody, the."""
    others: str = ""
    """Pattern: the same, about somebody: she, my."""
    consequence: str = ""
    """Pattern: the same, for what follows from the rest: so, otherwise."""
    doubts: str = ""
    """Words that make a remark more than one: think, say, joke."""
    times: str = ""
    """Words that may make an order hold for some time only: tomorrow, week, hurry."""
    common: str = ""
    """More words to detect the language by."""
    first: str = ""
    """Endings of a verb in the first person, where it needs no pronoun; `*` where nothing shows the person."""
    either: str = ""
    """Endings of a verb that are the same in the first and the third person."""
    names: bool = True
    """Whether a capital inside a sentence marks a name."""
    bare: bool = False
    """Whether a verb without an ending is an order, and not what the owner does."""
    final: bool = False
    """Whether an order puts its verb first and an infinitive puts it last."""
    moves: bool = True
    """Whether a part of a clause may take another place."""
    adverbs: str = ""
    """Pattern: words that may stand anywhere in their clause."""
    question: str = ""
    """Pattern: how a question begins that has lost its sign."""
    tag: str = ""
    """Pattern: what makes an order sound like a question: "Use tabs, okay?"."""
    retract: str = ""
    """Pattern: how a sentence begins that takes back or limits the one before it."""
    correct: str = ""
    """Pattern: words that make a short sentence a correction of the one before it."""
    introduce: str = ""
    """Pattern: words that make the sentences after them somebody else's, or invented."""
    same: tuple[str, ...] = ()
    """Lines: words that are taken for the first one."""
    folds: str = ""
    """Letters that change within the forms of a word: each second one replaces the one before it."""
    endings: tuple[str, ...] = ()
    """Lines: endings that can take each other's place; `-` is none."""
    tenses: tuple[str, ...] = ()
    """Lines: endings that are also in one of those lines, but differ in tense."""
    forms: tuple[str, ...] = ()
    """Lines: forms of one word."""
    participles: tuple[str, ...] = ()
    """Lines: an ending of an active form, and that of its participle."""
    participle_forms: tuple[str, ...] = ()
    phrases: str = ""
    """Expressions that are rewritten before a sentence is split into words: `pattern => words` on each line."""


class Lexicon:
    """A language as the rule looks things up in it. `frames` is the language in which an entry may say "the user
    prefers" as well."""

    def __init__(self, language: Language, frames: Language) -> None:
        self.language = language
        self.said = _kinds(language)
        self.written = self.said | _frames(frames) | _frames(language)
        lines = (line.partition("=>") for line in language.phrases.strip().splitlines())
        self.phrases = [(re.compile(pattern.strip()), f" {words.strip()} ") for pattern, _, words in lines]
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
        """Whether nothing shows who does what is said."""
        return self.first == ("*",)

    def weight(self, word: str) -> int:
        """How much the word speaks for this language."""
        if word in self.users:
            return _USER
        return int(word in self._known or bool(self.adverb.fullmatch(word) or self.case.fullmatch(word)))

    def longest(self, text: str, at: int) -> str:
        """The longest listed word of a language without spaces that begins there, or nothing."""
        sizes = range(self._longest, 0, -1)
        return next((text[at : at + size] for size in sizes if text[at : at + size] in self._known), "")

    def is_doubt(self, word: str) -> bool:
        return word in self._doubts or (word.removesuffix("s") in self._doubts and word not in self._known)

    def turns(self, word: str) -> bool:
        """Whether the word can turn the meaning of a sentence that it is added to."""
        return word in self._turning or self.is_doubt(word)

    def is_participle(self, word: str) -> bool:
        if word in self._forms:
            return False
        return word in self._participle or any(word.endswith(line[-1]) for line in self._participles)

    def inflected(self, one: str, other: str) -> bool:
        """Whether both are forms of one word that say the same: no other tense, mood or degree."""
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
    """The first list that names a word decides."""
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
    """The words in which an entry speaks of the owner."""
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
    """Whether the words differ in nothing but endings of one line."""
    pairs = enumerate(zip(one, other, strict=False))
    alike = next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
    ends = [(one[at:], other[at:]) for at in range(max(_STEM, alike - 3), alike + 1)]
    return any(a in line and b in line for a, b in ends for line in lines)


@cache
def lexicons() -> Mapping[str, Lexicon]:
    files = {path.stem: path.read_text("utf-8") for path in sorted(_FILES.glob("*.toml"))}
    read = {name: msgspec.convert(tomllib.loads(text), Language) for name, text in files.items()}
    return {name: Lexicon(language, read["en"]) for name, language in read.items()}


@cache
def _unknown() -> Lexicon:
    return Lexicon(Language(moves=False), Language())


def detect(text: str) -> Lexicon:
    """Return the language that most words of the text are known in. In an unknown one nothing may change."""
    if _KANA.search(text):
        return lexicons()["ja"]
    if _HAN.search(text):
        return lexicons()["zh"]
    words = [word.replace("’", "'") for word in _LETTERS.findall(text.casefold())]
    parts = [part for word in words for part in _ELIDED.split(word)]
    scores = {name: sum(map(each.weight, parts)) for name, each in lexicons().items()}
    best = max(scores, key=lambda name: (scores[name], name == "en"))
    return lexicons()[best] if scores[best] else _unknown()
