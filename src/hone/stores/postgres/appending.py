"""Append to a session in PostgreSQL with one call, and resolve what a broken connection leaves uncertain."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import psycopg
from msgspec import Struct

from hone.core.errors import Conflict, HoneError, StoreError
from hone.core.ids import SessionId
from hone.core.jobs import Job, Look, TopicCount
from hone.core.messages import Role, canonical, sound
from hone.core.ports import Spending
from hone.core.transcript import Node
from hone.stores import rules
from hone.stores.postgres import jobs, looks, tree
from hone.stores.postgres.database import PostgresDatabase, Rows
from hone.stores.postgres.faults import is_lost
from hone.stores.postgres.text import array
from hone.stores.tree import stamp

APPEND = f"""
SELECT outcome, job FROM append(
    %(owner)s, %(session)s, %(after)s::text, {tree.NODES}, %(opened)s::integer, %(opening)s,
    %(spent_at)s::bigint, %(model)s::text, %(origin)s::text, %(input)s::bigint, %(cached)s::bigint,
    %(written)s::bigint, %(output)s::bigint, %(cost)s::double precision,
    %(topics)s::text[], %(adds)s::bigint[], %(intervals)s::bigint[], %(resets)s::boolean[], %(whys)s::text[],
    %(due)s::bigint, %(cue)s::text, %(turns)s::integer, %(tainted)s::boolean, %(new)s::boolean,
    %(since)s::bigint, %(wider)s::text[], %(name)s
)
"""
STEPS = """
SELECT append_steps(
    %(owner)s, %(sessions)s::text[], %(afters)s::text[], %(digests)s::text[], %(bodies)b::bytea[],
    %(hashes)s::text[], %(trusts)s::smallint[], %(ats)s::bigint[], %(spent_at)s::bigint[],
    %(model)s::text[], %(origin)s::text[], %(input)s::bigint[], %(cached)s::bigint[], %(written)s::bigint[],
    %(output)s::bigint[], %(cost)s::double precision[]
)
"""
HEAD = "SELECT hash FROM sessions WHERE owner = %(owner)s AND id = %(session)s"
QUEUED = """
SELECT id FROM jobs WHERE owner = %(owner)s AND session = %(session)s AND created = %(at)s AND messages =
    (SELECT messages FROM sessions WHERE owner = %(owner)s AND id = %(session)s) ORDER BY id DESC LIMIT 1
