"""Copy all rows from one end to the other, and compare both."""

from collections.abc import Iterator, Mapping

from hone.core.errors import StoreError
from hone.stores.moving.fingerprints import Fingerprints, MoveEnd, differing, take
from hone.stores.moving.sqlite import MoveProgress
from hone.stores.moving.tables import TABLES, MovedTable, Row

STEP = 500
"""Rows between two progress reports."""


def count_rows(end: MoveEnd) -> Mapping[str, int]:
    return {table.name: end.count(table) for table in TABLES}


def fingerprint(end: MoveEnd, what: str, report: MoveProgress) -> Fingerprints:
    """Read everything once. Raises Corrupt for a content that does not match its digest."""
    tick = _Progress(what, sum(count_rows(end).values()), report)
    return dict(take(end, tick.watch))


def copy(source: MoveEnd, target: MoveEnd, known: Fingerprints, report: MoveProgress) -> None:
    """Copy all rows. Raises StoreError unless the target then equals the source."""
    progress = _Progress("copying", sum(each.count for each in known.values()), report)
    for table in TABLES:
        target.put(table, progress.watch(table, source.rows(table, by_use=True)))
    target.put_identity(source.read_identity(), source.read_nodes())
    if wrong := differing(known, fingerprint(target, "comparing", report)):
        raise StoreError(
            f"The copy is not the same in {', '.join(sorted(wrong))}; nothing was moved. "
            "Please report this with the output of: hone doctor --deep"
        )


class _Progress:
    """Counts the rows that pass."""

    def __init__(self, what: str, total: int, report: MoveProgress) -> None:
        self._what, self._total, self._report = what, total, report
        self._done = 0

    def watch(self, table: MovedTable, rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            self._done += 1
            if self._done % STEP == 0:
                self._report(f"{self._what} {table.name}", self._done, self._total)
            yield row
