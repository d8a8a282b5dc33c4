"""Reviews as durable jobs in SQLite, in the same database as the sessions and the ledger.

Pure functions compute the next state of a job. The functions that read or write rows run inside the caller's
transaction.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import apsw

from hone.core.errors import Conflict, Corrupt, Missing, Refused
from hone.core.ids import SessionId
from hone.core.jobs import (
    USUAL,
    Counters,
    Job,
    JobId,
    Needed,
    PendingLook,
    State,
    TopicCount,
    Topics,
    count_topics,
    find_ripe,
)
from hone.core.ledger import NO_SESSION, Change, ChangeId, Entry
from hone.core.messages import canonical, sound
from hone.core.ports import Header
from hone.core.topics import NAMES
from hone.core.value import replace
from hone.stores import looks, rules
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
QUEUED_IN = QUEUED.replace("ORDER BY", "AND session = ? ORDER BY")
SAVE = """
UPDATE jobs SET why = ?, state = ?, tries = ?, review = ?, cached = ?, error = ?, ended = ?, changes = ?
WHERE id = ?
"""
ORPHAN = f"""
UPDATE jobs SET state = '{State.CANCELLED}', error = ? WHERE session = ? AND state = '{State.QUEUED}'
"""
SESSION = "SELECT tree, messages FROM sessions WHERE id = ?"
COUNTERS = "SELECT topic, count FROM counts WHERE tree = ? AND count <> 0"
COUNT = "INSERT OR REPLACE INTO counts (tree, topic, count) VALUES (?, ?, ?)"
ANY = "SELECT 1 FROM jobs LIMIT 1"
SHARED = f"{GET.partition(' WHERE ')[0]} WHERE session = ? AND state = '{State.QUEUED}' AND others <> '[]'"
PASS_ON = "UPDATE jobs SET session = ?, tree = ?, messages = ?, others = ? WHERE id = ?"
UNCOUNT = "DELETE FROM counts WHERE tree = ?1 AND NOT EXISTS (SELECT 1 FROM sessions WHERE tree = ?1)"


def _enqueue(
    connection: apsw.Connection, session: SessionId, messages: int, topics: Topics, why: str, at: datetime
) -> Job:
    tree, length = read_session(connection, session)
    reach(session, messages, length)
    look = looks.get(connection, session)
    if look and look.messages <= messages and topics >= NAMES:
        looks.drop(connection, session)
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


def _waiting(connection: apsw.Connection, session: SessionId | None = None) -> tuple[Job, ...]:
    return select(connection, QUEUED) if session is None else select(connection, QUEUED_IN, sound(session))


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
    covered: Sequence[JobId] = (),
    review: SessionId = NO_SESSION,
) -> Sequence[Entry]:
    job = latest(get(connection, id), review)
    entries = record(connection, changes, contents, at)
    save(connection, completed(job, cached, at, [entry.id for entry in entries]))
    for other in (get(connection, each) for each in covered):
        save(connection, completed_with(other, id, at))
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
    return make_job(connection.execute(PUT, row).get)


def get(connection: apsw.Connection, id: JobId) -> Job:
    row = connection.execute(GET, (reachable(id),)).fetchone()
    if row is None:
        raise absent(id)
    return make_job(row)


def select(connection: apsw.Connection, query: str, *values: int | str) -> tuple[Job, ...]:
    return tuple(make_job(row) for row in connection.execute(query, values))


def save(connection: apsw.Connection, job: Job) -> None:
    ended = None if job.ended is None else stamp(job.ended)
    row = (
        job.why,
        job.state,
        job.tries,
        job.review,
        job.cached,
        job.error,
        ended,
        canonical(job.changes),
        job.id,
    )
    connection.execute(SAVE, row)


def read_session(connection: apsw.Connection, id: SessionId) -> tuple[SessionId, int]:
    """Return its tree, and how many messages it has."""
    row = connection.execute(SESSION, (sound(id),)).fetchone()
    if row is None:
        raise rules.missing(id)
    return SessionId(row[0]), int(row[1])


def counters(connection: apsw.Connection, tree: SessionId) -> Counters:
    rows: list[Any] = connection.execute(COUNTERS, (tree,)).fetchall()
    return dict(rows)


def count(
    connection: apsw.Connection,
    header: Header,
    tree: SessionId,
    head: NodeRow,
    counts: Sequence[TopicCount],
    wider: Topics = frozenset(),
) -> Job | None:
    """Advance the counters. Queue a review of all messages up to the head if one is due. It reads them
    anyway, so it covers the `wider` topics, too."""
    before = counters(connection, tree)
    after, due, why = count_topics(before, counts)
    topics = due | wider if due else due
    for topic, number in {**dict.fromkeys(before, 0), **after, **dict.fromkeys(topics - due, 0)}.items():
        if number != before.get(topic, 0):
            connection.execute(COUNT, (tree, topic, number))
    if not due:
        return None
    looks.drop(connection, header.id)
    return put(connection, header.id, tree, head.depth, topics, why, head.at)


def _promote(
    connection: apsw.Connection, now: datetime, topics: Topics, needed: Needed = USUAL
) -> tuple[Job, ...]:
    due = [look for look in looks.select(connection) if look.due <= now]
    groups = find_ripe(due, first=not connection.execute(ANY).fetchone(), needed=needed)
    return tuple(_queue(connection, group, topics, stamp(now)) for group in groups)


def _queue(connection: apsw.Connection, group: Sequence[PendingLook], topics: Topics, at: int) -> Job:
    """Make one review of these looks."""
    for look in group:
        looks.drop(connection, look.session)
        connection.executemany(COUNT, [(look.tree, topic, 0) for topic in sorted(topics)])
    first, *others = group
    turns = sum(look.turns for look in group)
    why = first.cue or f"{turns} turn{'' if turns == 1 else 's'}"
    beside = [(look.session, look.messages) for look in others]
    return put(connection, first.session, first.tree, first.messages, topics, why, at, beside)


def queue_pending(
    connection: apsw.Connection, session: SessionId, messages: int, topics: Topics, at: int
) -> Job | None:
    """Queue a review of what is to be looked back over in messages that notes will replace."""
    look = looks.get(connection, session) if topics else None
    return _queue(connection, [replace(look, messages=messages)], topics, at) if look else None


def forsake(connection: apsw.Connection, session: str, tree: str) -> None:
    """Handle a deleted session: cancel its queued jobs unless they cover other sessions, too. The counters go
    with the last session of a tree."""
    for job in select(connection, SHARED, session):
        _pass_on(connection, job)
    connection.execute(ORPHAN, (DELETED, session))
    looks.drop(connection, session)
    connection.execute(UNCOUNT, (tree,))


def _pass_on(connection: apsw.Connection, job: Job) -> None:
    """Continue a review with its other conversations."""
    for place, (session, messages) in enumerate(job.others, 1):
        row = connection.execute(SESSION, (session,)).fetchone()
        if row is not None:
            rest = canonical(job.others[place:])
            connection.execute(PASS_ON, (session, row[0], messages, rest, job.id))
            return


def make_job(row: Sequence[Any]) -> Job:
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
    """Return the job. Raises Conflict unless it is queued."""
    if job.state is not State.QUEUED:
        raise Conflict(f"Review {job.id} is {job.state} by now; nothing was changed.")
    return job


def latest(job: Job, review: SessionId) -> Job:
    """Return the job. Raises Conflict unless it is queued and, if a session is named, was last begun there: a
    suspended process may come back when another one is working on it."""
    if review != NO_SESSION and queued(job).review != sound(review):
        raise Conflict(f"Review {job.id} was begun anew by another process; nothing was changed.")
    return queued(job)


def begun(job: Job, review: SessionId) -> Job:
    return replace(queued(job), tries=job.tries + 1, review=SessionId(sound(review)))


def completed(job: Job, cached: float | None, at: datetime, changes: Sequence[ChangeId]) -> Job:
    return replace(queued(job), state=State.DONE, cached=cached, error="", ended=at, changes=tuple(changes))


def completed_with(job: Job, other: JobId, at: datetime) -> Job:
    """Complete a job that another review has covered. One that is no longer queued stays as it is."""
    if job.state is not State.QUEUED:
        return job
    return replace(completed(job, None, at, ()), why=f"{job.why}, read in review {other}")


def failed(job: Job, error: str, at: datetime, *, again: bool) -> Job:
    queued(job)
    if again:
        return replace(job, error=sound(error))
    return replace(job, state=State.FAILED, error=sound(error), ended=at)


def cancelled(job: Job, at: datetime) -> Job:
    return replace(queued(job), state=State.CANCELLED, ended=at)


def retried(job: Job) -> Job:
    """Return the job with all its tries again."""
    if job.state not in (State.FAILED, State.CANCELLED):
        raise Conflict(
            f"Review {job.id} is {job.state}; only one that failed or was cancelled can be retried."
        )
    return replace(job, state=State.QUEUED, tries=0, error="", ended=None)


def reach(session: SessionId, messages: int, length: int) -> None:
    """Raise Refused unless a session of this length has that many messages."""
    if not 1 <= messages <= length:
        raise Refused(f"Session {session} has {length} messages, so {messages} cannot be reviewed.")


def absent(id: JobId) -> Missing:
    return Missing(f"There is no review {id}.")


class SqliteJobs(Store):
    """Reviews in SQLite. The session of a queued job exists."""

    enqueue = writes(_enqueue, lasting=True)
    job = reads(get)
    jobs = reads(_all)
    waiting = reads(_waiting)
    begin = writes(_begin, lasting=True)
    complete = writes(_complete, lasting=True)
    fail = writes(_fail, lasting=True)
    cancel = writes(_cancel, lasting=True)
    retry = writes(_retry, lasting=True)
    counters = reads(_counters)
    hasten = writes(looks.hasten)
    looks = reads(looks.select)
    promote = writes(_promote)
