"""Find lessons that mean much the same and share few words, if an embedder is set.

Vectors call opposites alike: "Use tabs" and "Use spaces" are about the same. So what is found here is only a
candidate: the model is shown it, or a lesson waits for the owner. Whether two lessons are the same or
contradict each other is decided by their words.
"""

from collections.abc import Sequence
from itertools import combinations

from hone.core.embedding import Meanings, similarity
from hone.knowledge.lexicon import detect, lexicons
from hone.knowledge.resemblance import MOST

NEAR = 0.6
"""On a scale where unrelated lessons have 0 and equal words have 1. Among 1,770 pairs of different lessons in
English, none reaches it, with both local models."""
LANGUAGE = "en"
"""Small models know one language. Lessons in others that have nothing in common look alike to them."""
UNRELATED = (
    "Deploys happen every Friday.",
    "User likes coffee.",
    "The API key is kept in the vault.",
    "Answer in German.",
    "Use tabs for indentation.",
    "User lives in Turku.",
    "Tests run with pytest.",
    "The staging server is heron.",
    "Never push to main without asking.",
    "User's sister is called Anna.",
    "Invoices are due within 30 days.",
    "Keep release notes short.",
)
"""The similarity of these is a model's zero: some models give no pair less than 0.7."""


class Nearness:
    """Without vectors from `meanings`, nothing is near."""

    def __init__(self, meanings: Meanings) -> None:
        self._meanings = meanings

    async def find(self, text: str, entries: Sequence[str]) -> list[str]:
        """Return the entries that may mean the same, nearest first."""
        known = [entry for entry in entries if _is_read(entry)]
        if not known or not _is_read(text):
            return []
        vectors = await self._meanings.vectors([*UNRELATED, text, *known])
        if len(vectors) != len(UNRELATED) + 1 + len(known):
            return []
        own, others = vectors[len(UNRELATED)], vectors[len(UNRELATED) + 1 :]
        zero = find_zero(vectors[: len(UNRELATED)])
        scores = [scale(similarity(own, each), zero) for each in others]
        scored = zip(scores, known, strict=True)
        near = sorted((each for each in scored if each[0] >= NEAR), key=lambda each: -each[0])
        return [entry for _, entry in near[:MOST]]


async def rate(meanings: Meanings, question: str, texts: Sequence[str]) -> list[float]:
    """Return how near each text is to a question, on the same scale; nothing if unknown."""
    if not texts or not _is_read(question):
        return []
    asked = await meanings.vectors([question], "question")
    vectors = await meanings.vectors([*UNRELATED, *texts]) if asked else ()
    if len(vectors) != len(UNRELATED) + len(texts):
        return []
    found = [similarity(asked[0], each) for each in vectors]
    zero = sum(found[: len(UNRELATED)]) / len(UNRELATED)
    return [scale(each, zero) for each in found[len(UNRELATED) :]]


def find_zero(vectors: Sequence[bytes]) -> float:
    """Return how similar unrelated texts are on average."""
    found = [similarity(one, other) for one, other in combinations(vectors, 2)]
    return sum(found) / len(found) if found else 0.0


def scale(found: float, zero: float) -> float:
    return (found - zero) / (1 - zero) if zero < 1 else 0.0


def _is_read(text: str) -> bool:
    return detect(text) is lexicons()[LANGUAGE]
