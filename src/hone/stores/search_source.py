"""The queries that a search sends to a database. Ranking is shared; each store answers these in its own SQL.

Contents are identified by their numbers, in the order in which they were stored. Each query is one statement,
however many contents or terms it covers.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from hone.core.ids import SessionId
from hone.core.turn import Origin
from hone.stores.window import ANY, Window

Term = str
"""A word or a phrase in quotation marks, followed by a star if it is only a prefix."""
Expression = tuple[tuple[Term, ...], ...]
"""Any term of a group may match, but every group must."""


class Spot(Struct, frozen=True):
    """A node of a message; `depth` is the number of the message."""

    content: int
    id: int
    chain: int
    depth: int
    parent: int | None
    trust: int
    at: int


class Candidate(Struct, frozen=True):
    """A session that may hold the nodes of a chain; `alone`: no other session has its conversation."""

    session: SessionId
    tree: SessionId
    head: int
    shared: int
    messages: int
    origin: str
    alone: bool

    def only_shares(self, spot: Spot) -> bool:
        """Tell whether it is a fork, and this was said before it began."""
        return self.origin != Origin.USER and self.shared >= spot.depth


class WordSource(Protocol):
    """The words of all contents, and when they were said."""

    def size(self) -> int:
        """Return about how many contents there are."""
        ...

    def count(self, limits: Mapping[Term, int]) -> dict[Term, int]:
        """Return the number of contents with each term, counted up to its limit."""
        ...

    def find(
        self, expressions: Sequence[Expression], limit: int, only: Window = ANY, *, newest: bool = False
    ) -> dict[Expression, list[int]]:
        """Return this many contents that match each expression, from the first or from the newest on."""
        ...

    def words(self, beginning: str, limit: int) -> list[str]:
        """Return the first words of the index, alphabetically, with this prefix."""
        ...

    def holding(self, words: Collection[str], each: int, only: Window) -> set[int]:
        """Return this many contents for each of these words, as spelled in the index."""
        ...

    def sieve(self, contents: Sequence[int], window: Window, count: int) -> list[int]:
        """Return the first of them, up to a number, that were said then."""
        ...

    def latest(self, window: Window, limit: int) -> list[int]:
        """Return contents that were said then, latest first."""
        ...


class PlaceSource(Protocol):
    """The places of contents, and the sessions that hold them."""

    def standing(self, contents: Collection[int], limit: int) -> list[tuple[int, int, int]]:
        """Return content, chain and depth of the latest nodes of each, up to a number."""
        ...

    def lengths(self, contents: Collection[int], above: int) -> dict[int, int]:
        """Return the sizes in bytes of those that are longer."""
        ...

    def around(self, contents: Collection[int]) -> list[tuple[int, int, int, int | None]]:
        """Return for the latest two nodes of each: content, chain, the neighbor, and the next but one."""
        ...

    def frequent(self, contents: Collection[int], above: int) -> set[int]:
        """Return those that occur in more nodes."""
        ...

    def spots(self, contents: Sequence[int], window: Window, limit: int) -> Iterable[Spot]:
        """Return the latest nodes of each within the window, up to a number, latest first."""
        ...

    def bodies(self, contents: Collection[int]) -> Iterable[tuple[int, str, bytes]]:
        """Return number, digest and body of each."""
        ...

    def sessions(self, chains: Collection[int]) -> Iterable[tuple[int, Candidate]]:
        """Return each chain with the sessions on it, the one that shares least first."""
        ...

    def headers(self, sessions: Collection[str]) -> Iterable[tuple[Any, ...]]:
        """Return id, created, title, origin, folder, parent, shared and opening of each."""
        ...

    def lines(self, heads: Mapping[int, int]) -> Iterable[tuple[int, Sequence[int]]]:
        """Return each head with the nodes from it up to its depth."""
        ...

    def later(self, node: int) -> Spot | None:
        """Return the first node of another line that replaced what follows this one."""
        ...

    def beside(self, nodes: Collection[int]) -> Iterable[tuple[int, Spot]]:
        """Return each node with the one before it and those after it, the first said first."""
        ...

    def is_empty(self) -> bool: ...


class VectorSource(Protocol):
    """The vectors of contents by one embedder, known by its number."""

    def number(self, embedder: str) -> int | None:
        """Return the number of an embedder, None if it has made nothing yet."""
        ...

    def nearest(self, embedder: int, vector: bytes, count: int) -> list[int]:
        """Return about this many contents with the nearest vectors."""
        ...

    def vectors(self, embedder: int, contents: Collection[int], size: int) -> list[tuple[int, bytes]]:
        """Return the existing vectors of this size."""
        ...

    def sample(self, embedder: int, count: int) -> list[int]:
        """Return about this many contents with a vector, spread evenly."""
        ...


class SearchSource(WordSource, PlaceSource, Protocol):
    """All queries of a search by words."""
