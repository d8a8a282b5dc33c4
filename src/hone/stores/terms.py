"""Ask the word index what a ranking needs: how rare a term is, who holds it, which words begin alike."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from math import log
from operator import itemgetter

from hone.stores.search_source import Expression, Term, WordSource
from hone.stores.stemming import stem
from hone.stores.window import Window

COMMON = 5_000
"""Messages after which a term is no longer counted; alone it is looked for in the latest ones only."""
EXTRA = 2_000
"""The same for words that count for less."""
LATEST, OFTEN = 100, 1_000
"""Messages that are taken from the latest on. A phrase in so many is looked for from the latest on."""
LOOKED, ALIKE, EACH = 200, 50, 2_000
"""Words with one beginning: so many are looked at, the shortest are taken, with so many messages in all."""
SHORTEST, ENDING = 3, 2
"""Letters of a beginning that are looked for at least, and letters that a stem may have lost or changed."""

SUFFIXES = (
    *("s", "e", "y", "ations", "ing", "ed", "ers", "ity", "ically", "ments", "ness"),
    *("able", "ible", "atively", "ously", "fully", "isms", "ists", "izes"),
)
"""Ends of English words. Of "conversation" the index holds "convers", of "relativity" it holds "rel"."""
ENDS = tuple(dict.fromkeys(each[at:] for each in SUFFIXES for at in range(len(each) + 1)))
"""What may follow a beginning, which may stop in the middle of a suffix; nothing, too."""


def all_of(terms: Iterable[Term]) -> Expression:
    """Return the expression that fits where all of these terms stand."""
    return tuple((term,) for term in terms)


class WordIndex:
    """What can be asked of the words, within the bounds of a query."""

    def __init__(self, source: WordSource, only: Window) -> None:
        self.source = source
        self.only = only

    @cached_property
    def _size(self) -> int:
        return self.source.size()

    def counts(self, terms: Iterable[Term], extra: Iterable[Term] = ()) -> dict[Term, int]:
        """In how many messages each stands, up to a bound, the rarest first."""
        limits = dict.fromkeys(terms, COMMON) | dict.fromkeys(sorted(extra), EXTRA)
        return dict(sorted(self.source.count(limits).items(), key=itemgetter(1)))

    def worth(self, count: int) -> float:
        """A word tells the more, the rarer it is."""
        return log(1 + (self._size + 0.5) / (count + 0.5))

    def held(self, expressions: Iterable[Expression]) -> dict[Expression, list[int]]:
        """The messages that each fits, whatever the bounds are: what is out of them goes later."""
        asked = list(expressions)
        return self.source.find(asked, COMMON) if asked else {}

    def some(self, *expressions: Expression) -> list[list[int]]:
        """For each all, or the latest if there are many. To go through all is done faster from the first one
        on."""
        found = self.source.find(expressions, OFTEN, self.only)
        often = [each for each in expressions if len(found[each]) >= OFTEN]
        found |= self.newest(often) if often else {}
        return [found[each] for each in expressions]

    def newest(self, expressions: Sequence[Expression]) -> dict[Expression, list[int]]:
        """The latest messages that each fits, within the bounds."""
        return self.source.find(expressions, LATEST, self.only, newest=True)

    def alike(self, first: str) -> list[int]:
        """Messages with a word that begins like this. The index holds stems, which may be shorter and may end
        in another letter."""
        words = sorted(self.source.words(first, LOOKED), key=len)[:ALIKE]
        whole = filter(None, (stem(f"{first}{end}") for end in ENDS))
        words = list(dict.fromkeys([*words, *_stems(first), *whole]))
        return list(self.source.holding(words, max(1, EACH // len(words)), self.only))


def _stems(first: str) -> list[str]:
    """What may be left of a word that begins like this."""
    cut = [first[: len(first) - each] for each in range(ENDING + 1)]
    kept = [each for each in cut if len(each) >= min(SHORTEST, len(first))]
    return [*kept, *(f"{each[:-1]}i" for each in kept if each.endswith("y"))]
