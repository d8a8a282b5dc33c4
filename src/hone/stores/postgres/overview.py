"""Sums, counts and windows of a large home, by PostgreSQL: what the page reads without reading everything."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, datetime
from itertools import pairwise

from hone.core.errors import Corrupt
from hone.core.ids import SessionId
from hone.core.ledger import SKILL, ChangeKind
from hone.core.messages import sound
from hone.core.overview import MessageWindow, SkillCount, SkillTouch, SpendingSum, SpentCall
from hone.core.prefix import Prefix
from hone.core.skill import SkillOrigin
from hone.core.turn import Origin
from hone.stores.overview import add_up, make_calls, make_prompts, make_sum
from hone.stores.postgres.database import PostgresStore, Rows, reads
from hone.stores.postgres.sessions import read_session
from hone.stores.postgres.tree import read_former, read_prefix, read_window
from hone.stores.tree import intact, moment, stamp

SUMS = ", ".join(f"coalesce(sum({each}), 0)::bigint" for each in ("input", "cached", "written", "output"))
SUMMED = f"""
{SUMS}, coalesce(sum(cost), 0), count(*), count(*) - count(cost) FROM spending WHERE owner = %(owner)s
"""
IN_SESSION = f"SELECT {SUMMED} AND session = %(session)s"
IN_SPAN = f"SELECT origin, {SUMMED} AND at >= %(since)s AND at < %(until)s GROUP BY origin"
NUMBERS = """
SELECT min(id), max(id) FROM spending
WHERE owner = %(owner)s AND at >= %(since)s AND at < %(until)s AND origin = %(origin)s
"""
EXTENT = "SELECT min(at), max(at) FROM spending WHERE owner = %(owner)s"
COUNTS = """
SELECT birth, pinned, archived, count(*) FROM skills WHERE owner = %(owner)s
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""
ALIKE = """
SELECT name FROM skills
WHERE owner = %(owner)s AND birth = %(birth)s AND pinned = %(pinned)s AND archived = %(archived)s
ORDER BY name
"""
TOUCHES = f"""
SELECT target, at, deed, sources, counts FROM (
    SELECT id, target, at, deed, sources, actor <> 'curator' AND standing = 'active' AND EXISTS (
        SELECT 1 FROM deltas AS d WHERE d.owner = c.owner AND d.change = c.id
    ) AS counts
    FROM changes AS c WHERE owner = %(owner)s AND target ^@ '{SKILL}'
) AS known WHERE counts OR deed = '{ChangeKind.MERGE}' ORDER BY id
"""
MADE = """
SELECT s.session, s.at, s.model, s.origin, s.input, s.cached, s.written, s.output, s.cost, c.prefix,
    t.folder
FROM spending AS s LEFT JOIN sessions AS t ON t.owner = s.owner AND t.id = s.session
LEFT JOIN chains AS c ON c.owner = t.owner AND c.id = t.chain
WHERE s.owner = %(owner)s AND s.at >= %(since)s AND s.at < %(until)s AND s.origin = ANY (%(origins)s)
ORDER BY s.id
"""
PROMPTS = "SELECT digest, body FROM prefixes WHERE owner = %(owner)s AND digest = ANY (%(digests)s)"
USES = """
SELECT DISTINCT skill, session FROM uses WHERE owner = %(owner)s AND day >= %(since)s ORDER BY skill, session
"""
TARGETS = "SELECT target FROM changes WHERE owner = %(owner)s AND id = ANY (%(ids)s::bigint[]) ORDER BY id"


def _spans(
    rows: Rows, bounds: Sequence[datetime], origins: Collection[Origin]
) -> Sequence[tuple[SpendingSum, SpendingSum]]:
    found = []
    for since, until in pairwise(stamp(each) for each in bounds):
        sums = {name: make_sum(row) for name, *row in rows.execute(IN_SPAN, since=since, until=until)}
        chosen = [each for origin, each in sums.items() if origin in origins]
        others = [each for origin, each in sums.items() if origin not in origins]
        found.append((add_up(chosen), add_up(others)))
    return tuple(found)


