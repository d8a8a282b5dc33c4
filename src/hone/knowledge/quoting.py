"""Decide whether an entry says only what the owner said. If so it becomes active; in doubt the answer is no.

An entry is checked sentence by sentence. One sentence of the owner must contain all its content words. Words
that change a meaning (a negation, "instead", "only", "if", "stop" …) must be in both sentences or in neither,
and between the same words.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from hone.core.regex import regex
from hone.core.value import replace
from hone.knowledge.language import (
    AND,
    BESIDE_NE,
    FREE,
    HAN_NEGATION,
    IF,
    OPENING,
    VERBS,
    inflected,
    is_droppable,
    mark,
    sentences,
)

_MOST = 400
"""Words of a sentence that is looked at: what is longer is no sentence."""
_CLAUSE = regex(r"[,:;.!?](?=\s|$)|\n|[。；！？：，]|[、()「」]|\s[-–—]+\s")
_PASTED = regex(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1|\Z)|^ {0,3}>.*?$", re.MULTILINE | re.DOTALL)
_WORD = regex(r"\w+(?:[-./:@+#~=&%?\\]+\w+)*")
_CONTRACTIONS = (
    (regex(r"\bcannot\b|\bcan't\b"), "can not"),
    (regex(r"\bwon't\b"), "will not"),
    (regex(r"n't\b"), " not"),
    (regex(r"\b(every\w+|any\w+|no\w*|all) but\b"), r"\1 except"),
    (regex(r"'(?:s|m|re|ve|d|ll)\b"), " "),
    (regex(r"\bn'"), " ne "),
    (regex(r"\b(?:[cdjlmst]|qu)'"), " "),
)
_HAN = regex("[々〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+|[ァ-ヺー]+|[ぁ-ゖ]+")
_HAN_FREE = regex("用户|用戶|ユーザー|私たち|私|我们|我們|我的|我|您|你|请|請|的|是|了|和|在|下さい|ください")
_KANA_FREE = frozenset({"です", "ます", "する", "した", "して", "では", "には", "ている"})
_QUESTION = regex(r"[?？][\"')\]”’»]*\s*$|[?？]\s")
_INVERTED = regex(
    r"\W*(?:(?:and|but|so|or|hey|hi|ok|okay|well|now|then|und|aber|oder)\b\W*)*"
    r"(?:(?:when\W+)?(?:do|have|are|were|would|will|should|shall|can|could|may|must|did|does|is|was|has|had|am"
    r"|(?:do|have|are|were|would|wo|should|ca|could|must|did|does|is|was|has|had)n['’]t)"
    r"\s+(?:i|you|we|he|she|they)\b"
    r"|(?:when\W+)?(?:are|were|would|will|should|shall|can|could|did|does|is|was|has|had)(?:n['’]t)?"
    r"\s+(?:it|this|that|these|those|there|the|my|your|our|his|her|its|their|an?|any\w*|some\w*|every\w*)\b"
    r"|(?:ist|sind|war|waren|hat|habe|haben)\s+(?:ich|du|er|sie|es|wir|der|die|das|mein\w*|unser\w*|ein\w*)\b)",
    re.IGNORECASE,
)
"""How a question begins that has lost its sign."""
_ASKING = regex(
    r"\b(?:can|could|would|will) you\b|\b(?:please|remember|note)\b|kannst du|könntest|peux-tu|puedes",
    re.IGNORECASE,
)
_SIGNS = regex("[…，、；：！？。]")


def quotes(entry: str, owner: Sequence[str]) -> bool:
    """Whether every sentence of the entry is held by a sentence of one and the same text of the owner. What
    the owner has fenced or marked as quoted is somebody else's."""
    said = list(_sentences(entry))
    texts = (_PASTED.sub("\n", text) for text in owner)
    return bool(said) and any(_supports(list(_sentences(text)), said) for text in texts)


class Clause(Struct, frozen=True):
    """Its content words in their order; what turns the meaning is a word, too, and a mark. `spare` ones may
    be left out."""

    words: tuple[str, ...]
    marks: tuple[str, ...]
    spare: tuple[str, ...] = ()

    @property
    def plain(self) -> list[str]:
        return [word for word in self.words if word not in self.marks] or list(self.words)


class Sentence(Struct, frozen=True):
    clauses: tuple[Clause, ...]
    tells: bool
    """It does not ask, and can be read."""


def _supports(owner: Sequence[Sentence], said: Sequence[Sentence]) -> bool:
    """Nothing may be left out of a sentence that is used: "I doubt that …" can stand in any word."""
    mine = [word for sentence in said for clause in sentence.clauses for word in clause.words]
    telling = [each.clauses for each in owner if each.tells and _is_covered(each.clauses, mine)]
    return all(any(_holds(clauses, sentence.clauses) for clauses in telling) for sentence in said)


def _holds(owner: Sequence[Clause], said: Sequence[Clause]) -> bool:
    if not all(any(_has(each, word) for each in owner) for clause in said for word in clause.words):
        return False
    return all(_source(owner, clause) for clause in said)


def _is_covered(source: Sequence[Clause], mine: Sequence[str]) -> bool:
    return all(word in clause.spare or _is_used(word, mine) for clause in source for word in clause.words)


