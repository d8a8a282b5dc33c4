"""Read a text as sentences of atoms: the words that carry its meaning, each with what it depends on.

Words that only hold a sentence together are left out. "I prefer" and "the user wants" are frames: they are taken
out of the sequence and remembered beside their clause.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from msgspec import Struct

from hone.core.regex import regex
from hone.core.value import replace
from hone.knowledge.language import Kind, Lexicon, sentences

CONTENT = 0
SOFT, HARD = 1, 2
"""How strongly an atom is separated from the one before it: by a comma, by "if" or by a preposition."""
_CLAUSE = regex(r"[,:;.!?](?=\s|$)|\n|[。；！？：，]|[、()「」“”«»\"]|\s[-–—]+\s")
_WORD = regex(r"(?<!\S)[-−+]\d(?:[\w.,:]*\w)?|\w+(?:['][^\W\d]+)?(?:[-./:@+#~=&%?\\]+\w+)*(?:\+\+|#|%|°)?|[%€$£¥<>≤≥=≠~→]+")
_CJK = regex("[々〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]|[ァ-ヺー]+|[ぁ-ゖ]+|[^ぁ-ヺー々〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_IDEOGRAPHIC = regex("[ぁ-ヺー々〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_CAPITAL = regex(r"(?<=[\w,;)] )[\"'“„«(]?([^\W\d_a-z]\w*)")
_QUESTION = regex(r"[?？][\"')\]”’»]*\s*$|[?？]\s")
_SPACES = regex("[ \t]+")
_SIGNS = regex("[…，、；：！？。]")


class Atom(Struct, frozen=True):
    """A word that counts. `role` is its preposition, `owner` whose it is, `clause` the number of its clause."""

    key: str
    kind: int = CONTENT
    role: str = ""
    owner: int = 0
    fixed: bool = False
    """It may not move, and has one form only."""
    passive: bool = False
    bound: int = 0
    leads: bool = False
    """It is the very first word of its clause."""
    subject: bool | None = None
    """Whether a person is the subject; None if that cannot be told."""
    clause: int = 0


class Clause(Struct, frozen=True):
    """What is known of a clause beside its atoms."""

    wish: int = 0
    """Kind.PREFER or Kind.WANT if it is framed as what the owner wants."""
    polite: bool = False
    be: bool = False
    negated: bool = False
    your: bool = False
    """It begins with "your"."""


class Sentence(Struct, frozen=True):
    atoms: tuple[Atom, ...]
    clauses: tuple[Clause, ...]
    asks: bool = False


class _Reader:
    """Collects the atoms of one sentence."""

    def __init__(self, lexicon: Lexicon, names: frozenset[str], *, entry: bool) -> None:
        self.lexicon, self.names, self.entry = lexicon, names, entry
        self.kinds = lexicon.written if entry else lexicon.said
        self.atoms: list[Atom] = []
        self.clauses: list[Clause] = []
        self._open: list[Atom] = []
        self._about = Clause()
        self._fresh()

    def _fresh(self) -> None:
        self._role, self._owner, self._be, self._bound, self._leads, self._wishes = "", 0, False, SOFT, True, False

    def close(self) -> None:
        """End the clause. One without a word of its own belongs to the next."""
        if any(atom.kind in {CONTENT, Kind.NOT, Kind.NEVER, Kind.HAVE} for atom in self._open):
            atoms, about = _framed(self._open, self._about, self.lexicon, entry=self.entry)
            self.atoms += [replace(atom, clause=len(self.clauses)) for atom in atoms]
            self.clauses.append(replace(about, negated=any(each.kind in {Kind.NOT, Kind.NEVER} for each in atoms)))
            self._open, self._about = [], Clause()
        self._fresh()

    def take(self, word: str) -> None:
        word = self.lexicon.same.get(word, word)
        kind = self.kinds.get(word, CONTENT)
        if kind == Kind.AND:
            self.close()
            return
        if kind == Kind.SUB:
            self.close()
            self._add(word, CONTENT, fixed=True, bound=HARD)
        elif kind in {Kind.POLITE, Kind.PLEASE}:
            self._about = replace(self._about, polite=self._about.polite or kind == Kind.PLEASE)
        elif kind in {Kind.GLUE, Kind.BE}:
            self._be = self._be or kind == Kind.BE
            self._about = replace(self._about, be=self._about.be or kind == Kind.BE)
        elif kind == Kind.PREP:
            self._role, self._bound = word, HARD
        elif kind == Kind.POST:
            if self._open:
                self._open[-1] = replace(self._open[-1], role=self._open[-1].role or word)
        elif kind == Kind.OWN_AFTER and self._open:
            self._open[-1] = replace(self._open[-1], owner=Kind.OWN)
        elif kind in {Kind.OWN, Kind.YOUR, Kind.THEIRS}:
            self._owner = kind
            self._about = replace(self._about, your=self._about.your or (kind == Kind.YOUR and self._leads))
        else:
            self._word(word, kind)
        self._leads = self._leads and kind in {Kind.POLITE, Kind.PLEASE, Kind.FILLER}

    def _word(self, word: str, kind: int) -> None:
        bound = HARD if kind == Kind.LINK or (kind == Kind.SELF and word in self.lexicon.subjects) else 0
        fixed = kind in {Kind.LINK, Kind.LIMIT} or word in self.names or not word.isalpha()
        if kind in {Kind.LINK, Kind.LIMIT, Kind.OWN_AFTER}:
            kind = CONTENT
        self._add(word, kind, fixed=fixed, bound=bound)

    def _add(self, word: str, kind: int, *, fixed: bool, bound: int) -> None:
        bound = max(bound, self._bound)
        if bound == HARD and self._open and _binds(self._open[-1], self.lexicon):
            bound = 0
        passive = (self._be or self._wishes) and self.lexicon.is_participle(word)
        self._open.append(
            Atom(word, kind, self._role, self._owner, fixed, passive, bound, self._leads, self._is_subject(word, kind))
        )
        self._bound = 0
        self._wishes = self._wishes or (self.entry and kind in {Kind.PREFER, Kind.WANT})
        if kind not in {Kind.FILLER, Kind.NOT, Kind.NEVER}:
            self._role, self._owner, self._be = "", 0, False


    def _is_subject(self, word: str, kind: int) -> bool | None:
        if kind not in {Kind.SELF, Kind.THIRD}:
            return None
        heads = all(atom.kind != CONTENT or atom.bound == HARD for atom in self._open)
        if word in self.lexicon.objects:
            return False
        if self.entry or self.lexicon.first == ("*",):
            return True if heads else None
        return True


def _binds(atom: Atom, lexicon: Lexicon) -> bool:
    """What stands after a "not" or an "only" cannot be moved away from it."""
    return atom.kind in {Kind.NOT, Kind.NEVER} or atom.key in lexicon.limits


def _framed(atoms: Sequence[Atom], about: Clause, lexicon: Lexicon, *, entry: bool) -> tuple[list[Atom], Clause]:
    """Take out "I prefer". What others prefer stays."""
    kept: list[Atom] = []
    for atom in atoms:
        if atom.kind not in {Kind.PREFER, Kind.WANT}:
            kept.append(atom)
        elif _is_owners(kept, atom, lexicon, entry=entry):
            about = replace(about, wish=max(about.wish, atom.kind))
            kept = _without_person(kept)
        else:
            kept.append(replace(atom, key="wish", kind=CONTENT, fixed=True))
    return kept, about


def _is_owners(before: Sequence[Atom], wish: Atom, lexicon: Lexicon, *, entry: bool) -> bool:
    persons = {Kind.SELF, Kind.THIRD} if entry else {Kind.SELF}
    if lexicon.first == ("*",):
        return all(atom.kind not in {Kind.YOU, Kind.THIRD} for atom in before)
    last = next((atom for atom in reversed(before) if atom.kind not in {Kind.NOT, Kind.NEVER, Kind.FILLER}), None)
    if last is None:
        return entry or not lexicon.first or wish.key.endswith(lexicon.first)
    return last.kind in persons


def _without_person(atoms: Sequence[Atom]) -> list[Atom]:
    """Without the persons right before the end."""
    kept = list(atoms)
    for at in range(len(atoms) - 1, -1, -1):
        if atoms[at].kind in {Kind.SELF, Kind.THIRD}:
            del kept[at]
        elif atoms[at].kind not in {Kind.NOT, Kind.NEVER, Kind.FILLER}:
            break
    return kept


def read(text: str, lexicon: Lexicon, *, entry: bool) -> Iterator[Sentence]:
    for start, end in sentences(text):
        part = text[start:end]
        reader = _Reader(lexicon, _names(part, lexicon), entry=entry)
        plain = _plain(part, lexicon)
        for clause in _CLAUSE.split(plain):
            for word in _words(clause, lexicon):
                reader.take(word)
            reader.close()
        if reader.atoms:
            yield Sentence(tuple(reader.atoms), tuple(reader.clauses), _asks(part, plain, lexicon, reader.clauses))


def _asks(raw: str, plain: str, lexicon: Lexicon, clauses: Sequence[Clause]) -> bool:
    question = _QUESTION.search(raw) or lexicon.question.match(plain)
    return bool(question) and not any(clause.polite for clause in clauses)


def _names(text: str, lexicon: Lexicon) -> frozenset[str]:
    if not lexicon.language.names:
        return frozenset()
    found = (match[1] for match in _CAPITAL.finditer(text))
    return frozenset(word.casefold() for word in found if word[:1].isupper())


def _plain(text: str, lexicon: Lexicon) -> str:
    plain = unicodedata.normalize("NFKC", _SIGNS.sub(r"\g<0> ", text)).casefold().replace("’", "'")
    for pattern, spelled in lexicon.phrases:
        plain, count = pattern.subn(spelled, plain)
        plain = _SPACES.sub(" ", plain) if count else plain
    return plain.strip()


def _words(part: str, lexicon: Lexicon) -> Iterator[str]:
    for found in _WORD.findall(part):
        if _IDEOGRAPHIC.search(found):
            yield from _pieces(found, lexicon)
        elif re.search(r"\d|[^\w-]", found) or "_" in found:
            yield found
        else:
            yield from filter(None, found.split("-"))


def _pieces(text: str, lexicon: Lexicon) -> Iterator[str]:
    """The longest words that the language lists; of the rest, ideographs one by one and kana in stretches. One or
    two hiragana after an ideograph are an ending."""
    at, before = 0, ""
    while at < len(text):
        word = lexicon.longest(text, at)
        if not word:
            word = _CJK.match(text, at)[0]  # type: ignore[index]
            if re.match("[ぁ-ゖ]", word):
                word = lexicon.unlisted(text, at, len(word))
                if len(word) <= 2 and not re.search("[ぁ-ゖ]$", before):
                    at, before = at + len(word), word
                    continue
        yield word
        at, before = at + len(word), word