def _session_sum(rows: Rows, session: SessionId) -> SpendingSum:
    return make_sum(rows.one(IN_SESSION, session=sound(session)) or ())


def _extent(rows: Rows) -> tuple[datetime, datetime] | None:
    first, last = rows.one(EXTENT) or (None, None)
    return None if first is None else (moment(first), moment(last))


def _numbers(rows: Rows, bounds: Sequence[datetime], origin: Origin) -> Sequence[tuple[int, int] | None]:
    found = []
    for since, until in pairwise(stamp(each) for each in bounds):
        low, high = rows.one(NUMBERS, since=since, until=until, origin=origin) or (None, None)
        found.append(None if low is None else (int(low), int(high)))
    return tuple(found)


def _skill_counts(rows: Rows) -> Sequence[SkillCount]:
    with intact(Corrupt("The list of skills is damaged. Restore the database from a backup.")):
        return tuple(
            SkillCount(SkillOrigin(birth), pinned, archived, count)
            for birth, pinned, archived, count in rows.execute(COUNTS)
        )


def _skill_names(rows: Rows, origin: SkillOrigin, *, pinned: bool, archived: bool) -> Sequence[str]:
    found = rows.execute(ALIKE, birth=origin, pinned=pinned, archived=archived)
    return tuple(str(name) for (name,) in found)


def _skill_touches(rows: Rows) -> Sequence[SkillTouch]:
    with intact(Corrupt("A change of a skill is damaged. Restore the database from a backup.")):
        return tuple(_touches(rows))


def _touches(rows: Rows) -> Iterator[SkillTouch]:
    for target, at, deed, sources, counts in rows.execute(TOUCHES):
        merged = _named(rows, sources) if deed == ChangeKind.MERGE else ()
        yield SkillTouch(target.removeprefix(SKILL), moment(at), merged, counts)


def _named(rows: Rows, sources: str) -> tuple[str, ...]:
    """Return the skills that these changes were made to."""
    targets = [target for (target,) in rows.execute(TARGETS, ids=json.loads(sources))]
    return tuple(target.removeprefix(SKILL) for target in targets if target.startswith(SKILL))


def _calls(
    rows: Rows, since: datetime, until: datetime, origins: Collection[Origin] = tuple(Origin)
) -> Sequence[SpentCall]:
    chosen = sorted(origins)
    return make_calls(rows.execute(MADE, since=stamp(since), until=stamp(until), origins=chosen))


def _prompts(rows: Rows, digests: Collection[str]) -> Mapping[str, Prefix]:
    return make_prompts(rows.execute(PROMPTS, digests=sorted(digests)))


def _skill_uses(rows: Rows, since: date) -> Sequence[tuple[str, SessionId]]:
    found = rows.execute(USES, since=since.isoformat())
    return tuple((str(skill), SessionId(session)) for skill, session in found)


def _former_lines(rows: Rows, session: SessionId) -> Sequence[tuple[int, str]]:
    _, head = read_session(rows, session)
    lines: list[tuple[int, str]] = []
    former = read_former(rows, head)
    while former is not None:
        lines.append((former.depth, read_prefix(rows, former.chain, session).model))
        former = read_former(rows, former)
    return tuple(reversed(lines))


def _window(rows: Rows, session: SessionId, first: int | None, limit: int) -> MessageWindow:
    header, head = read_session(rows, session)
    begin = max(1, head.depth - limit + 1) if first is None else first
    prefix = read_prefix(rows, head.chain, session)
    nodes = read_window(rows, head, (begin, begin + limit - 1), prefix.digest, session)
    return MessageWindow(header, prefix.model, prefix.digest, head.depth, begin, nodes)


class PostgresOverview(PostgresStore):
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
