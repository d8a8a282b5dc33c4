"""Parse a text into sentences of atoms: the words that carry its meaning, each with what it depends on.

Words that only hold a sentence together are left out. "I prefer" and "the user wants" are frames: they are
removed from the sequence and remembered with their clause.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

from hone.core.regex import has_any, regex
from hone.core.value import replace
from hone.knowledge.language import Kind
from hone.knowledge.lexicon import Lexicon
from hone.knowledge.sentences import is_tied, sentences
from hone.knowledge.tokens import words as words_of

SOFT, HARD, PHRASE = 1, 2, 3
"""How an atom is separated from the one before it: by a comma or an "and"; as a subject, or after a clause
with "if"; by a preposition or an "if"."""
COMMENT, GENERIC, OTHERS, CONSEQUENCE = 1, 2, 3, 4
"""The kinds of remark that a clause may be."""
DENIALS = frozenset({Kind.NOT, Kind.NEVER})
WISHES = frozenset({Kind.PREFER, Kind.WANT})
PERSONS = frozenset({Kind.SELF, Kind.THIRD})
_WORDS = frozenset({Kind.CONTENT, Kind.HAVE}) | DENIALS
_AHEAD = 6
_SLACK = 8
"""How many characters the words of a text may shift when its case is folded."""
_NO_ENDING = ("\0",)
_LONGEST = 4_000
"""The most characters of a sentence: anything longer is no sentence."""
_PART = regex(r"[,;.!?](?=\s|$)|\n|[。；！？，]|[、()「」“”«»„\"]|\s[-–—]+\s")
_CAPITAL = regex(r"(?<=[\w,;)] )[\"'“„«(]?([^\W\d_a-z]\w*)")
_QUESTION = regex(r"[?？][\"')\]”’»]*\s*$|[?？]\s")
_JOKE = regex(
    r"(?<!\w)(?:/s|j/k|jk|lol|rofl|lmao|mdr|ptdr|sqn|xd|(?:a?ha|he|ja|je|rs|ха){2,}h?|k{3,}|w{3,})(?!\w)|哈哈|笑|なんちゃって|才怪|[😂🤣😜😝🤪😏🙃]|;-?[)PpD]",
    re.IGNORECASE,
)
_CITED = regex(r"\s*(?:“[^”]*”|\"[^\"]*\"|«[^»]*»|„[^“”]*[“”]|「[^」]*」|‘[^’]*’)[.!?…]*\s*")
_SEGMENT = regex(r"([,;:.!?](?=\s|$)|\s[-–—]+\s)")
_IDLE = frozenset({Kind.GLUE, Kind.BE, Kind.HAVE, Kind.JOIN, Kind.SELF, Kind.OWN, Kind.YOU, Kind.POLITE}) | {
    Kind.PLEASE,
    Kind.FILLER,
    Kind.PREPOSITION,
}
"""What a part may contain besides chatter. "Her message:" and "your note:" say whose words follow."""
_SPACES = regex("[ \t]+")
_SIGNS = regex("[…，、；：！？。]")


class Atom(Struct, frozen=True):
    """A word that counts."""

    key: str
    kind: Kind = Kind.CONTENT
    role: str = ""
    """Its preposition."""
    owner: Kind = Kind.GLUE
    """Its owner: OWN, YOUR, THEIRS or nobody."""
    fixed: bool = False
    """It has one form only, and may not move."""
    passive: bool = False
    predicate: bool = False
    """It is the first word after a form of "be"."""
    bound: int = 0
    leads: bool = False
    """It is the very first word of its clause."""
    subject: bool | None = None
    """Whether a person is the subject; None if that cannot be told."""
    clause: int = 0


class Clause(Struct, frozen=True):
    """What is known about a clause besides its atoms."""

    wish: bool = False
    """It is framed as what the owner wants."""
    polite: bool = False
    be: bool = False
    your: bool = False
    """It begins with "your"."""
    negated: bool = False
    remark: int = 0


class Sentence(Struct, frozen=True):
    atoms: tuple[Atom, ...]
    clauses: tuple[Clause, ...]
    tells: bool
    """It seriously states or orders something."""
    tied: bool = False
    """It consists of several sentences that belong together."""


def read(
    text: str, lexicon: Lexicon, *, entry: bool, hints: Collection[str] | None = None
) -> Iterator[Sentence]:
    """Parse sentence by sentence; with `hints`, only those that contain one of them."""
    folded = text.casefold()
    for start, end in sentences(text):
        if hints is not None and not any(hint in folded[start : end + _SLACK] for hint in hints):
            continue
        if end - start > _LONGEST:
            yield Sentence((Atom(text[start:end]),), (Clause(),), tells=False)
        elif found := _read(text[start:end], lexicon, entry=entry):
            yield found


@lru_cache(maxsize=256)  # what the owner said is read again for each entry that rests on it
def _read(text: str, lexicon: Lexicon, *, entry: bool) -> Sentence | None:
    """Read one sentence; None if it has no words that count."""
    part = lexicon.tag.sub("", text)
    plain, tied = simplify(part, lexicon), is_tied(part)
    reader = _Reader(lexicon, _names(part, lexicon), entry=entry)
    for each in _PART.split(plain if tied else _without_chatter(plain, lexicon)):
        reader.read(each)
    reader.finish()
    if not reader.atoms:
        return None
    tells = _tells(part, plain, lexicon, reader.clauses)
    return Sentence(tuple(reader.atoms), tuple(reader.clauses), tells, tied)


def _tells(raw: str, plain: str, lexicon: Lexicon, clauses: Sequence[Clause]) -> bool:
    asks = _QUESTION.search(raw) or lexicon.question.match(plain)
    is_request = any(clause.polite for clause in clauses)
    return (not asks or is_request) and not _JOKE.search(raw) and not _CITED.fullmatch(raw)


def _names(text: str, lexicon: Lexicon) -> frozenset[str]:
    if not lexicon.language.names:
        return frozenset()
    found = (match[1] for match in _CAPITAL.finditer(text))
    return frozenset(word.casefold() for word in found if word[:1].isupper())


@lru_cache(maxsize=256)  # an entry and its evidence are each parsed several times
def simplify(text: str, lexicon: Lexicon) -> str:
    """Return a text in lower case, with its expressions rewritten as the language lists them."""
    plain = unicodedata.normalize("NFKC", _SIGNS.sub(r"\g<0> ", text)).casefold()
    plain = _SPACES.sub(" ", plain.replace("’", "'")).strip()
    for pattern, spelled, needles in lexicon.phrases:
        if has_any(plain, needles):
            plain, count = pattern.subn(spelled, plain)
            plain = _SPACES.sub(" ", plain) if count else plain
    return plain.strip()


def _without_chatter(plain: str, lexicon: Lexicon) -> str:
    """Remove the parts that say nothing. Such a part may end with a colon."""
    if not lexicon.chatter:
        return plain
    parts = _SEGMENT.split(plain)
    kept = [text if at % 2 or not _is_chatter(text, lexicon) else "" for at, text in enumerate(parts)]
    return "".join(kept)


def _is_chatter(text: str, lexicon: Lexicon) -> bool:
    """Tell whether a part says nothing. One that begins with a preposition may limit the rest: "with a
    friend"."""
    words = list(words_of(text, lexicon))
    if words and lexicon.said.get(words[0]) is Kind.PREPOSITION:
        return False
    return any(word in lexicon.chatter for word in words) and all(
        word in lexicon.chatter or lexicon.said.get(word) in _IDLE for word in words
    )