def _is_used(word: str, mine: Sequence[str]) -> bool:
    if not _HAN.fullmatch(word):
        return is_droppable(word) or any(_same(word, each) for each in mine)
    for each in mine:
        word = word.replace(each, "")
    return not re.search("[^ぁ-ゖ]", word)


def _source(owner: Sequence[Clause], said: Clause) -> Sequence[Clause]:
    """Of the shortest stretch of clauses that has all its words, those that have one of them."""
    for length in range(1, len(owner) + 1):
        stretches = (owner[at : at + length] for at in range(len(owner) - length + 1))
        full = [
            each
            for each in stretches
            if all(any(_has(clause, word) for clause in each) for word in said.plain)
        ]
        if full:
            used = (
                [clause for clause in each if any(_has(clause, word) for word in said.plain)] for each in full
            )
            return next((each for each in used if _agrees(said, each)), ())
    return ()


def _agrees(said: Clause, source: Sequence[Clause]) -> bool:
    """The same marks as often, before each the same words, and after it the same in their order. Only a verb
    may go to another place. What is made of several clauses is made of all their words."""
    words = [word for clause in source for word in clause.words]
    if not (_is_covered(source, said.words) if len(source) > 1 else _is_ordered(said.words, words)):
        return False
    return sorted(said.marks) == sorted(_marks(source)) and all(
        _in_order(said.words[: said.words.index(name)], words[: words.index(name)], ordered=False)
        and _in_order(said.words[said.words.index(name) :], words[words.index(name) :])
        for name in set(said.marks) - VERBS
    )


def _is_ordered(said: Sequence[str], owner: Sequence[str]) -> bool:
    """But for one word: "Mia reports to Jonas" is not "Jonas reports to Mia"."""
    best = [0] * (len(owner) + 1)
    for word in said:
        before = best[:]
        for at, other in enumerate(owner, 1):
            best[at] = before[at - 1] + 1 if _same(other, word) else max(before[at], best[at - 1])
    return best[-1] >= len(said) - 1


def _in_order(said: Sequence[str], owner: Sequence[str], *, ordered: bool = True) -> bool:
    rest = iter(owner)
    return all(any(_same(other, word) for other in (rest if ordered else owner)) for word in said)


def _has(clause: Clause, wanted: str) -> bool:
    return any(_same(word, wanted) for word in clause.words)


def _marks(clauses: Iterable[Clause]) -> list[str]:
    return [name for clause in clauses for name in clause.marks]


def _same(owner: str, word: str) -> bool:
    """The same word but for its ending. Numbers and names with signs in them have none."""
    if owner[0] != word[0] and not _HAN.match(word):
        return False
    if owner == word:
        return True
    if _HAN.fullmatch(word):
        return _HAN.fullmatch(owner) is not None and word in owner
    return owner.isalpha() and word.isalpha() and inflected(owner, word)


def _sentences(text: str) -> Iterator[Sentence]:
    for start, end in sentences(text):
        parts = _CLAUSE.split(_plain(text[start:end]))
        clauses = tuple(_opened([clause for part in parts for clause in _clauses(part) if clause.words]))
        question = _QUESTION.search(text, start, end) or _INVERTED.match(text, start, end)
        asks = question and not _ASKING.search(text, start, end)
        size = sum(len(clause.words) for clause in clauses)
        if clauses:
            yield Sentence(clauses, tells=not asks and size <= _MOST)


def _opened(clauses: Sequence[Clause]) -> Iterator[Clause]:
    for place, clause in enumerate(clauses):
        yield clause if place or clause.words[0] not in OPENING else replace(clause, spare=clause.words[:1])


def _plain(text: str) -> str:
    plain = unicodedata.normalize("NFKC", _SIGNS.sub(r"\g<0> ", text)).casefold().replace("’", "'")
    for pattern, spelled in _CONTRACTIONS:
        plain = pattern.sub(spelled, plain)
    return plain


def _clauses(part: str) -> Iterator[Clause]:
    words: list[str] = []
    for word in _words(part):
        if words and (word in AND or word in IF):
            yield _clause(words)
            words = []
        if word not in AND:
            words.append(word)
    yield _clause(words)


def _clause(words: Sequence[str]) -> Clause:
    if "ne" in words:
        words = [word for word in words if word not in BESIDE_NE]
    marked = [mark(word) for word in words]
    content = [name or word for word, name in zip(words, marked, strict=True) if name or word not in FREE]
    return Clause(tuple(content), tuple(filter(None, marked)))


def _words(part: str) -> Iterator[str]:
    for found in _WORD.findall(part):
        if _HAN.search(found):
            yield from _pieces(found)
        elif re.search(r"\d|[^\w-]", found):
            yield found
        else:
            yield from filter(None, re.split(r"[-_]", found))


def _pieces(text: str) -> Iterator[str]:
    """Stretches of ideographs and of kana; negations apart. A single hiragana is an ending or a particle."""
    for piece in re.split(f"({_HAN.pattern})", _HAN_FREE.sub(" ", text)):
        for each in re.split(f"({HAN_NEGATION.pattern})", piece):
            if not _HAN.search(each):
                yield from _words(each)
            elif not re.fullmatch("[ぁ-ゖ]", each) and each not in _KANA_FREE:
                yield each
