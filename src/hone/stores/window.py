"""Limit a search to a time span in SQLite: a condition on contents, and the latest contents of a span."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta

import apsw
from msgspec import Struct

from hone.core.recall import Query
from hone.stores.tree import stamp

FEW, PIECE = 20_000, 200
"""Messages of a time that are listed; of longer times it is asked for contents, so many at once, whether they
are of them."""
ALWAYS = FIRST, LAST = -(2**63), 2**63 - 1
DAY = timedelta(days=1) // timedelta(microseconds=1)

COUNT = f"SELECT count(*) FROM (SELECT 1 FROM nodes WHERE at BETWEEN ? AND ? LIMIT {FEW})"
LISTED = "SELECT content FROM nodes WHERE at BETWEEN ? AND ?"
ASKED = "EXISTS (SELECT 1 FROM nodes WHERE content = passage_words.rowid AND at BETWEEN ? AND ?)"
AMONG = """
SELECT value FROM json_each(?)
WHERE EXISTS (SELECT 1 FROM nodes WHERE content = value AND at BETWEEN ? AND ?)
"""
LATEST = "SELECT content FROM nodes WHERE at BETWEEN ? AND ? ORDER BY at DESC, id DESC LIMIT ?"

Span = tuple[int, int]
"""Two moments in microseconds, both included."""


class Window(Struct, frozen=True):
    """No spans: all of the time. A content is in it if it was said in one of them, at other times or not."""

    spans: tuple[Span, ...] = ()

    def condition(self, connection: apsw.Connection) -> tuple[str, tuple[int, ...]]:
        """To be added to a search in `passage_words`, with its values."""
        if not self.spans:
            return "", ()
        values = tuple(bound for span in self.spans for bound in span)
        if self._few(connection):
            # Without the plus SQLite would search anew for each of them.
            return f" AND +rowid IN ({' UNION ALL '.join([LISTED] * len(self.spans))})", values
        return f" AND ({' OR '.join([ASKED] * len(self.spans))})", values

    def sieve(self, connection: apsw.Connection, contents: Sequence[int], count: int) -> list[int]:
        """The first so many of them that were said then."""
        if not self.spans:
            return list(contents[:count])
        if self._few(connection):
            listed = {id for span in self.spans for (id,) in connection.execute(LISTED, span)}
            return [id for id in contents if id in listed][:count]
        found: list[int] = []
        for start in range(0, len(contents), PIECE):
            if len(found) >= count:
                break
            piece = contents[start : start + PIECE]
            held = {
                id for span in self.spans for (id,) in connection.execute(AMONG, (json.dumps(piece), *span))
            }
            found += [id for id in piece if id in held]
        return found[:count]

    def _few(self, connection: apsw.Connection) -> bool:
        return sum(int(connection.execute(COUNT, span).get) for span in self.spans) < FEW

    def latest(self, connection: apsw.Connection, limit: int) -> list[int]:
        """Contents, the latest said first."""
        found: dict[int, None] = {}
        for span in sorted(self.spans, reverse=True):
            found.update((id, None) for (id,) in connection.execute(LATEST, (*span, limit)))
        return list(found)[:limit]

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
    """Whole days, each once."""
    joined: list[tuple[date, date]] = []
    for first, last in sorted(spans):
        if joined and (first - joined[-1][1]).days <= 1:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    return Window(tuple((_begin(first), _begin(last) + DAY - 1) for first, last in joined))


def _begin(day: date) -> int:
    return stamp(datetime.combine(day, time(), UTC))