class _Reader:
    """Collects the atoms of one sentence."""

    def __init__(self, lexicon: Lexicon, names: frozenset[str], *, entry: bool) -> None:
        self.atoms: list[Atom] = []
        self.clauses: list[Clause] = []
        self._lexicon, self._names, self._entry = lexicon, names, entry
        self._kinds = lexicon.written if entry else lexicon.said
        self._open: list[Atom] = []
        self._about = Clause()
        self._remark, self._listed = 0, 0
        self._role, self._owner = "", Kind.GLUE
        self._start()

    def read(self, part: str) -> None:
        """Read the text between two signs."""
        words = [self._lexicon.same.get(word, word) for word in words_of(part, self._lexicon)]
        while len(words) > 1 and self._kinds.get(words[-1]) is Kind.POLITE:
            words.pop()
        self._remark = self._classify(words)
        for at, word in enumerate(words):
            kind = self._kinds.get(word)
            if kind is Kind.JOIN and self._is_list(words, at):
                self._role = self._open[-1].role
                self._listed = self._listed or (0 if self._role else len(self._open) - 1)
                continue
            if kind in {Kind.JOIN, Kind.SUBORDINATE}:
                self._close()
                self._remark = self._classify(words[at:]) or self._remark
            self._take(word)
        self._close()

    def finish(self) -> None:
        """Add what is left to the last clause."""
        if self.clauses:
            self.atoms += [replace(atom, clause=len(self.clauses) - 1) for atom in self._open]

    def _classify(self, words: Sequence[str]) -> int:
        """Return the kind of remark that begins with those words."""
        rest = words[1:] if words and words[0] in self._lexicon.ands else words
        text = ("" if self._lexicon.drops_subjects else " ").join(rest[:_AHEAD])
        lexicon = self._lexicon
        kinds = {COMMENT: lexicon.comment, GENERIC: lexicon.generic, OTHERS: lexicon.others}
        kinds[CONSEQUENCE] = lexicon.consequence
        found = max((kind for kind, pattern in kinds.items() if pattern.match(text)), default=0)
        if found or not rest or lexicon.drops_subjects:
            return found
        if rest[0].endswith(lexicon.first or _NO_ENDING) and rest[0] not in self._kinds:
            return COMMENT
        after = [self._kinds.get(word, Kind.CONTENT) for word in rest]
        return OTHERS if after[0] is Kind.CONTENT and {Kind.BE, Kind.HAVE} & set(after[1:4]) else 0

    def _is_list(self, words: Sequence[str], at: int) -> bool:
        """Tell whether an "and" joins two words, and not two clauses."""
        if not self._open or self._open[-1].kind is not Kind.CONTENT or at + 1 == len(words):
            return False
        if self._kinds.get(words[at + 1], Kind.CONTENT) is not Kind.CONTENT:
            return False
        rest = (self._kinds.get(word, Kind.CONTENT) for word in words[at + 2 :])
        after = next((kind for kind in rest if kind is not Kind.GLUE), Kind.JOIN)
        if self._open[-1].role:
            return after in {Kind.JOIN, Kind.SELF}
        content = [atom for atom in self._open if atom.kind is Kind.CONTENT]
        return after is Kind.JOIN and (len(content) > 1 or self._listed > 0)

    def _start(self) -> None:
        self._role, self._owner, self._listed = "", Kind.GLUE, 0
        self._be, self._wishes, self._bound, self._leads = False, False, SOFT, True

    def _close(self) -> None:
        """End the clause. A clause without content words belongs to the next."""
        bound = SOFT
        if any(atom.kind in _WORDS for atom in self._open):
            first = self._open[0]
            bound = HARD if first.bound == PHRASE else SOFT
            if self._listed:
                self._open[self._listed :] = sorted(self._open[self._listed :], key=lambda atom: atom.key)
            atoms, wish = _unframed(self._open, self._lexicon, entry=self._entry)
            negated = any(atom.kind in DENIALS for atom in atoms)
            self.atoms += [replace(atom, clause=len(self.clauses)) for atom in atoms]
            self.clauses.append(replace(self._about, wish=wish, negated=negated, remark=self._remark))
            self._open, self._about = [], Clause()
        self._start()
        self._bound = bound  # Text after "if …," can change places with it.

    def _take(self, word: str) -> None:
        kind = self._kinds.get(word, Kind.CONTENT)
        if kind is Kind.POLITE and not self._leads:
            kind = Kind.CONTENT
        match kind:
            case Kind.JOIN:
                return
            case Kind.SUBORDINATE:
                self._add(word, Kind.CONTENT, fixed=True, bound=PHRASE)
            case Kind.PREPOSITION:
                self._role, self._bound = word, PHRASE
            case Kind.POSTPOSITION | Kind.OWN_AFTER if self._open:
                last = self._open[-1]
                owner = Kind.OWN if kind is Kind.OWN_AFTER else last.owner
                role = word if kind is Kind.POSTPOSITION else ""
                self._open[-1] = replace(last, owner=owner, role=last.role or role)
            case Kind.GLUE | Kind.BE | Kind.POLITE | Kind.PLEASE | Kind.OWN | Kind.YOUR | Kind.THEIRS:
                self._note(kind)
            case _:
                self._word(word, kind)
        self._leads = self._leads and kind in {Kind.POLITE, Kind.PLEASE, Kind.FILLER}

    def _note(self, kind: Kind) -> None:
        about = self._about
        if kind in {Kind.OWN, Kind.YOUR, Kind.THEIRS}:
            self._owner = kind
        self._be = self._be or kind is Kind.BE
        self._about = replace(
            about,
            polite=about.polite or kind is Kind.PLEASE,
            be=about.be or kind is Kind.BE,
            your=about.your or (kind is Kind.YOUR and self._leads),
        )

    def _word(self, word: str, kind: Kind) -> None:
        ending = self._lexicon.case.fullmatch(word) if kind is Kind.CONTENT else None
        if ending:
            self._role, self._bound = ending[1], 0 if self._repeats(ending[1]) else PHRASE
        subject = kind is Kind.SELF and word in self._lexicon.subjects
        fixed = kind in {Kind.LINK, Kind.LIMIT} or word in self._names or not word.isalpha()
        if kind in {Kind.LINK, Kind.LIMIT, Kind.OWN_AFTER, Kind.POSTPOSITION}:
            bound, kind = (PHRASE if kind is Kind.LINK else 0), Kind.CONTENT
        else:
            bound = HARD if subject else 0
        self._add(word, kind, fixed=fixed, bound=bound)

    def _repeats(self, role: str) -> bool:
        return bool(self._open) and self._open[-1].role == role

    def _add(self, word: str, kind: Kind, *, fixed: bool, bound: int) -> None:
        bound = max(bound, self._bound)
        last = self._open[-1] if self._open else None
        if last and (last.kind in DENIALS or last.key in self._lexicon.limits):
            # Text after "not" or "only" moves with it.
            self._open[-1] = replace(last, bound=max(last.bound, bound if bound == PHRASE else 0))
            bound = 0
        passive = (self._be or self._wishes) and self._lexicon.is_participle(word)
        atom = Atom(word, kind, self._role, self._owner, fixed, passive, self._be, bound, self._leads)
        self._open.append(replace(atom, subject=self._is_subject(atom)) if kind in PERSONS else atom)
        self._bound = 0
        self._wishes = self._wishes or (self._entry and kind in WISHES)
        if kind is not Kind.FILLER and kind not in DENIALS:
            self._role, self._owner, self._be = "", Kind.GLUE, False

    def _is_subject(self, atom: Atom) -> bool | None:
        """Whether a person is the subject."""
        if atom.key in self._lexicon.objects:
            return False
        if not self._entry and not (self._lexicon.drops_subjects and self._lexicon.language.postpositions):
            return True
        heads = all(each.kind is not Kind.CONTENT or each.bound == PHRASE for each in self._open)
        return True if heads else None


