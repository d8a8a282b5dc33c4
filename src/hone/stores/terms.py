"""Query the word index for a ranking: how rare a term is, who holds it, which words begin alike."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from math import log
from operator import itemgetter

from hone.stores.search_source import Expression, Term, WordSource
from hone.stores.stemming import stem
from hone.stores.window import Window

COMMON = 5_000
"""The most messages to count for a term. A term alone that has more is searched in the latest ones only."""
EXTRA = 2_000
"""The same for words that count less."""
LATEST, OFTEN = 100, 1_000
"""How many of the latest messages to read. A phrase that occurs in as many is searched from the latest on."""
LOOKED, ALIKE, EACH = 200, 50, 2_000
"""For words with one prefix: how many to read, how many of the shortest to use, and their messages in
total."""
SHORTEST, ENDING = 3, 2
"""The fewest letters of a prefix to search, and letters that a stem may have lost or changed."""

SUFFIXES = (
    *("s", "e", "y", "ations", "ing", "ed", "ers", "ity", "ically", "ments", "ness"),
    *("able", "ible", "atively", "ously", "fully", "isms", "ists", "izes"),
)
"""Endings of English words. For "conversation" the index holds "convers", for "relativity" it holds "rel"."""
ENDS = tuple(dict.fromkeys(each[at:] for each in SUFFIXES for at in range(len(each) + 1)))
"""What may follow a prefix, which may stop in the middle of a suffix; or nothing."""


def all_of(terms: Iterable[Term]) -> Expression:
    """Return an expression that matches where all of these terms occur."""
    return tuple((term,) for term in terms)


class WordIndex:
    """Queries the words within the bounds of a search."""

    def __init__(self, source: WordSource, only: Window) -> None:
        self.source = source
        self.only = only

    @cached_property
    def _size(self) -> int:
        return self.source.size()

    def counts(self, terms: Iterable[Term], extra: Iterable[Term] = ()) -> dict[Term, int]:
        """Return in how many messages each occurs, up to a bound, rarest first."""
        limits = dict.fromkeys(terms, COMMON) | dict.fromkeys(sorted(extra), EXTRA)
        return dict(sorted(self.source.count(limits).items(), key=itemgetter(1)))

    def worth(self, count: int) -> float:
        """Return the weight of a word: the rarer, the higher."""
        return log(1 + (self._size + 0.5) / (count + 0.5))

    def held(self, expressions: Iterable[Expression]) -> dict[Expression, list[int]]:
        """Return the messages that match each, ignoring the bounds, which are applied later."""
        asked = list(expressions)
        return self.source.find(asked, COMMON) if asked else {}

    def some(self, *expressions: Expression) -> list[list[int]]:
        """Return all matches of each, or the latest if there are many. Reading all of them is faster from the
        first one on."""
        found = self.source.find(expressions, OFTEN, self.only)
        often = [each for each in expressions if len(found[each]) >= OFTEN]
        found |= self.newest(often) if often else {}
        return [found[each] for each in expressions]

    def newest(self, expressions: Sequence[Expression]) -> dict[Expression, list[int]]:
        """Return the latest messages that match each, within the bounds."""
        return self.source.find(expressions, LATEST, self.only, newest=True)

    def alike(self, first: str) -> list[int]:
        """Return messages with a word of this prefix. The index holds stems, which may be shorter and may end
        in another letter."""
        words = sorted(self.source.words(first, LOOKED), key=len)[:ALIKE]
        whole = filter(None, (stem(f"{first}{end}") for end in ENDS))
        words = list(dict.fromkeys([*words, *_stems(first), *whole]))
        return list(self.source.holding(words, max(1, EACH // len(words)), self.only))


def _stems(first: str) -> list[str]:
    """Return the possible stems of words with this prefix."""
    cut = [first[: len(first) - each] for each in range(ENDING + 1)]
    kept = [each for each in cut if len(each) >= min(SHORTEST, len(first))]
    return [*kept, *(f"{each[:-1]}i" for each in kept if each.endswith("y"))]
