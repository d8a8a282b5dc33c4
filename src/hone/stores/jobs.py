"""Reviews as durable jobs in SQLite, in the same database as the sessions and the ledger.

Pure functions compute the next state of a job. The functions that read or write rows run inside the caller's
transaction.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import apsw

from hone.core.errors import Conflict, Corrupt, Missing, Refused
from hone.core.ids import SessionId
from hone.core.jobs import Count, Counters, Job, JobId, Look, PendingLook, State, Topics
from hone.core.ledger import Change, ChangeId, Entry
from hone.core.messages import canonical, sound
from hone.core.ports import Header
from hone.core.topics import NAMES
from hone.core.value import replace
from hone.stores import rules
from hone.stores.database import Store, reads, writes
from hone.stores.record import reachable, record
from hone.stores.tree import NodeRow, intact, moment, stamp

DELETED = "its session was deleted"
COLUMNS = (
    "id, session, tree, messages, topics, created, why, state, tries, review, cached, error, ended, changes, "
    "others"
)
PUT = f"""
INSERT INTO jobs (session, tree, messages, topics, created, why, others, state, tries, review, error, changes)
VALUES (?, ?, ?, ?, ?, ?, ?, '{State.QUEUED}', 0, '', '', '[]') RETURNING {COLUMNS}
"""
GET = f"SELECT {COLUMNS} FROM jobs WHERE id = ?"
ALL = f"SELECT {COLUMNS} FROM jobs ORDER BY id DESC LIMIT ?"
QUEUED = f"SELECT {COLUMNS} FROM jobs WHERE state = '{State.QUEUED}' ORDER BY id"
SAVE = """
UPDATE jobs SET state = ?, tries = ?, review = ?, cached = ?, error = ?, ended = ?, changes = ? WHERE id = ?
"""
ORPHAN = f"""
UPDATE jobs SET state = '{State.CANCELLED}', error = ? WHERE session = ? AND state = '{State.QUEUED}'
"""
SESSION = "SELECT tree, messages FROM sessions WHERE id = ?"
COUNTERS = "SELECT topic, count FROM counts WHERE tree = ? AND count <> 0"
COUNT = "INSERT OR REPLACE INTO counts (tree, topic, count) VALUES (?, ?, ?)"
LOOK = """
INSERT INTO looks (tree, session, messages, folder, due, cue, turns) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tree) DO UPDATE SET session = excluded.session, messages = excluded.messages,
    folder = excluded.folder, due = excluded.due, turns = turns + excluded.turns,
    cue = CASE cue WHEN '' THEN excluded.cue ELSE cue END
