"""Sums, counts and windows of a large home, by SQLite: what the page reads without loading everything."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from itertools import pairwise
from typing import Any

import apsw

from hone.core.errors import Corrupt
from hone.core.ids import SessionId
from hone.core.ledger import SKILL, ChangeKind
from hone.core.messages import sound
from hone.core.model import Usage
from hone.core.overview import MessageWindow, SkillCount, SkillTouch, SpendingSum, SpentCall
from hone.core.ports import Spending
from hone.core.prefix import Prefix
from hone.core.skill import SkillOrigin
from hone.core.turn import Origin
from hone.stores.database import Store, reads
from hone.stores.sqlite import read_session
from hone.stores.tree import intact, moment, read_former, read_prefix, read_window, stamp

HOUR = 3_600_000_000
"""In microseconds. `spending_hours` has the sums of each hour."""
SUMS = ", ".join(f"coalesce(sum({each}), 0)" for each in ("input", "cached", "written", "output"))
SUMMED = f"SELECT {SUMS}, total(cost), count(*), count(*) - count(cost) FROM spending WHERE session = ?"
CALLS = """
SELECT origin, input, cached, written, output, cost, 1 AS calls, cost IS NULL AS unpriced,
    id AS low, id AS high
FROM spending WHERE at >= ? AND at < ?
"""
PARTS = f"""
SELECT origin, input, cached, written, output, cost, calls, unpriced, low, high
FROM spending_hours WHERE hour >= ? AND hour < ? UNION ALL {CALLS} UNION ALL {CALLS}
"""
SPAN = f"SELECT origin, {SUMS}, total(cost), sum(calls), sum(unpriced) FROM ({PARTS}) GROUP BY origin"
NUMBERS = f"SELECT min(low), max(high) FROM ({PARTS}) WHERE origin = ?"
EXTENT = "SELECT (SELECT min(at) FROM spending), (SELECT max(at) FROM spending)"
COUNTS = "SELECT birth, pinned, archived, count(*) FROM skills GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
ALIKE = "SELECT name FROM skills WHERE birth = ? AND pinned = ? AND archived = ? ORDER BY name"
TOUCHES = """
SELECT target, at, deed, sources,
    actor <> 'curator' AND standing = 'active' AND EXISTS (SELECT 1 FROM deltas WHERE change = id) AS counts
FROM changes WHERE target >= 'skill:' AND target < 'skill;' AND (counts OR deed = 'merge') ORDER BY id
"""
MADE = """
SELECT s.session, s.at, s.model, s.origin, s.input, s.cached, s.written, s.output, s.cost, p.digest,
    t.folder
