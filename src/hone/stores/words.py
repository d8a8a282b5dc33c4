"""Split text into words for search. User input is never read as query syntax."""

from collections.abc import Collection
from itertools import pairwise

from hone.core.messages import sound
from hone.core.regex import regex
from hone.core.skill import SEPARATE

MOST = 200
"""The most terms of one query; a whole page is answered by its beginning."""
QUESTION = 16
"""The most terms of a whole question to search; long words say most."""
LETTER = regex(f"[{SEPARATE}]")
LETTERS = regex(f"[{SEPARATE}]+")
RUN = regex(f"[{SEPARATE}]+|[^{SEPARATE}]+")
BREAK = regex(r"[\s\x00-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]+")


def spaced(text: str) -> str:
    """Return the text as indexed: such letters are separate words."""
    return LETTER.sub(r" \g<0> ", sound(text))


def terms(words: Collection[str]) -> list[str]:
    """Return the terms to search, each once: words, and pairs of letters where letters are indexed alone."""
    found: dict[str, None] = {}
    for word in words:
        for piece in BREAK.split(sound(word).lower()):
            for run in RUN.findall(piece):
                found.update(dict.fromkeys(_pairs(run) if LETTER.match(run) else [run]))
    return list(found)[:MOST]


def query(words: Collection[str]) -> str:
    """Return a query for FTS5 that matches any of the terms; empty if there are none. No term can hold a
    quotation mark."""
    return " OR ".join(f'"{term}"' for term in terms(words))


def question_terms(text: str) -> list[str]:
    """Return the terms of a question, the longest ones if there are many."""
    found = terms([text])
    return sorted(found, key=len, reverse=True)[:QUESTION] if len(found) > QUESTION else found


def rarest(counts: list[tuple[int, str]], budget: int) -> list[str]:
    """Return the rarest terms whose hits together stay within the budget, and always the rarest of all. A
    term without hits is left out."""
    chosen: list[str] = []
    for count, term in sorted(counts):
        if count and (not chosen or count <= budget):
            chosen.append(term)
            budget -= count
    return chosen


def _pairs(run: str) -> list[str]:
    return [f"{one} {two}" for one, two in pairwise(run)] or [run]
