"""Vectors that stand for the meaning of text, and the Protocol of what makes them."""

from collections.abc import Sequence
from math import sqrt
from operator import mul
from typing import Literal, Protocol

Purpose = Literal["question", "passage"]
"""Some models embed a question differently from the passages that may answer it."""

SCALE = 127


class Embedder(Protocol):
    @property
    def id(self) -> str:
        """Return the model's name and whatever else decides its vectors: a new id means new vectors."""
        ...

    @property
    def host(self) -> str:
        """Return the host that text is sent to, or "" if it stays on this machine."""
        ...

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[bytes]:
        """Return a vector for each text, as `pack` makes them. Raise a HoneError if that fails."""
        ...

    async def close(self) -> None: ...


class Meanings(Protocol):
    """Vectors of short texts (skills, lessons, templates), made once and stored."""

    async def vectors(self, texts: Sequence[str], purpose: Purpose = "passage") -> Sequence[bytes]:
        """Return a vector for each text, or nothing if no embedder is set or it does not answer in time."""
        ...


def pack(values: Sequence[float]) -> bytes:
    """Scale a vector to length one and round each number to a signed byte. A vector of zeros stays zero."""
    length = sqrt(sum(map(mul, values, values)))
    if not length:
        return bytes(len(values))
    return bytes(round(value / length * SCALE) & 0xFF for value in values)


def similarity(one: bytes, other: bytes) -> float:
    """Return the cosine of two packed vectors: about 1 for the same meaning, about 0 for unrelated ones. It
    is 0 for vectors of different models, which have different lengths or nothing in common."""
    if len(one) != len(other):
        return 0.0
    first, second = memoryview(one).cast("b"), memoryview(other).cast("b")
    lengths = sqrt(sum(map(mul, first, first)) * sum(map(mul, second, second)))
    return sum(map(mul, first, second)) / lengths if lengths else 0.0