def _unframed(atoms: Sequence[Atom], lexicon: Lexicon, *, entry: bool) -> tuple[list[Atom], bool]:
    """Remove "I prefer", and tell whether it was there. What others prefer stays."""
    kept: list[Atom] = []
    wish = False
    for atom in atoms:
        if atom.kind not in WISHES:
            kept.append(atom)
        elif _is_owners(kept, atom, lexicon, entry=entry):
            wish, kept = True, _without_person(kept)
        else:
            key = "wish" if atom.key in lexicon.said else atom.key
            kept.append(replace(atom, key=key, kind=Kind.CONTENT, fixed=True))
    return kept, wish


def _is_owners(before: Sequence[Atom], wish: Atom, lexicon: Lexicon, *, entry: bool) -> bool:
    if lexicon.drops_subjects:
        return all(atom.kind not in {Kind.YOU, Kind.THIRD} for atom in before)
    skipped = DENIALS | {Kind.FILLER}
    last = next((atom for atom in reversed(before) if atom.kind not in skipped), None)
    if last is None:
        return entry or not lexicon.first or wish.key.endswith(lexicon.first)
    return last.kind is Kind.SELF or (entry and last.kind is Kind.THIRD)


def _without_person(atoms: Sequence[Atom]) -> list[Atom]:
    """Remove the persons directly before the end."""
    kept = list(atoms)
    for at in range(len(atoms) - 1, -1, -1):
        if atoms[at].kind in PERSONS:
            del kept[at]
        elif atoms[at].kind is not Kind.FILLER and atoms[at].kind not in DENIALS:
            break
    return kept
