"""Conversations that nobody has looked back over yet. All functions run in the caller's transaction."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import apsw

from hone.core.errors import Corrupt
from hone.core.ids import SessionId
from hone.core.jobs import CUT_OFF, ENOUGH, FOLLOWED, Look, PendingLook
from hone.core.messages import canonical, sound
from hone.core.ports import Header
from hone.stores.tree import intact, moment, stamp

COLUMNS = "session, tree, messages, folder, due, cue, turns, tainted"
PUT = f"""
INSERT INTO looks ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (session) DO UPDATE SET messages = excluded.messages, due = excluded.due,
    turns = turns + excluded.turns, tainted = max(tainted, excluded.tainted),
    cue = CASE WHEN cue IN ('', '{CUT_OFF}') THEN excluded.cue
        WHEN cue = '{FOLLOWED}' AND excluded.cue NOT IN ('', '{CUT_OFF}') THEN excluded.cue ELSE cue END
"""
PUT_OFF = "UPDATE looks SET messages = ?, due = ?, tainted = max(tainted, ?) WHERE session = ?"
HASTEN = f"""
UPDATE looks SET due = min(due, ?) WHERE session = ? AND (cue <> '{FOLLOWED}' OR turns >= {ENOUGH})
"""
# Of the latest ones, since a review that came early is recent.
EARLY = """
SELECT 1 FROM (SELECT session, others, created FROM jobs ORDER BY id DESC LIMIT 64)
WHERE created > ?1 AND (session = ?2 OR instr(others, ?3))
"""
DROP = "DELETE FROM looks WHERE session = ?"
# A look is not updated with every message of a turn, so the session knows its length better.
LENGTH = "coalesce((SELECT s.messages FROM sessions AS s WHERE s.id = looks.session), messages)"
READ = f"SELECT session, tree, {LENGTH}, folder, due, cue, turns, tainted FROM looks"
ALL = f"{READ} ORDER BY due, session"
ONE = f"{READ} WHERE session = ?"
DAMAGED = "What is to be looked back over is damaged. Restore the database from a backup."


def put(connection: apsw.Connection, header: Header, tree: SessionId, messages: int, look: Look) -> None:
    """Postpone the look at a session, and merge its reasons."""
    if not look.is_new:
        connection.execute(PUT_OFF, (messages, stamp(look.at), int(look.tainted), header.id))
        return
    due, tainted = stamp(look.at), int(look.tainted)
    cue = sound(look.cue) or (FOLLOWED if _is_followed(connection, header.id, look) else "")
    row = (header.id, tree, messages, sound(header.folder), due, cue, look.turns, tainted)
    connection.execute(PUT, row)


def _is_followed(connection: apsw.Connection, session: SessionId, look: Look) -> bool:
    """Tell whether a review of the session was queued since the words before these."""
    if look.since is None:
        return False
    row = (stamp(look.since), session, canonical(session))
    return connection.execute(EARLY, row).fetchone() is not None


def drop(connection: apsw.Connection, session: str) -> None:
    connection.execute(DROP, (session,))


def select(connection: apsw.Connection) -> tuple[PendingLook, ...]:
    """Return all looks, the first that is due first."""
    return tuple(make_look(row) for row in connection.execute(ALL))


def get(connection: apsw.Connection, session: SessionId) -> PendingLook | None:
    row = connection.execute(ONE, (session,)).fetchone()
    return None if row is None else make_look(row)


def hasten(connection: apsw.Connection, sessions: Collection[SessionId], now: datetime) -> None:
    for session in sessions:
        connection.execute(HASTEN, (stamp(now), sound(session)))


def make_look(row: Sequence[Any]) -> PendingLook:
    session, tree, messages, folder, due, cue, turns, tainted = row
    with intact(Corrupt(DAMAGED)):
        at = moment(due)
    return PendingLook(SessionId(session), SessionId(tree), messages, folder, at, cue, turns, bool(tainted))
