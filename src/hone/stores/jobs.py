"""Reviews as durable jobs in SQLite, beside the sessions they look at and the ledger they write to."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial

import apsw

from hone.core.ids import SessionId
from hone.core.jobs import Counters, Job, JobId, Topics
from hone.core.ledger import Change, Entry
from hone.stores import job_states as stages
from hone.stores import queue
from hone.stores.database import Database
from hone.stores.record import record
from hone.stores.tree import stamp


class SqliteJobs:
    """The database belongs to whoever opened it. The session of a queued job is there."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def enqueue(self, session: SessionId, messages: int, topics: Topics, why: str, at: datetime) -> Job:
        work = partial(_enqueue, session=session, messages=messages, topics=topics, why=why, at=stamp(at))
        return await self._database.write(work)

    async def job(self, id: JobId) -> Job:
        return await self._database.read(partial(queue.get, id=id))

    async def jobs(self, limit: int | None = None) -> Sequence[Job]:
        most = -1 if limit is None else limit
        return await self._database.read(lambda connection: queue.select(connection, queue.ALL, most))

    async def waiting(self) -> Sequence[Job]:
        return await self._database.read(lambda connection: queue.select(connection, queue.QUEUED))

    async def begin(self, id: JobId, review: SessionId) -> Job:
        return await self._step(id, partial(stages.begun, review=review))

    async def complete(
        self,
        id: JobId,
        changes: Sequence[Change],
        contents: Mapping[str, bytes],
        cached: float | None,
        at: datetime,
    ) -> Sequence[Entry]:
        work = partial(
            _complete, id=id, changes=tuple(changes), contents=dict(contents), cached=cached, at=at
        )
        return await self._database.write(work)

    async def fail(self, id: JobId, error: str, at: datetime, *, again: bool) -> None:
        await self._step(id, partial(stages.failed, error=error, at=at, again=again))

    async def cancel(self, id: JobId, at: datetime) -> None:
        await self._step(id, partial(stages.cancelled, at=at))

    async def retry(self, id: JobId) -> None:
        await self._database.write(partial(_retry, id=id))

    async def counters(self, session: SessionId) -> Counters:
        return await self._database.read(partial(_counters, session=session))

    async def _step(self, id: JobId, step: Callable[[Job], Job]) -> Job:
        return await self._database.write(partial(_take, id=id, step=step))


def _enqueue(
    connection: apsw.Connection, session: SessionId, messages: int, topics: Topics, why: str, at: int
) -> Job:
    tree, length = queue.session(connection, session)
    stages.reach(session, messages, length)
    return queue.put(connection, session, tree, messages, topics, why, at)


def _take(connection: apsw.Connection, id: JobId, step: Callable[[Job], Job]) -> Job:
    job = step(queue.get(connection, id))
    queue.save(connection, job)
    return job


def _retry(connection: apsw.Connection, id: JobId) -> None:
    job = stages.retried(queue.get(connection, id))
    queue.session(connection, job.session)  # it may have been deleted since
    queue.save(connection, job)


def _complete(
    connection: apsw.Connection,
    id: JobId,
    changes: Sequence[Change],
    contents: Mapping[str, bytes],
    cached: float | None,
    at: datetime,
) -> Sequence[Entry]:
    job = stages.queued(queue.get(connection, id))
    entries = record(connection, changes, contents, at)
    queue.save(connection, stages.completed(job, cached, at, [entry.id for entry in entries]))
    return entries


def _counters(connection: apsw.Connection, session: SessionId) -> Counters:
    tree, _ = queue.session(connection, session)
    return queue.counters(connection, tree)