FROM spending AS s LEFT JOIN sessions AS t ON t.id = s.session
LEFT JOIN chains AS c ON c.id = t.chain LEFT JOIN prefixes AS p ON p.id = c.prefix
WHERE s.at >= ? AND s.at < ? AND s.origin IN (SELECT value FROM json_each(?)) ORDER BY s.id
"""
PROMPTS = "SELECT digest, body FROM prefixes WHERE digest IN (SELECT value FROM json_each(?))"
USES = "SELECT DISTINCT skill, session FROM uses WHERE day >= ? ORDER BY skill, session"
TARGETS = "SELECT id, target FROM changes WHERE id IN (SELECT value FROM json_each(?))"


def _spans(
    connection: apsw.Connection, bounds: Sequence[datetime], origins: Collection[Origin]
) -> Sequence[tuple[SpendingSum, SpendingSum]]:
    found = []
    for since, until in pairwise(stamp(each) for each in bounds):
        sums = {origin: make_sum(row) for origin, *row in connection.execute(SPAN, split(since, until))}
        chosen = [each for origin, each in sums.items() if origin in origins]
        others = [each for origin, each in sums.items() if origin not in origins]
        found.append((add_up(chosen), add_up(others)))
    return tuple(found)


def split(since: int, until: int) -> tuple[int, int, int, int, int, int]:
    """Return the full hours within a span, and the spans before and after them."""
    first, end = -(-since // HOUR), until // HOUR
    if first >= end:
        return 0, 0, since, until, until, until
    return first, end, since, first * HOUR, end * HOUR, until


def make_sum(row: Sequence[Any]) -> SpendingSum:
    with intact(Corrupt("What was spent is damaged. Restore the database from a backup.")):
        input, cached, written, output, cost, calls, unpriced = row
        return SpendingSum(Usage(input, cached, written, output, cost), calls, unpriced)


def add_up(sums: Sequence[SpendingSum]) -> SpendingSum:
    usages = [each.usage for each in sums]
    return SpendingSum(
        Usage(
            sum(each.input for each in usages),
            sum(each.cached for each in usages),
            sum(each.written for each in usages),
            sum(each.output for each in usages),
            sum(each.cost or 0.0 for each in usages),
        ),
        sum(each.calls for each in sums),
        sum(each.unpriced for each in sums),
    )


def _session_sum(connection: apsw.Connection, session: SessionId) -> SpendingSum:
    return make_sum(connection.execute(SUMMED, (sound(session),)).get)


def _extent(connection: apsw.Connection) -> tuple[datetime, datetime] | None:
    first, last = connection.execute(EXTENT).get
    return None if first is None else (moment(first), moment(last))


def _numbers(
    connection: apsw.Connection, bounds: Sequence[datetime], origin: Origin
) -> Sequence[tuple[int, int] | None]:
    spans = pairwise(stamp(each) for each in bounds)
    rows = (connection.execute(NUMBERS, (*split(*span), origin)).get for span in spans)
    return tuple(None if row[0] is None else (int(row[0]), int(row[1])) for row in rows)


def _skill_counts(connection: apsw.Connection) -> Sequence[SkillCount]:
    with intact(Corrupt("The list of skills is damaged. Restore the database from a backup.")):
        return tuple(
            SkillCount(SkillOrigin(birth), bool(pinned), bool(archived), count)
            for birth, pinned, archived, count in connection.execute(COUNTS)
        )


def _skill_names(
    connection: apsw.Connection, origin: SkillOrigin, *, pinned: bool, archived: bool
) -> Sequence[str]:
    return tuple(str(name) for (name,) in connection.execute(ALIKE, (origin, pinned, archived)))


def _skill_touches(connection: apsw.Connection) -> Sequence[SkillTouch]:
    with intact(Corrupt("A change of a skill is damaged. Restore the database from a backup.")):
        return tuple(_touches(connection))


def _touches(connection: apsw.Connection) -> Iterator[SkillTouch]:
    rows: list[Any] = connection.execute(TOUCHES).fetchall()
    for target, at, deed, sources, counts in rows:
        merged = _named(connection, sources) if deed == ChangeKind.MERGE else ()
        yield SkillTouch(target.removeprefix(SKILL), moment(at), merged, bool(counts))


def _named(connection: apsw.Connection, sources: str) -> tuple[str, ...]:
    """Return the skills that these changes were made to."""
    rows = connection.execute(TARGETS, (json.dumps(json.loads(sources)),))
    return tuple(target.removeprefix(SKILL) for _, target in rows if target.startswith(SKILL))


def _calls(
    connection: apsw.Connection,
    since: datetime,
    until: datetime,
    origins: Collection[Origin] = tuple(Origin),
) -> Sequence[SpentCall]:
    chosen = json.dumps(sorted(origins))
    return make_calls(connection.execute(MADE, (stamp(since), stamp(until), chosen)))


def make_calls(rows: Iterable[Sequence[Any]]) -> Sequence[SpentCall]:
    with intact(Corrupt("What was spent is damaged. Restore the database from a backup.")):
        return tuple(
            SpentCall(
                SessionId(session),
                Spending(moment(at), model, Origin(origin), Usage(*used)),
                prefix or "",
                folder or "",
            )
            for session, at, model, origin, *used, prefix, folder in rows
        )


def _prompts(connection: apsw.Connection, digests: Collection[str]) -> Mapping[str, Prefix]:
    return make_prompts(connection.execute(PROMPTS, (json.dumps(sorted(digests)),)))


def make_prompts(rows: Iterable[Sequence[Any]]) -> Mapping[str, Prefix]:
    with intact(Corrupt("A prompt is damaged. Restore the database from a backup.")):
        found = {digest: Prefix.decode(body) for digest, body in rows}
        if any(prefix.digest != digest for digest, prefix in found.items()):
            raise ValueError
        return found


def _skill_uses(connection: apsw.Connection, since: date) -> Sequence[tuple[str, SessionId]]:
    rows = connection.execute(USES, (since.isoformat(),))
    return tuple((str(skill), SessionId(session)) for skill, session in rows)


def _former_lines(connection: apsw.Connection, session: SessionId) -> Sequence[tuple[int, str]]:
    _, head = read_session(connection, session)
    lines: list[tuple[int, str]] = []
    former = read_former(connection, head)
    while former is not None:
        lines.append((former.depth, read_prefix(connection, former.chain, session).model))
        former = read_former(connection, former)
    return tuple(reversed(lines))


def _window(connection: apsw.Connection, session: SessionId, first: int | None, limit: int) -> MessageWindow:
    header, head = read_session(connection, session)
    begin = max(1, head.depth - limit + 1) if first is None else first
    prefix = read_prefix(connection, head.chain, session)
    nodes = read_window(connection, head, begin, begin + limit - 1, prefix.digest, session)
    return MessageWindow(header, prefix.model, prefix.digest, head.depth, begin, nodes)


class SqliteOverview(Store):
    spans = reads(_spans)
    session_sum = reads(_session_sum)
    extent = reads(_extent)
    numbers = reads(_numbers)
    skill_counts = reads(_skill_counts)
    skill_names = reads(_skill_names)
    skill_touches = reads(_skill_touches)
    former_lines = reads(_former_lines)
    window = reads(_window)
    calls = reads(_calls)
    prompts = reads(_prompts)
    skill_uses = reads(_skill_uses)
