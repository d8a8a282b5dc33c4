"""Decide whether an entry says only what the owner said. If so it becomes active; in doubt the answer is no.

Every word of the entry must be in a sentence of the owner, and every word of that sentence in the entry. Only
the words that the language lists are free: glue, politeness, framing ("the user prefers"). Beyond that an
entry may name the owner ("I" becomes "the user"), inflect a word without changing its tense or mood, drop a
remark at the end, and move a part of the sentence if the meaning does not depend on the order.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from hone.core.regex import regex
from hone.knowledge.alignment import Alignment, same
from hone.knowledge.language import Kind
from hone.knowledge.lexicon import Lexicon, detect
from hone.knowledge.meaning import keeps_meaning
from hone.knowledge.ordering import is_ordered
from hone.knowledge.reading import Atom, Clause, Sentence, read

_MOST = 400
"""The most atoms of a sentence: anything longer is no sentence."""
_LONGEST = 100_000
"""The most characters of a message: anything longer is pasted."""
_SAMPLE = 4_000
"""The characters of the owner's text used to detect its language."""
_HINT = 2
"""The first letters that all forms of a word share."""
_PASTED = regex(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1|\Z)|^ {0,3}>.*?$", re.MULTILINE | re.DOTALL)

Written = tuple[Clause, Sequence[Atom]]
"""A clause of an entry and its atoms."""


def quotes(entry: str, owner: Sequence[str]) -> bool:
    """Tell whether one text of the owner says all of the entry. Text that the owner has fenced or marked as
    quoted is somebody else's."""
    texts = (_PASTED.sub("\n", text) for text in owner if len(text) <= _LONGEST)
    return any(_supports(text, entry) for text in texts)


@lru_cache(maxsize=16)  # asked before the lock is taken, and again under it
def _supports(owner: str, entry: str) -> bool:
    lexicon = detect(f"{entry} {owner[:_SAMPLE]}")
    written = list(read(entry, lexicon, entry=True))
    if not written or not all(each.tells and len(each.atoms) <= _MOST for each in written):
        return False
    hints = {atom.key[:_HINT] for each in written for atom in each.atoms if atom.kind is Kind.CONTENT}
    found = read(owner, lexicon, entry=False, hints=hints)
    said = [each for each in found if each.tells and len(each.atoms) <= _MOST]
    used: dict[int, list[Written]] = {}
    for clause, atoms in _clauses(written):
        place = _source(said, atoms, lexicon, preferred=next(reversed(used), 0))
        if place is None:
            return False
        used.setdefault(place, []).append((clause, atoms))
    return all(_holds(Alignment(said[place], clauses, lexicon)) for place, clauses in used.items())


def _holds(found: Alignment) -> bool:
    return found.is_complete() and is_ordered(found) and keeps_meaning(found)


def _clauses(sentences: Sequence[Sentence]) -> Iterator[Written]:
    for sentence in sentences:
        for number, clause in enumerate(sentence.clauses):
            yield clause, [atom for atom in sentence.atoms if atom.clause == number]


def _source(
    said: Sequence[Sentence], atoms: Sequence[Atom], lexicon: Lexicon, *, preferred: int
) -> int | None:
    """Return the owner's sentence that has all content words of a clause."""
    content = [
        atom for atom in atoms if atom.kind is Kind.CONTENT and not (atom.leads and atom.key in lexicon.use)
    ]
    for place in sorted(range(len(said)), key=lambda each: each != preferred):
        if all(any(same(other, atom, lexicon) for other in said[place].atoms) for atom in content):
            return place
    return None
