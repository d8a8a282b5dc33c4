"""Reviews as durable jobs in PostgreSQL, in the same database as the sessions and the ledger.

The pure functions of `hone.stores.jobs` compute the next state of a job, as for SQLite.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from hone.core.ids import SessionId
from hone.core.jobs import USUAL, Counters, Job, JobId, Needed, PendingLook, State, Topics, find_ripe
from hone.core.ledger import NO_SESSION, Change, Entry
from hone.core.messages import canonical, sound
from hone.core.topics import NAMES
from hone.core.value import replace
from hone.stores import jobs as states
from hone.stores import rules
from hone.stores.postgres import looks
from hone.stores.postgres.database import PostgresStore, Rows, reads, writes, writes_session
from hone.stores.postgres.record import record
from hone.stores.record import reachable
from hone.stores.tree import stamp

FIRST_REST, LONGEST_REST = timedelta(minutes=1), timedelta(hours=1)
"""The wait before another try, doubled each time up to the longest."""
UNBEGUN_REST = timedelta(minutes=10)
COLUMNS = states.COLUMNS
PUT = f"""
INSERT INTO jobs (owner, id, session, tree, messages, topics, created, why, others)
VALUES (%(owner)s, next_job(%(owner)s), %(session)s, %(tree)s, %(messages)s, %(topics)s, %(at)s, %(why)s,
    %(others)s)
RETURNING {COLUMNS}
"""
ALL = f"SELECT {COLUMNS} FROM jobs WHERE owner = %(owner)s"
GET = f"{ALL} AND id = %(id)s"
LATEST = f"{ALL} ORDER BY id DESC LIMIT %(limit)s"
QUEUED = f"{ALL} AND state = '{State.QUEUED}'"
LOCK = "SELECT 1 FROM jobs WHERE owner = %(owner)s AND id = ANY (%(ids)s::bigint[]) ORDER BY id FOR UPDATE"
SAVE = """
UPDATE jobs SET why = %(why)s, state = %(state)s, tries = %(tries)s, review = %(review)s, cached = %(cached)s,
    error = %(error)s, ended = %(ended)s, changes = %(changes)s WHERE owner = %(owner)s AND id = %(id)s
"""
# By the server's clock, as the alarms of all machines are.
REST = """
UPDATE jobs SET due = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + %(rest)s
WHERE owner = %(owner)s AND id = %(id)s
"""
UNREST = "UPDATE jobs SET due = 0 WHERE owner = %(owner)s AND id = %(id)s"
ORPHAN = f"""
UPDATE jobs SET state = '{State.CANCELLED}', error = '{states.DELETED}'
WHERE owner = %(owner)s AND session = %(session)s AND state = '{State.QUEUED}'
"""
SESSION = "SELECT tree, messages FROM sessions WHERE owner = %(owner)s AND id = %(session)s"
COUNTERS = "SELECT topic, count FROM counts WHERE owner = %(owner)s AND tree = %(tree)s AND count <> 0"
RESET = "UPDATE counts SET count = 0 WHERE owner = %(owner)s AND tree = %(tree)s AND topic = ANY (%(topics)s)"
ANY = "SELECT 1 FROM jobs WHERE owner = %(owner)s LIMIT 1"
PASS_ON = """
UPDATE jobs SET session = %(session)s, tree = %(tree)s, messages = %(messages)s, others = %(others)s
WHERE owner = %(owner)s AND id = %(id)s
"""
UNCOUNT = """
DELETE FROM counts WHERE owner = %(owner)s AND tree = %(tree)s
    AND NOT EXISTS (SELECT 1 FROM sessions WHERE owner = %(owner)s AND tree = %(tree)s)
"""
TREE = "SELECT pg_advisory_xact_lock(hashtextextended(%(owner)s || ' ' || %(tree)s, 2))"


def _enqueue(rows: Rows, session: SessionId, messages: int, topics: Topics, why: str, at: datetime) -> Job:
    tree, length = read_session(rows, session)
    states.reach(session, messages, length)
    look = looks.get(rows, session)
    if look and look.messages <= messages and topics >= NAMES:
        looks.drop(rows, session)
    return put(rows, (session, tree, messages), topics, why, stamp(at))


def _begin(rows: Rows, id: JobId, review: SessionId) -> Job:
    return save(rows, states.begun(lock(rows, id), review))


def _fail(rows: Rows, id: JobId, error: str, at: datetime, *, again: bool) -> None:
    job = save(rows, states.failed(lock(rows, id), error, at, again=again))
    if again:
        rows.execute(REST, id=id, rest=find_rest(job.tries) // timedelta(microseconds=1))


def _cancel(rows: Rows, id: JobId, at: datetime) -> None:
    save(rows, states.cancelled(lock(rows, id), at))


def _retry(rows: Rows, id: JobId) -> None:
    job = states.retried(lock(rows, id))
    read_session(rows, job.session)  # it may have been deleted since
    rows.execute(UNREST, id=id)
    save(rows, job)


def find_rest(tries: int) -> timedelta:
    """Return how long workers leave a failed review alone after this many tries. One that did not even begin
    waits for the next day's budget."""
    return min(FIRST_REST * 2 ** min(tries - 1, 10), LONGEST_REST) if tries else UNBEGUN_REST


def _complete(
    rows: Rows,
    id: JobId,
    changes: Sequence[Change],
    contents: Mapping[str, bytes],
    cached: float | None,
    at: datetime,
    covered: Sequence[JobId] = (),
    review: SessionId = NO_SESSION,
) -> Sequence[Entry]:
    job = states.latest(lock(rows, id, *covered), review)
    entries = record(rows, changes, contents, at)
    save(rows, states.completed(job, cached, at, [entry.id for entry in entries]))
    for each in covered:
        save(rows, states.completed_with(get(rows, each), id, at))
    return entries