"""
STALE = ""
"""Matches no head: the nodes do not even follow each other."""


class Append(Struct, frozen=True):
    session: SessionId
    nodes: Sequence[Node]
    spending: Spending | None
    counts: Sequence[TopicCount]
    look: Look | None

    @property
    def is_plain(self) -> bool:
        """Whether it is one message in the middle of a turn: nothing is counted, and no look is postponed."""
        is_one = len(self.nodes) == 1 and self.nodes[0].message.role is not Role.USER
        return is_one and not self.counts and self.look is None

    def values(self) -> dict[str, Any]:
        opened, opening = rules.opening(node.message for node in self.nodes)
        name = sound(self.session)
        return {
            "session": name,
            "after": self._after(),
            "opened": opened,
            "opening": opening,
            "name": canonical(name),
            **tree.list_nodes(self.nodes),
            **_list_spending(self.spending),
            **_list_counts(self.counts),
            **looks.list_look(self.look),
        }

    def _after(self) -> str | None:
        """Return the head that these nodes follow; None if there are none."""
        if not self.nodes:
            return None
        try:
            rules.follow(self.session, self.nodes[0].parent, self.nodes)
        except Conflict:
            return STALE
        return self.nodes[0].parent


async def append(database: PostgresDatabase, step: Append) -> Job | None:
    if not step.is_plain:
        return await database.call(partial(settle_append, database, step), step.session)
    await database.call_together(step, step.session, partial(append_together, database))
    return None


def append_together(database: PostgresDatabase, steps: Sequence[Append]) -> Sequence[Exception | None]:
    """Append to several sessions with one transaction. If that fails, each is appended separately, so that an
    error stays with the step that causes it."""
    key = steps[0].session
    if len(steps) > 1:
        with suppress(HoneError):
            outcomes = database.call_now(lambda rows: _append_steps(rows, steps), key)
            return [_explain(step, outcome) for step, outcome in zip(steps, outcomes, strict=True)]
    return [_append_alone(database, step, key, doubtful=len(steps) > 1) for step in steps]


def _append_alone(database: PostgresDatabase, step: Append, key: str, *, doubtful: bool) -> Exception | None:
    """Append one step. `doubtful`: it may be stored already, since the result of the previous attempt is
    unknown."""
    work = settle_doubtful if doubtful else settle_append
    try:
        database.call_now(partial(work, database, step), key)
    except Exception as error:  # noqa: BLE001  it is raised where the caller waits
        return error
    return None


def _append_steps(rows: Rows, steps: Sequence[Append]) -> Sequence[str]:
    nodes = [step.nodes[0] for step in steps]
    spending = [_list_spending(step.spending) for step in steps]
    outcomes: Sequence[str] = rows.value(
        STEPS,
        sessions=array(sound(step.session) for step in steps),
        afters=array(node.parent for node in nodes),
        digests=array(node.digest for node in nodes),
        bodies=[node.encoded for node in nodes],
        hashes=array(node.hash for node in nodes),
        trusts=array(int(node.trust) for node in nodes),
        ats=array(stamp(node.at) for node in nodes),
        **{name: array(each[name] for each in spending) for name in spending[0]},
    )
    return outcomes


def settle_doubtful(database: PostgresDatabase, step: Append, rows: Rows) -> Job | None:
    """Append what may have been appended already."""
    try:
        return _settle(rows, step, step.values())
    except psycopg.OperationalError as error:
        if not is_lost(error):
            raise
    return database.reconnected(lambda fresh: _settle(fresh, step, step.values()), step.session)


def settle_append(database: PostgresDatabase, step: Append, rows: Rows) -> Job | None:
    """Append. If the connection breaks, the head tells whether it was done; if not, do it again."""
    values = step.values()
    try:
        return _append(rows, step, values)
    except psycopg.OperationalError as error:
        if not is_lost(error):
            raise
        if not step.nodes:
            raise StoreError(
                f"The connection to {database.where} broke; whether this step was kept is not known."
            ) from error
    return database.reconnected(lambda fresh: _settle(fresh, step, values), step.session)


def _settle(rows: Rows, step: Append, values: dict[str, Any]) -> Job | None:
    """Append again. If the first attempt still runs, this one waits for it and finds a conflict with it."""
    if rows.value(HEAD, session=values["session"]) != step.nodes[-1].hash:
        try:
            return _append(rows, step, values)
        except Conflict:
            if rows.value(HEAD, session=values["session"]) != step.nodes[-1].hash:
                raise
    id = rows.value(QUEUED, session=values["session"], at=stamp(step.nodes[-1].at))
    return jobs.get(rows, id) if id and step.counts else None


def _append(rows: Rows, step: Append, values: dict[str, Any]) -> Job | None:
    outcome, job = rows.one(APPEND, **values) or ("missing", None)
    if error := _explain(step, outcome):
        raise error
    return None if job is None else jobs.get(rows, job)


def _explain(step: Append, outcome: str) -> StoreError | None:
    if outcome == "missing":
        return rules.missing(step.session)
    return rules.gone_on(step.session) if outcome == "conflict" else None


def _list_spending(spending: Spending | None) -> dict[str, Any]:
    names = ("input", "cached", "written", "output", "cost")
    if spending is None:
        return {"spent_at": None, "model": None, "origin": None, **dict.fromkeys(names)}
    usage = {name: getattr(spending.usage, name) for name in names}
    return {
        "spent_at": stamp(spending.at),
        "model": sound(spending.model),
        "origin": spending.origin,
        **usage,
    }


def _list_counts(counts: Sequence[TopicCount]) -> dict[str, str]:
    return {
        "topics": array(each.topic for each in counts),
        "adds": array(each.adds for each in counts),
        "intervals": array(each.interval for each in counts),
        "resets": array(each.resets for each in counts),
        "whys": array(sound(each.why) for each in counts),
    }
