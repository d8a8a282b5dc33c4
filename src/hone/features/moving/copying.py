"""Copy all rows from one end to the other, and compare both."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, TypeVar

from msgspec import Struct

from hone.core.errors import StoreError
from hone.stores.moving.fingerprints import End, Fingerprint, Fingerprints, combine, differing, take
from hone.stores.moving.tables import TABLES, MovedTable, Row

T = TypeVar("T")
STEP = 500
"""Rows after which progress is told."""


class Report(Protocol):
    """Is told what is done, how many rows of it, and how many there are."""

    def __call__(self, what: str, done: int, total: int, /) -> None: ...


class Copied(Struct, frozen=True):
    """What is the same at both ends now. `made` is False if it was so before."""

    fingerprints: Fingerprints
    made: bool

    @property
    def digest(self) -> str:
        return combine(self.fingerprints)

    @property
    def rows(self) -> int:
        return sum(each.count for each in self.fingerprints.values())


def count_rows(end: End) -> Mapping[str, int]:
    return {table.name: end.count(table) for table in TABLES}


def fingerprint(end: End, what: str, report: Report) -> Fingerprints:
    """Read everything once. Raises Corrupt for a content that its own digest contradicts."""
    total = sum(count_rows(end).values())
    return dict(take(_Watched(end, what, total, report)))


def copy(source: End, target: End, known: Fingerprints, report: Report) -> None:
    """Copy all rows. Raises StoreError if the target then holds anything else than the source."""
    total = sum(each.count for each in known.values())
    watched = _Watched(source, "copying", total, report)
    for table in TABLES:
        target.put(table, watched.rows(table, by_use=True))
    target.put_identity(source.read_identity(), source.read_nodes())
    made = fingerprint(target, "comparing", report)
    if wrong := differing(known, made):
        raise StoreError(
            f"The copy is not the same in {', '.join(sorted(wrong))}; nothing was moved. "
            "Please report this with the output of: hone doctor --deep"
        )


class _Watched:
    """An end that tells how many rows were read."""

    def __init__(self, end: End, what: str, total: int, report: Report) -> None:
        self._end, self._what, self._total, self._report = end, what, total, report
        self._done = 0
        self.read_identity = end.read_identity
        self.read_nodes = end.read_nodes

    def rows(self, table: MovedTable, *, by_use: bool = False) -> Iterator[Row]:
        for row in self._end.rows(table, by_use=by_use):
            self._done += 1
            if self._done % STEP == 0:
                self._report(self._what, self._done, self._total)
            yield row