def _all(rows: Rows, limit: int | None = None) -> tuple[Job, ...]:
    return tuple(states.make_job(row) for row in rows.execute(LATEST, limit=limit))


def _waiting(rows: Rows, session: SessionId | None = None) -> tuple[Job, ...]:
    if session is None:
        found = rows.execute(f"{QUEUED} ORDER BY id")
    else:
        found = rows.execute(f"{QUEUED} AND session = %(session)s ORDER BY id", session=sound(session))
    return tuple(states.make_job(row) for row in found)


def _counters(rows: Rows, session: SessionId) -> Counters:
    tree, _ = read_session(rows, session)
    return dict(rows.pairs(COUNTERS, tree=tree))


def put(
    rows: Rows,
    place: tuple[SessionId, SessionId, int],
    topics: Topics,
    why: str,
    at: int,
    others: Sequence[tuple[SessionId, int]] = (),
) -> Job:
    """Queue a review of the first messages of a session in a tree."""
    session, tree, messages = place
    row = rows.one(
        PUT,
        session=session,
        tree=tree,
        messages=messages,
        topics=canonical(sorted(topics)),
        at=at,
        why=sound(why),
        others=canonical(others),
    )
    return states.make_job(row or ())


def get(rows: Rows, id: JobId) -> Job:
    row = rows.one(GET, id=reachable(id))
    if row is None:
        raise states.absent(id)
    return states.make_job(row)


def lock(rows: Rows, id: JobId, *others: JobId) -> Job:
    """Return the job and lock it: nobody else changes it, or the others, until this transaction ends."""
    rows.execute(LOCK, ids=sorted(map(reachable, (id, *others))))
    return get(rows, id)


def save(rows: Rows, job: Job) -> Job:
    names = ("id", "why", "state", "tries", "review", "cached", "error")
    ended = None if job.ended is None else stamp(job.ended)
    values = {name: getattr(job, name) for name in names}
    rows.execute(SAVE, **values, ended=ended, changes=canonical(job.changes))
    return job


def read_session(rows: Rows, id: SessionId) -> tuple[SessionId, int]:
    """Return its tree, and how many messages it has."""
    row = rows.one(SESSION, session=sound(id))
    if row is None:
        raise rules.missing(id)
    return SessionId(row[0]), int(row[1])


def _promote(rows: Rows, now: datetime, topics: Topics, needed: Needed) -> tuple[Job, ...]:
    groups = _find_ripe(rows, now, needed)
    return tuple(_queue(rows, group, topics, stamp(now)) for group in groups)


def _find_ripe(rows: Rows, now: datetime, needed: Needed) -> list[list[PendingLook]]:
    due = [look for look in looks.select(rows) if look.due <= now]
    return find_ripe(due, first=not rows.one(ANY), needed=needed) if due else []


def _queue(rows: Rows, group: Sequence[PendingLook], topics: Topics, at: int) -> Job:
    """Make one review of these looks."""
    for look in group:
        looks.drop(rows, look.session)
        rows.execute(RESET, tree=look.tree, topics=sorted(topics))
    first, *others = group
    turns = sum(look.turns for look in group)
    why = first.cue or f"{turns} turn{'' if turns == 1 else 's'}"
    beside = [(look.session, look.messages) for look in others]
    return put(rows, (first.session, first.tree, first.messages), topics, why, at, beside)


def queue_pending(rows: Rows, session: SessionId, messages: int, topics: Topics, at: int) -> Job | None:
    """Queue a review of what is to be looked back over in messages that notes will replace."""
    look = looks.get(rows, session) if topics else None
    if look is None:
        return None
    rows.execute(TREE, tree=look.tree)
    return _queue(rows, [replace(look, messages=messages)], topics, at)


def forsake(rows: Rows, session: str, tree: str) -> None:
    """Handle a deleted session: cancel its queued jobs unless they cover other sessions, too. The counters go
    with the last session of a tree."""
    for row in rows.execute(f"{QUEUED} AND session = %(session)s AND others <> '[]'", session=session):
        _pass_on(rows, states.make_job(row))
    rows.execute(ORPHAN, session=session)
    looks.drop(rows, session)
    rows.execute(UNCOUNT, tree=tree)


def _pass_on(rows: Rows, job: Job) -> None:
    """Continue a review with its other conversations."""
    for place, (session, messages) in enumerate(job.others, 1):
        row = rows.one(SESSION, session=session)
        if row is not None:
            rest = canonical(job.others[place:])
            rows.execute(PASS_ON, session=session, tree=row[0], messages=messages, others=rest, id=job.id)
            return


class PostgresJobs(PostgresStore):
    """Reviews in PostgreSQL. The session of a queued job exists."""

    enqueue = writes_session(_enqueue)
    job = reads(get)
    jobs = reads(_all)
    waiting = reads(_waiting)
    begin = writes(_begin)
    complete = writes(_complete)
    fail = writes(_fail)
    cancel = writes(_cancel)
    retry = writes(_retry)
    counters = reads(_counters)
    hasten = writes(looks.hasten)
    looks = reads(looks.select)

    async def promote(self, now: datetime, topics: Topics, needed: Needed = USUAL) -> Sequence[Job]:
        """Promote looks. Most of the time nothing is due; then nobody has to wait for the lock that this
        takes."""
        if not await self._database.read(lambda rows: _find_ripe(rows, now, needed)):
            return ()
        return await self._database.write(lambda rows: _promote(rows, now, topics, needed), alone=True)
