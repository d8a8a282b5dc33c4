"""Compare two ends of a move: the count and the SHA-256 of each table's rows, in key order."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Protocol

import msgspec
from msgspec import Struct

from hone.core.errors import Corrupt
from hone.core.messages import digest
from hone.stores.moving.tables import TABLES, MovedTable, Row

encode = msgspec.msgpack.Encoder().encode


class OwnerRecord(Struct, frozen=True):
    """Values that an owner has once: the last ids given out, and the name by which remote copies know it."""

    changes: int
    jobs: int
    rounds: int
    home: str
    backend: str


class MoveEnd(Protocol):
    """One database of a move. For as long as the move takes, it has exclusive access."""

    def count(self, table: MovedTable) -> int: ...

    def rows(self, table: MovedTable, *, by_use: bool = False) -> Iterator[Row]:
        """Yield the rows in key order, or contents in the order of their first use."""
        ...

    def put(self, table: MovedTable, rows: Iterable[Row]) -> None: ...

    def read_identity(self) -> OwnerRecord: ...

    def put_identity(self, identity: OwnerRecord, nodes: int) -> None:
        """Set the ids. `nodes` is the highest number that a message ever had: no number is reused."""
        ...

    def read_nodes(self) -> int: ...


class Fingerprint(Struct, frozen=True):
    count: int
    sha256: str


Fingerprints = Mapping[str, Fingerprint]


Watch = Callable[[MovedTable, Iterator[Row]], Iterator[Row]]
"""Sees the rows of a table as they are read, and passes them on."""


def take(end: MoveEnd, watch: Watch) -> Iterator[tuple[str, Fingerprint]]:
    """Yield the fingerprint of each table, and one of the owner's single values. Raises Corrupt for a content
    that does not match its digest."""
    for table in TABLES:
        yield table.name, _take(table, watch(table, end.rows(table)))
    identity = end.read_identity()
    yield "identity", Fingerprint(1, sha256(encode(identity)).hexdigest())


def _take(table: MovedTable, rows: Iterable[Row]) -> Fingerprint:
    state, count = sha256(), 0
    for row in rows:
        if table.content and digest(row[1]) != row[0]:
            raise Corrupt(
                f"A row of {table.name} is damaged ({row[0]}); nothing was moved. "
                "Run hone doctor --deep, and hone doctor --repair."
            )
        state.update(encode(row))
        count += 1
    return Fingerprint(count, state.hexdigest())


def combine(fingerprints: Fingerprints) -> str:
    """Return one digest for all tables."""
    whole = "".join(f"{name} {each.count} {each.sha256}\n" for name, each in sorted(fingerprints.items()))
    return sha256(whole.encode()).hexdigest()


def differing(one: Fingerprints, other: Fingerprints) -> list[str]:
    """Return the names of tables that differ."""
    return [name for name in one.keys() | other.keys() if one.get(name) != other.get(name)]
