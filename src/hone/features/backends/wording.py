"""How texts are indexed and asked for. Handed in: other rooms search in the same way."""

from collections.abc import Callable, Collection

from hone.core.value import dataclass

MOST = 16
"""Terms of a question that are looked up; the longest words say most."""


@dataclass(frozen=True, slots=True)
class Wording:
    """`spaced` is a text as it is indexed, `terms` what to look for in it: words, or pairs of letters."""

    spaced: Callable[[str], str]
    terms: Callable[[Collection[str]], list[str]]

    def asked(self, text: str) -> list[str]:
        found = self.terms([text])
        return sorted(found, key=len, reverse=True)[:MOST] if len(found) > MOST else found


def within(counts: list[tuple[int, str]], budget: int) -> list[str]:
    """The rarest terms whose finds together stay within the budget; the rarest of all in any case. What is
    not found is left out."""
    chosen: list[str] = []
    for count, term in sorted(counts):
        if count and (not chosen or count <= budget):
            chosen.append(term)
            budget -= count
    return chosen
