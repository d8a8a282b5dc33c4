"""Find the content words of a question, and their other forms: deploying, deploy, deployment.

An index finds words that begin alike. This module decides whether one is a form of the other: `port` also
begins `portrait`.
"""

from collections.abc import Iterable, Sequence

from hone.stores.question import EMPTY, bare, stops, words
from hone.stores.words import LETTER, question_terms

LEAST, LONG = 4, 5
"""The fewest letters of a root without an inflection (deploys), and of one with a derived ending
(deployment). Shorter ones begin too many words."""
_FORMS = "s es ed er ers ing ings y ies ied e en ens em est te ten a as o os ar et ez ons ent ait"
_NEW = """
ment ments ion ions tion tions ation ations able ible al ally ly ness or ors ic ics ical ung ungen lich keit
heit in innen ando iendo ado ada ados adas ido ida cion ciones acion aciones mente dor dora dores ee ees aient
eur eurs euse ement isation isations ize izes ized izing ise ises ised ising
"""
FORMS, NEW = frozenset(_FORMS.split()), frozenset(_NEW.split())
_VOWELS = frozenset("aeiou")


def content_terms(text: str) -> list[str]:
    """Return the terms of a question without stop words; all of them if nothing is left."""
    found = question_terms(text)
    empty = max((EMPTY, *stops().values()), key=lambda each: len(each & {bare(term) for term in found}))
    return [term for term in found if bare(term) not in empty and not _is_small(term)] or found


def roots(terms: Iterable[str]) -> list[str]:
    """Return the roots of the words that may have other forms."""
    found = dict.fromkeys(_root(term) for term in terms if term.isalpha() and not LETTER.search(term))
    return [root for root in found if len(root) >= LEAST]


def beginning(root: str) -> str:
    """Return the prefix of a root's indexed forms. An index keeps stems, whose last letter may differ."""
    return root if len(root) <= LEAST else root[:-1].rstrip("y")


def has_form(text: str, wanted: Sequence[str]) -> bool:
    """Return whether a text has a word with one of these roots."""
    found = {bare(word) for word in words(text)}
    return any(_is_form(word, root) for word in found for root in wanted)


def _is_small(term: str) -> bool:
    return len(term) == 1 and term.isascii() and term.isalpha()


def _is_form(word: str, root: str) -> bool:
    rest = word.removeprefix(root)
    if not word.startswith(root):
        return False
    return not rest or rest in FORMS or (rest in NEW and len(root) >= LONG)


def _root(term: str) -> str:
    """Return a word without its longest ending that leaves enough of it."""
    word = bare(term)
    for size in range(min(9, len(word) - LEAST), 0, -1):
        root, ending = word[:-size], word[-size:]
        if ending == "y" and root[-1] in _VOWELS:
            continue
        if ending in FORMS or (ending in NEW and len(root) >= LONG):
            return root
    return word
