"""Rerank the memories that words have found by their meaning."""

from collections.abc import Sequence

from hone.core.backend import MemoryItem
from hone.core.embedding import Meanings
from hone.knowledge.nearness import rate

WIDER = 3
"""How many times as many memories to check as are wanted."""
WORDS = 0.5
"""The share of the order by words, which says less than scores would; the rest is the meaning's."""


async def rank_by_meaning(
    meanings: Meanings, question: str, found: Sequence[MemoryItem]
) -> Sequence[MemoryItem]:
    """Return these memories, best first; in their order if their meaning is unknown."""
    scores = await rate(meanings, question, [f"{each.key}: {each.value}" for each in found])
    if not scores:
        return found
    steps = [WORDS * (1 - place / len(found)) for place in range(len(found))]
    joined = [by_words + (1 - WORDS) * score for by_words, score in zip(steps, scores, strict=True)]
    return [found[place] for place in sorted(range(len(found)), key=lambda place: -joined[place])]
