"""Deliver work through procrastinate, a PostgreSQL job engine, to workers on any machine.

The engine's jobs are tickets: "this owner has work of this kind". Triggers create them in the transaction
that makes the work (migration 0012, addition commands). When a ticket arrives, Hone's own rows say what to
do, and a claim of the conversation's tree decides who does it. So a repeated ticket does nothing.
"""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from procrastinate import App, BaseRetryStrategy, PsycopgConnector, RetryDecision
from procrastinate import exceptions as engine_errors
from procrastinate.jobs import DeleteJobCondition, Job
from procrastinate.worker import Worker
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import PoolTimeout

from hone.core.delivery import DeliveryStatus, Perform, TicketKind, WorkerStatus, WorkItem, WorkResult
from hone.core.errors import StoreError
from hone.core.jobs import BY_HAND, JobId, find_next
from hone.stores.postgres import looks
from hone.stores.postgres.claims import HELD
from hone.stores.postgres.database import ALIVE, PostgresDatabase, PostgresPool, Rows
from hone.stores.tree import stamp

BEAT, STALE = 0.5, 2.0
"""Seconds between two heartbeats, and seconds after which a worker without one and without its claim is
gone."""
POLL = 1.0
"""Seconds after which the engine looks for work that it was not told about."""
GRACE = 10.0
"""Seconds for running work when a worker has to end, before it returns to the queue."""
AGAIN = 1.0
"""Seconds before a lost database is tried again."""
LONGEST = 30
"""The most seconds before an interrupted ticket comes again."""
HELD_REST = 3_000_000
"""Microseconds before a conversation that another worker reviews is checked again."""
LATER = 60_000_000
"""The same for a memory backend that did not answer."""
LOOK_REST = timedelta(seconds=30)
"""The same for a look that is due and could not be promoted."""
TEND_REST = timedelta(minutes=1)
"""The same for work that can be done at once and was not done a moment ago."""
TRIED = 64
"""How many reviews to check for one that nobody works on."""
NAMESPACE = 1752067685
"""The class of the advisory locks that workers hold, as in migration 0012."""
NEVER = 1e9

PICK = f"""
SELECT id, tree FROM jobs WHERE owner = %(owner)s AND state = 'queued'
    AND due <= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
ORDER BY why <> '{BY_HAND}', id LIMIT {TRIED}
"""
ASK = "SELECT hone_jobs.ask(%(kind)s, %(later)s)"
REARM = "SELECT hone_jobs.rearm(%(next)s)"
ANY = "SELECT EXISTS (SELECT 1 FROM jobs WHERE owner = %(owner)s)"
UNDELIVERED = """
SELECT EXISTS (SELECT 1 FROM outbox WHERE owner = %(owner)s AND tries > 0 AND NOT refused)
"""
HIRE = f"SELECT pg_advisory_lock({NAMESPACE}, %(worker)s)"
FIRE = f"SELECT pg_advisory_unlock({NAMESPACE}, %(worker)s)"
HIRED = f"""
SELECT EXISTS (
    SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND pid = pg_backend_pid()
        AND classid = {NAMESPACE}::oid AND objid = %(worker)s::oid
)
"""
ENROLL = "INSERT INTO crew (worker, name, concurrency) VALUES (%(worker)s, %(name)s, %(concurrency)s)"
SWEEP = "SELECT reaped, woken FROM sweep(%(stale)s)"
CREW = """
SELECT c.name, c.since, c.concurrency, w.last_heartbeat > now() - interval '10 seconds', (
    SELECT count(*) FROM hone_jobs.procrastinate_jobs WHERE worker_id = c.worker AND status = 'doing'
)
FROM hone_jobs.crew AS c JOIN hone_jobs.procrastinate_workers AS w ON w.id = c.worker
ORDER BY c.since, c.worker
"""
TICKETS = """
SELECT job.args ->> 'kind', count(*), extract(epoch FROM now() - min(event.at))::float8
FROM hone_jobs.procrastinate_jobs AS job
LEFT JOIN hone_jobs.procrastinate_events AS event ON event.job_id = job.id AND event.type = 'deferred'
WHERE job.status = 'todo' GROUP BY 1 ORDER BY 1
"""
TROUBLE = (psycopg.Error, PoolTimeout, engine_errors.ProcrastinateException, StoreError, OSError)


