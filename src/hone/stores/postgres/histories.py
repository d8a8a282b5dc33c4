"""The index of histories in PostgreSQL. A session's row with 0 messages holds the head it is filled up to."""

from collections.abc import Sequence

from hone.core.histories import HistoryNote, KnownHistory
from hone.core.ids import SessionId
from hone.core.messages import sound
from hone.core.turn import Origin
from hone.stores.postgres.database import PostgresStore, Rows, reads, writes

DONE = """
EXISTS (SELECT 1 FROM histories AS m
    WHERE m.owner = s.owner AND m.session = s.id AND m.messages = 0 AND m.digest = s.hash)
"""
FIND = f"""
SELECT h.session, h.messages, {DONE}
FROM histories AS h JOIN sessions AS s ON s.owner = h.owner AND s.id = h.session
WHERE h.owner = %(owner)s AND h.digest = %(digest)s AND h.messages > 0
ORDER BY s.touched DESC, h.messages DESC
"""
UNFILLED = f"""
SELECT id, opening FROM sessions AS s WHERE owner = %(owner)s AND origin = %(origin)s AND NOT {DONE}
ORDER BY touched DESC LIMIT %(limit)s
"""
HEAD = """
SELECT 1 FROM sessions WHERE owner = %(owner)s AND id = %(session)s AND hash = %(head)s FOR SHARE
"""
CLEAR = "DELETE FROM histories WHERE owner = %(owner)s AND session = %(session)s"
PUT = """
INSERT INTO histories (owner, session, messages, digest)
VALUES (%(owner)s, %(session)s, %(messages)s, %(digest)s)
ON CONFLICT (owner, session, messages) DO UPDATE SET digest = excluded.digest
"""
MARK = """
UPDATE histories SET digest = %(head)s
WHERE owner = %(owner)s AND session = %(session)s AND messages = 0 AND digest = %(before)s RETURNING 1
"""


def _find(rows: Rows, digest: str) -> Sequence[KnownHistory]:
    found = rows.execute(FIND, digest=sound(digest))
    return tuple(KnownHistory(SessionId(id), messages, current) for id, messages, current in found)


def _unfilled(rows: Rows, limit: int) -> Sequence[tuple[SessionId, str]]:
    return tuple(
        (SessionId(id), words) for id, words in rows.execute(UNFILLED, origin=Origin.USER, limit=limit)
    )


def _fill(rows: Rows, session: SessionId, head: str, places: Sequence[tuple[str, int]]) -> None:
    id = sound(session)
    if rows.one(HEAD, session=id, head=head) is None:
        return
    rows.execute(CLEAR, session=id)
    known = [(head, 0), *places]
    rows.many(PUT, [{"session": id, "messages": messages, "digest": digest} for digest, messages in known])


def _add(rows: Rows, notes: Sequence[HistoryNote]) -> Sequence[SessionId]:
    left: dict[SessionId, None] = {}
    for note in notes:
        if rows.one(MARK, session=sound(note.session), head=note.head, before=note.before):
            rows.execute(PUT, session=sound(note.session), messages=note.messages, digest=note.digest)
        else:
            left[note.session] = None
    return tuple(left)


class PostgresHistories(PostgresStore):
    find = reads(_find)
    unfilled = reads(_unfilled)
    fill = writes(_fill)
    add = writes(_add)
