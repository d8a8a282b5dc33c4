"""Limit a search to spans of time."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta

from msgspec import Struct

from hone.core.recall import Query
from hone.stores.tree import stamp

ALWAYS = FIRST, LAST = -(2**63), 2**63 - 1
DAY = timedelta(days=1) // timedelta(microseconds=1)

Span = tuple[int, int]
"""Two moments in microseconds, both inclusive."""


class Window(Struct, frozen=True):
    """No spans: all of the time. A content is in the window if it was said in one of them, even if also at
    other times."""

    spans: tuple[Span, ...] = ()

    def __and__(self, other: "Window") -> "Window":
        if not self.spans or not other.spans:
            return self if self.spans else other
        pairs = ((max(one[0], two[0]), min(one[1], two[1])) for one in self.spans for two in other.spans)
        return Window(tuple((first, last) for first, last in pairs if first <= last) or ((LAST, FIRST),))


ANY = Window()


def bounds(query: Query) -> Window:
    if query.since is None and query.until is None:
        return ANY
    first = stamp(query.since) if query.since else FIRST
    return Window(((first, stamp(query.until) if query.until else LAST),))


def days(spans: Iterable[tuple[date, date]]) -> Window:
    """Return whole days, each once."""
    joined: list[tuple[date, date]] = []
    for first, last in sorted(spans):
        if joined and (first - joined[-1][1]).days <= 1:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    return Window(tuple((_begin(first), _begin(last) + DAY - 1) for first, last in joined))


def _begin(day: date) -> int:
    return stamp(datetime.combine(day, time(), UTC))