class PutBack(BaseRetryStrategy):
    """Returns an interrupted ticket to the queue: at once if the worker has to end, soon if something is
    wrong."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision:
        if isinstance(exception, asyncio.CancelledError | engine_errors.JobAborted):
            return RetryDecision()
        return RetryDecision(retry_in={"seconds": min(2**job.attempts, LONGEST)})


class PostgresDelivery:
    """Delivers work of all owners in a database. `own` is the one whose home the worker runs in."""

    def __init__(self, pool: PostgresPool, own: str) -> None:
        self._pool = pool
        self._own = own

    async def serve(self, perform: Perform, concurrency: int, say: Callable[[str], None]) -> None:
        with silent_engine():
            await self._serve(perform, concurrency, say)

    async def _serve(self, perform: Perform, concurrency: int, say: Callable[[str], None]) -> None:
        is_told = False
        while True:
            try:
                async with self._open(perform) as app:
                    is_told = False
                    await self._work(app, concurrency)
            except TROUBLE:
                self._pool.forget()
                if not is_told:
                    say(f"{self._pool.where} does not answer. Trying again until it does.")
                is_told = True
            await asyncio.sleep(AGAIN)

    @asynccontextmanager
    async def _open(self, perform: Perform) -> AsyncIterator[App]:
        """Connect as the user of the address: tickets belong to no owner."""
        with await asyncio.to_thread(self._dial) as connection:
            connection.close()
        given: dict[str, Any] = {**ALIVE, **conninfo_to_dict(self._pool.url)}
        given["options"] = f"{given.get('options') or ''} -c search_path=hone_jobs".strip()
        address = make_conninfo(**given)
        connector = PsycopgConnector(
            conninfo=address, min_size=1, max_size=4, timeout=10.0, configure=_commit_at_once
        )
        app = App(connector=connector)

        @app.task(name="hone", retry=PutBack())
        async def work(owner: str, kind: str) -> None:
            await TicketWork(self._pool, owner, self._own, perform).do(TicketKind(kind))

        async with app.open_async():
            yield app

    def _dial(self) -> "psycopg.Connection[Any]":
        with self._pool.plainly():
            return self._pool.dial()

    async def _work(self, app: App, concurrency: int) -> None:
        """Be a worker of the engine until the claim is lost. Raises what the engine raises."""
        worker = Worker(
            app,
            concurrency=concurrency,
            fetch_job_polling_interval=POLL,
            shutdown_graceful_timeout=GRACE,
            delete_jobs=DeleteJobCondition.ALWAYS,
            install_signal_handlers=False,
            update_heartbeat_interval=BEAT,
            stalled_worker_timeout=NEVER,  # our own statement decides which workers are gone
        )
        running = asyncio.create_task(worker.run())  # type: ignore[no-untyped-call]
        watching = asyncio.create_task(self._watch(app, worker, concurrency))
        try:
            await running
        finally:
            watching.cancel()
            await asyncio.wait([watching])
            if not running.done():  # the cancellation was ours: end in order
                running.cancel()
                await asyncio.wait([running])

    async def _watch(self, app: App, worker: Worker, concurrency: int) -> None:
        """Hold a claim for as long as the worker runs, and handle what others left. If that claim is lost,
        those of the conversations are lost, too: running work is abandoned."""
        claims = PostgresDatabase(self._pool, self._own)
        while worker.worker_id is None:  # noqa: ASYNC110  the engine tells nobody
            await asyncio.sleep(0.01)
        id = worker.worker_id
        try:
            await claims.on_claimer(lambda rows: rows.value(HIRE, worker=id))
            name = f"{socket.gethostname()}, process {os.getpid()}"
            await app.connector.execute_query_async(ENROLL, worker=id, name=name, concurrency=concurrency)
            while await claims.on_claimer(lambda rows: bool(rows.value(HIRED, worker=id))):
                await app.connector.execute_query_all_async(SWEEP, stale=STALE)
                await asyncio.sleep(BEAT)
        except TROUBLE:
            pass
        finally:
            with suppress(StoreError):
                await claims.on_claimer(lambda rows: rows.value(FIRE, worker=id))
        worker.shutdown_graceful_timeout = 0.0
        worker.stop()  # type: ignore[no-untyped-call]

    async def status(self) -> DeliveryStatus:
        return await asyncio.to_thread(self._status)

    def _status(self) -> DeliveryStatus:
        with self._pool.plainly(), self._pool.dial() as connection:
            crew = [
                WorkerStatus(name, since.astimezone(UTC), concurrency, busy, answers)
                for name, since, concurrency, answers, busy in connection.execute(CREW).fetchall()
            ]
            tickets = connection.execute(TICKETS).fetchall()
            waiting = {kind: count for kind, count, _ in tickets}
            return DeliveryStatus(crew, waiting, {kind: age or 0.0 for kind, _, age in tickets})


class TicketWork:
    """The work behind one ticket."""

    def __init__(self, pool: PostgresPool, owner: str, own: str, perform: Perform) -> None:
        self._database = PostgresDatabase(pool, owner)
        self._owner = "" if owner == own else owner
        self._perform = perform

    async def do(self, kind: TicketKind) -> None:
        if kind is TicketKind.REVIEW:
            await self._review()
            return
        result = await self._perform(WorkItem(kind, self._owner))
        if kind is TicketKind.DELIVER:
            if await self._database.read(lambda rows: rows.value(UNDELIVERED)):
                await self._ask(kind, LATER)
            return
        now = datetime.now(UTC)
        if kind is not TicketKind.TEND and result.tend is not None and result.tend <= now:
            await self._ask(TicketKind.TEND)
        if result.command is not None and result.command <= now:
            await self._ask(TicketKind.COMMAND, 0 if result.worked else HELD_REST)
        await self._database.write(lambda rows: _rearm(rows, result), alone=True)

    async def _review(self) -> None:
        """Do one review that nobody works on, and queue the next ticket last."""
        free, is_held = await self._find()
        if len(free) > 1:
            await self._ask(TicketKind.REVIEW)  # another slot may begin in the meantime
        for id in free:
            if (await self._perform(WorkItem(TicketKind.REVIEW, self._owner, id))).worked:
                break
        else:
            if free or is_held:
                await self._ask(TicketKind.REVIEW, HELD_REST)
            return
        free, is_held = await self._find()
        if free:
            await self._ask(TicketKind.REVIEW)
        else:
            await self._ask(TicketKind.TEND)
        if is_held:
            await self._ask(TicketKind.REVIEW, HELD_REST)

    async def _find(self) -> tuple[list[JobId], bool]:
        """Return the reviews that can begin now, and whether there are others."""

        def find(rows: Rows) -> tuple[list[JobId], bool]:
            found = list(rows.pairs(PICK))
            trees = sorted({tree for _, tree in found})
            held = {name for (name,) in rows.execute(HELD, names=trees)} if found else set()
            free: dict[str, JobId] = {}
            for id, tree in found:
                if tree not in held:
                    free.setdefault(tree, JobId(id))
            return list(free.values()), bool(held)

        return await self._database.read(find)

    async def _ask(self, kind: TicketKind, later: int = 0) -> None:
        await self._database.write(lambda rows: rows.execute(ASK, kind=kind.value, later=later))


def _rearm(rows: Rows, result: WorkResult) -> None:
    """Set the alarm for what comes next. No other writer of this owner is at work."""
    now = datetime.now(UTC)
    look = find_next(looks.select(rows), now, first=not rows.value(ANY))
    # What is due has its ticket by now, was left to others, or cannot be done here.
    rests = ((look, LOOK_REST), (result.tend, TEND_REST), (result.command, TEND_REST))
    times = [due if due > now else now + rest for due, rest in rests if due is not None]
    rows.execute(REARM, next=stamp(min(times)) if times else None)


async def _commit_at_once(connection: "psycopg.AsyncConnection[Any]") -> None:
    """Commit each statement. The engine's work is single statements, and a process that was suspended before
    its COMMIT would hold locks that all workers wait for."""
    await connection.set_autocommit(True)


@contextmanager
def silent_engine() -> Iterator[None]:
    """Silence the engine and its pool: they log temporary trouble with tracebacks, and leave errors to the
    code that watches their tasks. We report it in one sentence."""
    for name in ("procrastinate", "psycopg.pool"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if isinstance(context.get("exception"), TROUBLE):
            return
        if before:
            before(loop, context)
        else:
            loop.default_exception_handler(context)

    loop.set_exception_handler(handle)
    try:
        yield
    finally:
        loop.set_exception_handler(before)