"""
LOOKED = "DELETE FROM looks WHERE tree = ?"
LOOKS = "SELECT session, tree, messages, folder, due, cue, turns FROM looks ORDER BY due, tree"
HASTEN = "UPDATE looks SET due = min(due, ?) WHERE tree = ?"
ANY = "SELECT 1 FROM jobs LIMIT 1"
UNCOUNT = "DELETE FROM counts WHERE tree = ?1 AND NOT EXISTS (SELECT 1 FROM sessions WHERE tree = ?1)"


def _enqueue(
    connection: apsw.Connection, session: SessionId, messages: int, topics: Topics, why: str, at: datetime
) -> Job:
    tree, length = read_session(connection, session)
    reach(session, messages, length)
    return put(connection, session, tree, messages, topics, why, stamp(at))


def _begin(connection: apsw.Connection, id: JobId, review: SessionId) -> Job:
    job = begun(get(connection, id), review)
    save(connection, job)
    return job


def _fail(connection: apsw.Connection, id: JobId, error: str, at: datetime, *, again: bool) -> None:
    save(connection, failed(get(connection, id), error, at, again=again))


def _cancel(connection: apsw.Connection, id: JobId, at: datetime) -> None:
    save(connection, cancelled(get(connection, id), at))


def _all(connection: apsw.Connection, limit: int | None = None) -> tuple[Job, ...]:
    return select(connection, ALL, -1 if limit is None else limit)


def _waiting(connection: apsw.Connection) -> tuple[Job, ...]:
    return select(connection, QUEUED)


def _retry(connection: apsw.Connection, id: JobId) -> None:
    job = retried(get(connection, id))
    read_session(connection, job.session)  # it may have been deleted since
    save(connection, job)


def _complete(
    connection: apsw.Connection,
    id: JobId,
    changes: Sequence[Change],
    contents: Mapping[str, bytes],
    cached: float | None,
    at: datetime,
) -> Sequence[Entry]:
    job = queued(get(connection, id))
    entries = record(connection, changes, contents, at)
    save(connection, completed(job, cached, at, [entry.id for entry in entries]))
    return entries


def _counters(connection: apsw.Connection, session: SessionId) -> Counters:
    tree, _ = read_session(connection, session)
    return counters(connection, tree)


def put(
    connection: apsw.Connection,
    session: SessionId,
    tree: SessionId,
    messages: int,
    topics: Topics,
    why: str,
    at: int,
    others: Sequence[tuple[SessionId, int]] = (),
) -> Job:
    row = (session, tree, messages, canonical(sorted(topics)), at, sound(why), canonical(others))
    return _job(connection.execute(PUT, row).get)


def get(connection: apsw.Connection, id: JobId) -> Job:
    row = connection.execute(GET, (reachable(id),)).fetchone()
    if row is None:
        raise absent(id)
    return _job(row)


def select(connection: apsw.Connection, query: str, *values: int) -> tuple[Job, ...]:
    return tuple(_job(row) for row in connection.execute(query, values))


def save(connection: apsw.Connection, job: Job) -> None:
    ended = None if job.ended is None else stamp(job.ended)
    row = (job.state, job.tries, job.review, job.cached, job.error, ended, canonical(job.changes), job.id)
    connection.execute(SAVE, row)


def read_session(connection: apsw.Connection, id: SessionId) -> tuple[SessionId, int]:
    """Its tree, and how many messages it has."""
    row = connection.execute(SESSION, (sound(id),)).fetchone()
    if row is None:
        raise rules.missing(id)
    return SessionId(row[0]), int(row[1])


def counters(connection: apsw.Connection, tree: SessionId) -> Counters:
    rows: list[Any] = connection.execute(COUNTERS, (tree,)).fetchall()
    return dict(rows)


def count(
    connection: apsw.Connection,
    session: SessionId,
    tree: SessionId,
    head: NodeRow,
    count: Count,
    why: Callable[[Topics], str] | None,
) -> Job | None:
    """Puts the counters forward; queues a review of all messages up to the head if one is due."""
    before = counters(connection, tree)
    after, due = count(before)
    for topic, number in {**dict.fromkeys(before, 0), **after}.items():
        if number != before.get(topic, 0):
            connection.execute(COUNT, (tree, topic, number))
    if not due:
        return None
    connection.execute(LOOKED, (tree,))
    return put(connection, session, tree, head.depth, due, why(due) if why else "", head.at)


def put_look(connection: apsw.Connection, header: Header, tree: SessionId, messages: int, look: Look) -> None:
    """Puts off the look at a tree, and adds what makes it worth one."""
    row = (tree, header.id, messages, sound(header.folder), stamp(look.at), sound(look.cue), look.turns)
    connection.execute(LOOK, row)


def _looks(connection: apsw.Connection) -> tuple[PendingLook, ...]:
    return tuple(_pending(row) for row in connection.execute(LOOKS))


def _pending(row: Sequence[Any]) -> PendingLook:
    session, tree, messages, folder, due, cue, turns = row
    return PendingLook(SessionId(session), SessionId(tree), messages, folder, moment(due), cue, turns)


def _hasten(connection: apsw.Connection, session: SessionId, now: datetime) -> None:
    tree, _ = read_session(connection, session)
    connection.execute(HASTEN, (stamp(now), tree))


def _promote(connection: apsw.Connection, now: datetime, topics: Topics, enough: int) -> tuple[Job, ...]:
    if not connection.execute(ANY).fetchone():
        enough = 1
    found = []
    for group in ripe([look for look in _looks(connection) if look.due <= now], enough):
        for look in group:
            connection.execute(LOOKED, (look.tree,))
        first, *rest = group
        others = [(look.session, look.messages) for look in rest]
        why = first.cue or f"{sum(look.turns for look in group)} turns"
        found.append(
            put(connection, first.session, first.tree, first.messages, topics, why, stamp(now), others)
        )
    return tuple(found)


def ripe(due: Sequence[PendingLook], enough: int) -> list[list[PendingLook]]:
    """Return the looks that become reviews: alone with a cue or enough turns, or together by folder."""
    alone = [[look] for look in due if look.cue or look.turns >= enough]
    folders: dict[str, list[PendingLook]] = {}
    for look in due:
        if not look.cue and look.turns < enough:
            folders.setdefault(look.folder, []).append(look)
    together = [group for group in folders.values() if sum(look.turns for look in group) >= enough]
    return [*alone, *together]


def forsake(connection: apsw.Connection, session: str, tree: str) -> None:
    """A session was deleted: its queued jobs are cancelled, and with the last of a tree the counters go."""
    connection.execute(ORPHAN, (DELETED, session))
    connection.execute("DELETE FROM looks WHERE session = ?", (session,))
    connection.execute(UNCOUNT, (tree,))


def _job(row: Sequence[Any]) -> Job:
    id, session, tree, messages, topics, created, why, *fate = row
    state, tries, review, cached, error, ended, changes, others = fate
    damage = f"Review {id} is damaged: it is not what was written. Restore the database from a backup."
    with intact(Corrupt(damage)):
        due, recorded = frozenset(json.loads(topics)), tuple(json.loads(changes))
        beside = tuple((SessionId(id), int(count)) for id, count in json.loads(others))
        if not due <= NAMES:
            raise ValueError(topics)
        job = Job(id, session, tree, messages, due, moment(created), why, State(state))
        over = None if ended is None else moment(ended)
    return replace(
        job,
        tries=tries,
        review=review,
        cached=cached,
        error=error,
        ended=over,
        changes=recorded,
        others=beside,
    )


def queued(job: Job) -> Job:
    """The job itself. Raises Conflict unless it is queued."""
    if job.state is not State.QUEUED:
        raise Conflict(f"Review {job.id} is {job.state} by now; nothing was changed.")
    return job


def begun(job: Job, review: SessionId) -> Job:
    return replace(queued(job), tries=job.tries + 1, review=SessionId(sound(review)))


def completed(job: Job, cached: float | None, at: datetime, changes: Sequence[ChangeId]) -> Job:
    return replace(queued(job), state=State.DONE, cached=cached, error="", ended=at, changes=tuple(changes))


def failed(job: Job, error: str, at: datetime, *, again: bool) -> Job:
    queued(job)
    if again:
        return replace(job, error=sound(error))
    return replace(job, state=State.FAILED, error=sound(error), ended=at)


def cancelled(job: Job, at: datetime) -> Job:
    return replace(queued(job), state=State.CANCELLED, ended=at)


def retried(job: Job) -> Job:
    """It has all its tries before it again."""
    if job.state not in (State.FAILED, State.CANCELLED):
        raise Conflict(
            f"Review {job.id} is {job.state}; only one that failed or was cancelled can be retried."
        )
    return replace(job, state=State.QUEUED, tries=0, error="", ended=None)


def reach(session: SessionId, messages: int, length: int) -> None:
    """Raises Refused unless a session of this length has so many messages to look at."""
    if not 1 <= messages <= length:
        raise Refused(f"Session {session} has {length} messages, so {messages} cannot be reviewed.")


def absent(id: JobId) -> Missing:
    return Missing(f"There is no review {id}.")


class SqliteJobs(Store):
    """The session of a queued job is there."""

    enqueue = writes(_enqueue)
    job = reads(get)
    jobs = reads(_all)
    waiting = reads(_waiting)
    begin = writes(_begin)
    complete = writes(_complete)
    fail = writes(_fail)
    cancel = writes(_cancel)
    retry = writes(_retry)
    counters = reads(_counters)
    looks = reads(_looks)
    hasten = writes(_hasten)
    promote = writes(_promote)
