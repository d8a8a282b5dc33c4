"""Append to a session in PostgreSQL with one call, and settle what a broken connection leaves open."""

from collections.abc import Sequence
from typing import Any

import psycopg
from msgspec import Struct

from hone.core.errors import Conflict, StoreError
from hone.core.ids import SessionId
from hone.core.jobs import Job, Look, TopicCount
from hone.core.messages import canonical, sound
from hone.core.ports import Spending
from hone.core.transcript import Node
from hone.stores import rules
from hone.stores.postgres import jobs, looks, tree
from hone.stores.postgres.database import PostgresDatabase, Rows
from hone.stores.postgres.faults import is_lost
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
HEAD = "SELECT hash FROM sessions WHERE owner = %(owner)s AND id = %(session)s"
QUEUED = """
SELECT id FROM jobs WHERE owner = %(owner)s AND session = %(session)s AND created = %(at)s AND messages =
    (SELECT messages FROM sessions WHERE owner = %(owner)s AND id = %(session)s) ORDER BY id DESC LIMIT 1
"""
STALE = ""
"""No head is this: the nodes do not even follow each other."""


class Append(Struct, frozen=True):
    session: SessionId
    nodes: Sequence[Node]
    spending: Spending | None
    counts: Sequence[TopicCount]
    look: Look | None

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


def settle_append(database: PostgresDatabase, step: Append, rows: Rows) -> Job | None:
    """Append. If the connection breaks, the head tells whether it was done; if not, do it once more."""
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
    """If the first attempt is still under way, this one waits for it and finds a conflict with it."""
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
    if outcome == "missing":
        raise rules.missing(step.session)
    if outcome == "conflict":
        raise rules.gone_on(step.session)
    return None if job is None else jobs.get(rows, job)


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


def _list_counts(counts: Sequence[TopicCount]) -> dict[str, list[Any]]:
    return {
        "topics": [each.topic for each in counts],
        "adds": [each.adds for each in counts],
        "intervals": [each.interval for each in counts],
        "resets": [each.resets for each in counts],
        "whys": [sound(each.why) for each in counts],
    }
