"""Load what the quoting rule knows about each language, and find the sentences of a text.

The word lists are data: one file per language in `languages/`. A word that no list names is a content word, so a
word that is missing from a list can make a lesson wait, but cannot turn its meaning.
"""

import re
import tomllib
from bisect import bisect
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import msgspec
from msgspec import Struct

from hone.core.regex import regex

_FILES = Path(__file__).with_name("languages")
_KANA = regex("[ぁ-ヺ]")
_HAN = regex("[\u3400-\u4dbf\u4e00-\u9fff]")
_IDEOGRAPHIC = regex("[ぁ-ヺ\u3400-\u4dbf\u4e00-\u9fff]")
_LETTERS = regex(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


class Kind:
    """What a word does in a sentence. Content words and operators ("not", "only", "if", "was" …) have none."""

    GLUE, BE, HAVE, AND, SUB, PREP, LINK, LIMIT, NOT, NEVER = range(1, 11)
    SELF, OWN, OWN_AFTER, YOU, YOUR, THIRD, THEIRS, POLITE, PLEASE, FILLER, PREFER, WANT, POST = range(11, 24)


class Language(Struct, frozen=True, kw_only=True):
    """The word lists of one language, as its file has them. A list is one string, split at white space."""

    glue: str = ""
    """Articles and other words that hold a sentence together: ignored on both sides."""
    be: str = ""
    """Forms of "be" in the present: ignored, but a participle after them is passive."""
    have: str = ""
    joins: str = ""
    """Between two clauses: and, but."""
    subordinates: str = ""
    """Begin a clause that may change places with its neighbor: if, when, because."""
    prepositions: str = ""
    """May be left out or added, but not exchanged: in, for, with."""
    postpositions: str = ""
    """The same, after their word."""
    links: str = ""
    """Prepositions that must stay: from, to, over."""
    limits: str = ""
    """May not move: only, except, instead."""
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
    """How an entry names the owner; the possessive forms stand before or after what is owned."""
    user_object: str = ""
    users: str = ""
    users_after: str = ""
    polite: str = ""
    """May always be left out."""
    please: str = ""
    """Makes a question a request."""
    fillers: str = ""
    """May be left out of a clause without a negation."""
    prefer: str = ""
    want: str = ""
    """As the owner says it: in the first person, or as an order."""
    prefers: str = ""
    wants: str = ""
    """As an entry says it: in the third person."""
    naming: str = ""
    """Between a thing and its name: called, named."""
    because: str = ""
    """Subordinates that begin a reason."""
    use: str = ""
    """Orders that say no more than "prefer": use tabs, give short answers."""
    common: str = ""
    """More words to know the language by."""
    first: str = ""
    """Endings of a verb in the first person, where it needs no pronoun; `*` where nothing shows the person."""
    either: str = ""
    """Endings of a verb that are the same in the first and the third person."""
    adverbs: str = ""
    """Words that may stand anywhere in their clause, as a pattern."""
    same: tuple[str, ...] = ()
    """Each line lists words that are taken for its first one."""
    folds: str = ""
    """Letters that change within the forms of a word: each pair is taken for its second half."""
    names: bool = True
    """Whether a capital inside a sentence marks a name."""
    bare: bool = False
    """Whether a verb without an ending is an order, and not what the owner does."""
    final: bool = False
    """Whether an order puts its verb first and an infinitive puts it last."""
    moves: bool = True
    """Whether one word of a clause may take another place."""
    question: str = ""
    """How a question begins that has lost its sign."""
    retract: str = ""
    """How a sentence begins that takes back or limits the one before it."""
    endings: tuple[str, ...] = ()
    """Each line lists endings that can take each other's place; `-` is none."""
    tenses: tuple[str, ...] = ()
    """Endings that are in one of those lines, but in different tenses."""
    forms: tuple[str, ...] = ()
    """Each line lists forms of one word."""
    participles: tuple[str, ...] = ()
    participle_forms: tuple[str, ...] = ()
    phrases: str = ""
    """Expressions that are rewritten before a sentence is split into words: `pattern => words` on each line."""


class Lexicon:
    """A language as the rule looks things up in it."""

    def __init__(self, language: Language, frames: Language | None = None) -> None:
        self.language = language
        self.said, self.written = _kinds(language, None), _kinds(language, frames or language)
        lines = (line.partition("=>") for line in language.phrases.strip().splitlines())
        self.phrases = [(re.compile(pattern.strip()), f" {words.strip()} ") for pattern, _, words in lines]
        self.either = tuple(language.either.split())
        self.adverb = re.compile(language.adverbs or r"(?!)")
        self.same = {word: line.split()[0] for line in language.same for word in line.split()}
        self._folds = list(zip(language.folds.split()[::2], language.folds.split()[1::2], strict=True))
        self.first = tuple(language.first.split())
        self.naming = frozenset(language.naming.split())
        self.because = frozenset(language.because.split())
        self.use = frozenset(language.use.split())
        self.known = {*self.said, *_kinds(language, language), *language.common.split(), *self.same}
        self.limits = frozenset(language.limits.split())
        self.subjects = frozenset(f"{language.i} {language.we} {language.user}".split())
        self.users = frozenset(f"{language.user} {language.user_object} {language.users}".split())
        self.we = frozenset(language.we.split())
        self.objects = frozenset(f"{language.me} {language.user_object}".split())
        self.thirds = frozenset(language.third.split())
        self.question = re.compile(language.question or r"(?!)")
        self._listed = sorted((word for word in self.known if _IDEOGRAPHIC.search(word)), key=len, reverse=True)
        self._longest = len(self._listed[0]) if self._listed else 0
        self._endings = [_endings(line) for line in language.endings]
        self._tenses = [_endings(line) for line in language.tenses]
        self._participles = [_endings(line) for line in language.participles]
        self._forms = _groups(language.forms)
        self._participle_forms = _groups(language.participle_forms)

    def weight(self, word: str) -> int:
        """How much the word speaks for the language: the name of the user most."""
        return 3 if word in self.users else int(word in self.known)

    def longest(self, text: str, at: int) -> str:
        """The longest listed word of a language without spaces that begins there, or nothing."""
        sizes = range(self._longest, 0, -1)
        return next((text[at : at + size] for size in sizes if text[at : at + size] in self.known), "")

    def unlisted(self, text: str, at: int, size: int) -> str:
        """What stands there up to the next listed word."""
        end = next((end for end in range(at + 1, at + size) if self.longest(text, end)), at + size)
        return text[at:end]

    def is_participle(self, word: str) -> bool:
        return word not in self._forms and (word in self._participle_forms or any(
            word.endswith(ending) for line in self._participles for ending in line[1:]
        ))

    def inflected(self, one: str, other: str) -> bool:
        """Whether both are forms of one word that say the same: no other tense, mood or degree."""
        if _share(self._forms, one, other):
            return True
        one, other = self._folded(one), self._folded(other)
        return _alternate(self._endings, one, other) and not _alternate(self._tenses, one, other)

    def _folded(self, word: str) -> str:
        for old, new in self._folds:
            word = word.replace(old, new)
        return word

    def passive(self, active: str, participle: str) -> bool:
        return _share(self._participle_forms, active, participle) or _alternate(self._participles, active, participle)


def _kinds(language: Language, frames: Language | None) -> dict[str, int]:
    """The first list that names a word decides. With `frames` the words are those of an entry."""
    lists = [
        (Kind.NEVER, language.nevers), (Kind.NOT, language.negations),
        (Kind.OWN_AFTER, language.users_after), (Kind.OWN, language.users),
        (Kind.SELF, f"{language.i} {language.we}"), (Kind.SELF, language.me), (Kind.OWN, language.my),
        (Kind.YOU, language.you), (Kind.YOUR, language.your),
        (Kind.THIRD, language.third), (Kind.THEIRS, language.theirs),
        (Kind.PREFER, language.prefer), (Kind.WANT, language.want),
        (Kind.PLEASE, language.please), (Kind.POLITE, language.polite), (Kind.FILLER, language.fillers),
        (Kind.SUB, language.subordinates), (Kind.LIMIT, language.limits),
        (Kind.AND, language.joins), (Kind.BE, language.be), (Kind.HAVE, language.have),
        (Kind.PREP, language.prepositions), (Kind.LINK, language.links), (Kind.POST, language.postpositions),
        (Kind.GLUE, language.glue),
    ]  # fmt: skip
    if frames:
        lists = [
            (kind, words)
            for each in (language, frames)
            for kind, words in ((Kind.SELF, f"{each.user} {each.user_object}"), (Kind.PREFER, each.prefers), (Kind.WANT, each.wants))
        ] + lists
    return {word: kind for kind, words in reversed(lists) for word in words.split()}


def _endings(line: str) -> tuple[str, ...]:
    return tuple("" if ending == "-" else ending for ending in line.split())


def _groups(lines: tuple[str, ...]) -> dict[str, frozenset[int]]:
    found: dict[str, frozenset[int]] = {}
    for number, line in enumerate(lines):
        for word in line.split():
            found[word] = found.get(word, frozenset()) | {number}
    return found


def _share(groups: dict[str, frozenset[int]], one: str, other: str) -> bool:
    return not groups.get(one, frozenset()).isdisjoint(groups.get(other, ()))


_STEM = 2


def _alternate(classes: list[tuple[str, ...]], one: str, other: str) -> bool:
    pairs = enumerate(zip(one, other, strict=False))
    alike = next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
    for at in range(max(_STEM, alike - 3), alike + 1):
        ends = one[at:], other[at:]
        if any(ends[0] in each and ends[1] in each for each in classes):
            return True
    return False


@cache
def lexicons() -> dict[str, Lexicon]:
    files = {path.stem: path.read_text("utf-8") for path in sorted(_FILES.glob("*.toml"))}
    read = {name: msgspec.convert(tomllib.loads(text), Language) for name, text in files.items()}
    return {name: Lexicon(language, read["en"]) for name, language in read.items()}


_UNKNOWN = Lexicon(Language(moves=False))


def detect(text: str) -> Lexicon:
    """The language most words of the text are known in. Of one that is not known, nothing may change."""
    if _KANA.search(text):
        return lexicons()["ja"]
    if _HAN.search(text):
        return lexicons()["zh"]
    words = [word.replace("’", "'") for word in _LETTERS.findall(text.casefold())]
    parts = [part for word in words for part in {word, *word.split("'")}]
    scores = {name: sum(map(each.weight, parts)) for name, each in lexicons().items()}
    best = max(scores, key=lambda name: (scores[name], name == "en"))
    return lexicons()[best] if scores[best] else _UNKNOWN


_ABBREVIATED = "".join(
    rf"(?<!\b(?i:{word})\.)" for word in ("dr", "mr", "ms", "mrs", "prof", r"e\.g", r"i\.e", r"\d", r"\d\d")
)
_NO_ITEM = r"(?!\s*(?:[-*+•]|\d{1,3}[.)])\s)"
_BREAK = regex(
    rf"{_ABBREVIATED}(?<=[.!?…])[\"')\]”’»]*\s+{_NO_ITEM}|[。！？]+[」』”]?{_NO_ITEM}|(?<![:：])\n\s*\n{_NO_ITEM}"
)
_LIST = regex(r":(?:\s|$)|：")


_QUOTED = regex(r"“[^”]{,2000}”|\"[^\"\n]{,2000}\"|«[^»]{,2000}»|„[^“”]{,2000}[“”]|「[^」]{,2000}」")


def sentences(text: str) -> list[tuple[int, int]]:
    """Where each begins and ends. The items of a list stay with what stands above them, for that may be a no;
    so does what stands between semicolons after a colon, what is quoted with its source, and what takes a sentence
    back with that sentence."""
    quoted = [found.span() for found in _QUOTED.finditer(text)]
    breaks = [found.end() for found in _BREAK.finditer(text)]
    ends = [0, *(at for at in breaks if not _is_inside(at, quoted)), len(text)]
    for start, end in pairwise(tuple(ends)):
        if not _LIST.search(text, start, end):
            ends += [found.end() for found in re.compile("[;；]").finditer(text, start, end)]
    found: list[tuple[int, int]] = []
    for start, end in pairwise(sorted(ends)):
        if found and _retraction().match(text, start, end):
            found[-1] = found[-1][0], end
        elif text[start:end].strip():
            found.append((start, end))
    return found


def _is_inside(at: int, spans: Sequence[tuple[int, int]]) -> bool:
    place = bisect(spans, (at,)) - 1
    return place >= 0 and spans[place][0] < at < spans[place][1]


@cache
def _retraction() -> re.Pattern[str]:
    openings = "|".join(each.language.retract for each in lexicons().values() if each.language.retract)
    return re.compile(rf"[\W_]*(?:{openings})(?!\w)", re.IGNORECASE)
