"""Vectors that stand for the meaning of text, and the Protocol of the embedder that makes them."""

from collections.abc import Mapping, Sequence
from math import sqrt
from operator import mul
from typing import Literal, Protocol

from msgspec import Struct

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


class Unembedded(Struct, frozen=True):
    """A content without a vector: its number, its digest and the text to embed; empty if there is none."""

    content: int
    digest: str
    text: str


class Coverage(Struct, frozen=True):
    """How many contents have a vector of one embedder, and how many have none or another one's."""

    made: int = 0
    left: int = 0


class Vectors(Protocol):
    """The vectors of all that was said, one for each content. `embedder` is the id of an Embedder: vectors of
    others count as missing, and are replaced."""

    async def adopt(self, embedder: str) -> None:
        """Let only this embedder add vectors from now on, in any process."""
        ...

    async def is_adopted(self, embedder: str) -> bool: ...

    async def missing(self, embedder: str, limit: int) -> Sequence[Unembedded]:
        """Return contents to embed: new ones first, then the rest from latest to oldest."""
        ...

    async def put(self, embedder: str, made: Sequence[tuple[Unembedded, bytes]]) -> None:
        """Store the vectors of what `missing` returned, in one transaction. Skip contents that were deleted
        or changed since."""
        ...

    async def tidy(self, embedder: str) -> bool:
        """Prepare some vectors for a fast scan of all. Return whether there was something to do."""
        ...

    async def coverage(self, embedder: str) -> Coverage: ...

    async def cached(self, embedder: str, texts: Sequence[str]) -> Mapping[str, bytes]:
        """Return the stored vectors of short texts, by text."""
        ...

    async def cache(self, embedder: str, made: Mapping[str, bytes]) -> None:
        """Store vectors of short texts. Drop the oldest if there are too many."""
        ...


def pack(values: Sequence[float]) -> bytes:
    """Scale a vector to length one and round each number to a signed byte. A vector of zeros stays zero."""
    length = sqrt(sum(map(mul, values, values)))
    if not length:
        return bytes(len(values))
    return bytes(round(value / length * SCALE) & 0xFF for value in values)


def similarity(one: bytes, other: bytes) -> float:
    """Return the cosine of two packed vectors: about 1 for the same meaning, about 0 for unrelated ones.
    Return 0 for vectors of different models, which differ in length or have nothing in common."""
    if len(one) != len(other):
        return 0.0
    first, second = memoryview(one).cast("b"), memoryview(other).cast("b")
    lengths = sqrt(sum(map(mul, first, first)) * sum(map(mul, second, second)))
    return sum(map(mul, first, second)) / lengths if lengths else 0.0
