"""Conversations that nobody has looked back over yet, in PostgreSQL. All functions run in the caller's
transaction."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from hone.core.ids import SessionId
from hone.core.jobs import ENOUGH, FOLLOWED, Look, PendingLook
from hone.core.messages import canonical, sound
from hone.core.ports import Header
from hone.stores.looks import make_look
from hone.stores.postgres.database import Rows
from hone.stores.postgres.text import array
from hone.stores.tree import stamp

PUT = """
SELECT put_look(
    %(owner)s, %(session)s, %(tree)s, %(messages)s::integer, %(folder)s, %(due)s::bigint, %(cue)s,
    %(turns)s::integer, %(tainted)s, %(new)s, %(since)s::bigint, %(name)s
)
"""
HASTEN = f"""
UPDATE looks SET due = least(due, %(now)s)
WHERE owner = %(owner)s AND session = %(session)s AND (cue <> '{FOLLOWED}' OR turns >= {ENOUGH})
"""
DROP = "DELETE FROM looks WHERE owner = %(owner)s AND session = %(session)s"
# A look is not updated with every message of a turn, so the session knows its length better.
READ = """
SELECT session, k.tree, coalesce(s.messages, k.messages), k.folder, due, cue, turns, tainted
FROM looks AS k LEFT JOIN sessions AS s ON s.owner = k.owner AND s.id = k.session WHERE k.owner = %(owner)s
"""
ALL = f"{READ} ORDER BY due, session"
ONE = f"{READ} AND session = %(session)s"


def list_look(look: Look | None) -> dict[str, Any]:
    """Return the look as parameters of the functions in the database."""
    if look is None:
        return {**dict.fromkeys(("due", "cue", "turns", "tainted", "new", "since")), "wider": array(())}
    return {
        "due": stamp(look.at),
        "cue": sound(look.cue),
        "turns": look.turns,
        "tainted": look.tainted,
        "new": look.is_new,
        "since": None if look.since is None else stamp(look.since),
        "wider": array(sorted(look.topics)),
    }


def put(rows: Rows, header: Header, tree: SessionId, messages: int, look: Look) -> None:
    """Postpone the look at a session, and merge its reasons."""
    values = list_look(look)
    del values["wider"]
    names = {"session": header.id, "tree": tree, "folder": header.folder, "name": canonical(header.id)}
    rows.execute(PUT, messages=messages, **names, **values)


def drop(rows: Rows, session: str) -> None:
    rows.execute(DROP, session=session)


def select(rows: Rows) -> tuple[PendingLook, ...]:
    """Return all looks, the first that is due first."""
    return tuple(make_look(row) for row in rows.execute(ALL))


def get(rows: Rows, session: SessionId) -> PendingLook | None:
    row = rows.one(ONE, session=session)
    return None if row is None else make_look(row)


def hasten(rows: Rows, sessions: Collection[SessionId], now: datetime) -> None:
    for session in sorted(map(sound, sessions)):
        rows.execute(HASTEN, session=session, now=stamp(now))
