"""The index of histories in SQLite. A session's row with 0 messages holds the head it is filled up to."""

from collections.abc import Sequence

import apsw

from hone.core.histories import HistoryNote, KnownHistory
from hone.core.ids import SessionId
from hone.core.messages import sound
from hone.core.turn import Origin
from hone.stores.database import Store, reads, writes

FIND = """
SELECT h.session, h.messages, EXISTS (
    SELECT 1 FROM histories AS m WHERE m.session = h.session AND m.messages = 0 AND m.digest = s.hash
) FROM histories AS h JOIN sessions AS s ON s.id = h.session
WHERE h.digest = ? AND h.messages > 0 ORDER BY s.touched DESC, h.messages DESC
"""
UNFILLED = """
SELECT id, opening FROM sessions AS s WHERE origin = ? AND NOT EXISTS (
    SELECT 1 FROM histories AS m WHERE m.session = s.id AND m.messages = 0 AND m.digest = s.hash
) ORDER BY touched DESC LIMIT ?
"""
IS_HEAD = "SELECT EXISTS (SELECT 1 FROM sessions WHERE id = ? AND hash = ?)"
CLEAR = "DELETE FROM histories WHERE session = ?"
PUT = "INSERT OR REPLACE INTO histories (session, messages, digest) VALUES (?, ?, ?)"
MARK = "UPDATE histories SET digest = ? WHERE session = ? AND messages = 0 AND digest = ? RETURNING session"


def _find(connection: apsw.Connection, digest: str) -> Sequence[KnownHistory]:
    rows = connection.execute(FIND, (digest,))
    return tuple(KnownHistory(SessionId(id), messages, bool(current)) for id, messages, current in rows)


def _unfilled(connection: apsw.Connection, limit: int) -> Sequence[tuple[SessionId, str]]:
    return tuple(connection.execute(UNFILLED, (Origin.USER, limit)))


def _fill(
    connection: apsw.Connection, session: SessionId, head: str, places: Sequence[tuple[str, int]]
) -> None:
    id = sound(session)
    if not connection.execute(IS_HEAD, (id, head)).get:
        return
    connection.execute(CLEAR, (id,))
    connection.executemany(PUT, [(id, 0, head), *((id, messages, digest) for digest, messages in places)])


def _add(connection: apsw.Connection, notes: Sequence[HistoryNote]) -> Sequence[SessionId]:
    left: dict[SessionId, None] = {}
    for note in notes:
        if connection.execute(MARK, (note.head, sound(note.session), note.before)).get:
            connection.execute(PUT, (sound(note.session), note.messages, note.digest))
        else:
            left[note.session] = None
    return tuple(left)


class SqliteHistories(Store):
    find = reads(_find)
    unfilled = reads(_unfilled)
    fill = writes(_fill)
    add = writes(_add)
