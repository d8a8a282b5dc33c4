"""Jobs and counters in SQLite, each as one piece of work inside whatever transaction it is called in."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import apsw

from hone.core.errors import Corrupt
from hone.core.ids import SessionId
from hone.core.jobs import Count, Counters, Job, JobId, State, Topics
from hone.core.messages import canonical, sound
from hone.core.topics import NAMES
from hone.stores import job_states as stages
from hone.stores import rules
from hone.stores.record import reachable
from hone.stores.tree import SYMPTOMS, NodeRow, moment, stamp

COLUMNS = (
    "id, session, tree, messages, topics, created, why, state, tries, review, cached, error, ended, changes"
)
PUT = f"""
INSERT INTO jobs (session, tree, messages, topics, created, why, state, tries, review, error, changes)
VALUES (?, ?, ?, ?, ?, ?, '{State.QUEUED}', 0, '', '', '[]') RETURNING {COLUMNS}
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
UNCOUNT = "DELETE FROM counts WHERE tree = ?1 AND NOT EXISTS (SELECT 1 FROM sessions WHERE tree = ?1)"


def put(
    connection: apsw.Connection,
    session: SessionId,
    tree: SessionId,
    messages: int,
    topics: Topics,
    why: str,
    at: int,
) -> Job:
    row = (session, tree, messages, canonical(sorted(topics)), at, sound(why))
    return _job(connection.execute(PUT, row).get)


def get(connection: apsw.Connection, id: JobId) -> Job:
    row = connection.execute(GET, (reachable(id),)).fetchone()
    if row is None:
        raise stages.absent(id)
    return _job(row)


def select(connection: apsw.Connection, query: str, *values: int) -> tuple[Job, ...]:
    return tuple(_job(row) for row in connection.execute(query, values))


def save(connection: apsw.Connection, job: Job) -> None:
    ended = None if job.ended is None else stamp(job.ended)
    row = (job.state, job.tries, job.review, job.cached, job.error, ended, canonical(job.changes), job.id)
    connection.execute(SAVE, row)


def session(connection: apsw.Connection, id: SessionId) -> tuple[SessionId, int]:
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
    return put(connection, session, tree, head.depth, due, why(due) if why else "", head.at)


def forsake(connection: apsw.Connection, session: str, tree: str) -> None:
    """A session was deleted: its queued jobs are cancelled, and with the last of a tree the counters go."""
    connection.execute(ORPHAN, (stages.DELETED, session))
    connection.execute(UNCOUNT, (tree,))


def _job(row: Sequence[Any]) -> Job:
    id, session, tree, messages, topics, created, why, *fate = row
    state, tries, review, cached, error, ended, changes = fate
    try:
        due, recorded = frozenset(json.loads(topics)), tuple(json.loads(changes))
        if not due <= NAMES:
            raise ValueError(topics)
        job = Job(id, session, tree, messages, due, moment(created), why, State(state))
        over = None if ended is None else moment(ended)
    except SYMPTOMS as symptom:
        raise Corrupt(
            f"Review {id} is damaged: it is not what was written. Restore the database from a backup."
        ) from symptom
    return replace(job, tries=tries, review=review, cached=cached, error=error, ended=over, changes=recorded)
