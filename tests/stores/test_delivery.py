"""J2, E2: work is queued in the transaction that makes it, and comes to workers on any machine, in turn."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from hone.core.clock import SystemClock
from hone.core.delivery import Perform, TicketKind, WorkItem, WorkResult
from hone.core.documents import QUEUED
from hone.core.errors import Conflict
from hone.core.ids import SessionId
from hone.core.jobs import Job, Look, State, TopicCount
from hone.core.ports import Header
from hone.core.topics import NAMES
from hone.runtime.queued import CommandQueue
from hone.stores.home import Stores
from hone.stores.postgres.database import PostgresPool
from hone.stores.postgres.delivery import NAMESPACE, TicketWork
from hone.stores.postgres.home import open_stores
from hone.stores.postgres.jobs import find_rest
from hone.stores.postgres.migrating import MIGRATIONS
from tests import databases
from tests.contract.kinds import new_owner
from tests.stores.postgres_worker import NOW, PREFIX, note, said

A, B = SessionId("a"), SessionId("b")
DUE = [TopicCount("memory", 1, 1, why="each turn")]
TICKETS = """
SELECT args FROM hone_jobs.procrastinate_jobs WHERE args ->> 'owner' = %s AND status = 'todo' ORDER BY id
"""
ALARM = "SELECT at - (extract(epoch FROM now()) * 1000000)::bigint FROM hone_jobs.alarms WHERE owner = %s"

TAKEN_AWAY = "SET search_path = hone_jobs; DELETE FROM procrastinate_jobs WHERE status = 'doing'"

Ask = Callable[..., list[Any]]


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with databases.new_database() as url:
        yield url


@pytest.fixture
def owner() -> str:
    return new_owner()


@pytest.fixture
def stores(database: str, owner: str) -> Iterator[Stores]:
    stores = open_stores(database, "", owner)
    yield stores
    asyncio.run(_close(stores))


async def _close(stores: Stores) -> None:
    await stores.close()


@pytest.fixture
def ask(database: str) -> Iterator[Ask]:
    """As a superuser: the first column of each row."""
    with psycopg.connect(database, autocommit=True) as connection:
        yield lambda query, *values: [row[0] for row in connection.execute(query, values).fetchall()]


async def begin(stores: Stores, *sessions: SessionId) -> None:
    for session in sessions:
        await stores.sessions.start(Header(session, NOW), PREFIX, said("one", "two").nodes)


async def queue(stores: Stores, count: int, prefix: str = "s") -> list[Job]:
    """Queue so many reviews, each of another conversation."""
    names = [SessionId(f"{prefix}{number}") for number in range(count)]
    await begin(stores, *names)
    return [await stores.jobs.enqueue(name, 2, NAMES, "by hand", NOW) for name in names]


@asynccontextmanager
async def working(stores: Stores, perform: Perform, concurrency: int = 2) -> AsyncIterator[None]:
    delivery = stores.delivery(NotImplemented)
    serving = asyncio.create_task(delivery.serve(perform, concurrency, print))
    try:
        async with asyncio.timeout(20):
            while not (await delivery.status()).workers:  # noqa: ASYNC110  each look asks the server
                await asyncio.sleep(0.02)
            yield
    finally:
        serving.cancel()
        await asyncio.wait([serving])


def reviewing(stores: dict[str, Stores], done: asyncio.Queue[WorkItem]) -> Perform:
    """Do each review under its claim, as a worker does."""

    async def perform(item: WorkItem) -> WorkResult:
        if item.kind is TicketKind.REVIEW:
            assert item.job is not None
            of = stores[item.owner]
            job = await of.jobs.job(item.job)
            async with of.claims.hold(job.tree) as held:
                if not held:
                    return WorkResult(worked=False)
                with suppress(Conflict):
                    await of.jobs.complete(job.id, [], {}, None, NOW)
        done.put_nowait(item)
        return WorkResult(tend=datetime.now(UTC) if item.kind is TicketKind.WAKE else None)

    return perform


async def until_done(stores: Stores) -> None:
    while await stores.jobs.waiting():  # noqa: ASYNC110  workers are elsewhere
        await asyncio.sleep(0.02)


# Tickets


def test_the_engines_schema_is_that_of_the_version_that_is_pinned() -> None:
    """A new version comes with a migration that does what its own migrations do."""
    [script] = [each for each in MIGRATIONS if each.stem == "0011_engine"]
    theirs = (files("procrastinate") / "sql" / "schema.sql").read_text("utf-8")
    _, ours, _ = script.read_text("utf-8").split(f"-- {'-' * 122}\n")
    assert ours == theirs


async def test_a_ticket_is_there_with_the_turns_last_message_or_neither_is(
    stores: Stores, owner: str, ask: Ask
) -> None:
    await begin(stores, A)
    whole = said("three", "four", on=(await stores.sessions.load(A)).transcript)
    with pytest.raises(Conflict):
        await stores.sessions.append(A, whole.nodes[3:], None, DUE)
    assert ask(TICKETS, owner) == []
    await stores.sessions.append(A, whole.nodes[2:], None, DUE)
    [arguments] = ask(TICKETS, owner)
    assert arguments == {"owner": owner, "kind": "review"}, "nothing but ids"


async def test_a_burst_is_a_few_tickets(stores: Stores, owner: str, ask: Ask) -> None:
    await queue(stores, 20)
    assert len(ask(TICKETS, owner)) == 1, "no worker is there: one slot"


async def test_a_ticket_that_somebody_relies_on_is_not_taken_before_their_work_is_there(
    database: str, stores: Stores, owner: str, ask: Ask
) -> None:
    fetch = "SELECT id FROM hone_jobs.procrastinate_fetch_job_v2(NULL, NULL) WHERE id IS NOT NULL"
    ask("SELECT set_config('search_path', 'hone_jobs', false)")
    ask("DELETE FROM procrastinate_jobs RETURNING 1")
    await queue(stores, 1)
    with psycopg.connect(database) as writer:
        writer.execute("SELECT hone_jobs.put_ticket(%s, 'review')", (owner,))
        assert ask(fetch) == [], "its ticket is held until the writer commits"
        writer.commit()
        assert len(ask(fetch)) == 1
        writer.execute("SELECT hone_jobs.put_ticket(%s, 'review')", (owner,))
        writer.commit()
    assert len(ask(TICKETS, owner)) == 1, "one that was taken is not relied on"


# Who is gone


async def test_a_dead_workers_ticket_is_taken_over_and_a_stopped_workers_is_not(
    database: str, stores: Stores, ask: Ask
) -> None:
    """Stale means nothing while the claim is held, and a free claim means nothing while the heart beats."""
    ask("SELECT set_config('search_path', 'hone_jobs', false)")
    ask("DELETE FROM procrastinate_jobs RETURNING 1")
    await queue(stores, 1)
    [worker] = ask("INSERT INTO procrastinate_workers DEFAULT VALUES RETURNING id")
    fetch = "SELECT id FROM procrastinate_fetch_job_v2(NULL, %s)"
    reap = "SELECT reaped FROM sweep(2.0)"
    stop = "UPDATE procrastinate_workers SET last_heartbeat = 'yesterday' WHERE id = %s RETURNING id"
    [ticket] = ask(fetch, worker)
    assert ask(reap) == [0], "its heart beats"
    with psycopg.connect(database, autocommit=True) as claims:
        claims.execute(f"SELECT pg_advisory_lock({NAMESPACE}, {worker})")
        ask(stop, worker)
        assert ask(reap) == [0], "it was only stopped"
    held = f"SELECT 1 FROM pg_locks WHERE classid = {NAMESPACE}::oid AND objid = {worker}::oid"
    while ask(held):  # noqa: ASYNC110  the server hears of it a moment later
        await asyncio.sleep(0)
    assert ask(reap) == [1]
    assert ask("SELECT id FROM procrastinate_workers WHERE id = %s", worker) == []
    assert ask(fetch, None) == [ticket]


# Alarms


async def test_a_look_wakes_its_owner_when_it_is_due_and_not_before(
    stores: Stores, owner: str, ask: Ask
) -> None:
    now = datetime.now(UTC)
    await begin(stores, A)
    line = (await stores.sessions.load(A)).transcript

    async def say(words: str, look: Look) -> None:
        nonlocal line
        longer = said(words, on=line)
        await stores.sessions.append(A, longer.nodes[len(line) :], None, (), look)
        line = longer

    await say("three", Look(now + timedelta(minutes=10)))
    [first] = ask(ALARM, owner)
    assert 590e6 < first <= 600e6
    await say("four", Look(now + timedelta(minutes=20), turns=0))
    assert ask(ALARM, owner)[0] <= first, "an alarm that comes early finds out"
    await stores.jobs.hasten([A], now)
    assert ask(ALARM, owner)[0] <= 0


async def test_a_review_that_failed_rests_and_one_that_is_retried_does_not(
    stores: Stores, owner: str, ask: Ask
) -> None:
    [job] = await queue(stores, 1)
    await stores.jobs.begin(job.id, SessionId("review"))
    await stores.jobs.fail(job.id, "no answer", NOW, again=True)
    [rests] = ask(ALARM, owner)
    assert 50e6 < rests <= 60e6
    due = "SELECT due FROM hone.jobs WHERE owner = %s"
    assert ask(due, owner)[0] > 0
    await stores.jobs.fail(job.id, "no answer", NOW, again=False)
    await stores.jobs.retry(job.id)
    assert ask(due, owner) == [0]


def test_the_rest_grows_and_ends() -> None:
    assert [find_rest(tries) for tries in (1, 2, 3)] == [timedelta(minutes=each) for each in (1, 2, 4)]
    assert find_rest(50) == timedelta(hours=1)


async def test_the_alarm_goes_off_when_an_owner_has_something_to_tend(
    database: str, stores: Stores, owner: str, ask: Ask
) -> None:
    """Also if nothing else is due: the curator waits until nobody has used Hone for two hours."""
    later = datetime.now(UTC) + timedelta(hours=2)

    async def perform(_: WorkItem) -> WorkResult:
        return WorkResult(tend=later)

    pool = PostgresPool(database)
    work = TicketWork(pool, owner, owner, perform)
    await work.do(TicketKind.TEND)
    [alarm] = ask(ALARM, owner)
    assert 7190e6 < alarm <= 7200e6
    later = datetime.now(UTC)
    await work.do(TicketKind.WAKE)
    assert ask(TICKETS, owner) == [{"owner": owner, "kind": "tend"}]
    assert ask(ALARM, owner)[0] > 0, "and somebody looks again in case it is not done"
    await pool.close()


async def test_a_conversation_wakes_its_owner_though_nobody_looks_back_over_it(
    stores: Stores, owner: str, ask: Ask
) -> None:
    await begin(stores, A)
    assert 590e6 < ask(ALARM, owner)[0] <= 600e6


async def test_a_queued_command_has_its_ticket_and_what_it_is_about_has_none(
    stores: Stores, owner: str, ask: Ask
) -> None:
    stores.documents.write(QUEUED, "20261118-0f/000001.jsonl", b"{}")
    assert ask(TICKETS, owner) == []
    CommandQueue(stores.documents, SystemClock()).add("import", "an import", {})
    assert ask(TICKETS, owner) == [{"owner": owner, "kind": "command"}]


# Delivery


async def test_every_owners_work_is_delivered_once_and_in_turn(database: str) -> None:
    with databases.new_database() as url:
        many, one = open_stores(url, "", "many"), open_stores(url, "", "one")
        done: asyncio.Queue[WorkItem] = asyncio.Queue()
        await queue(many, 30)
        await queue(one, 1)
        async with working(many, reviewing({"": many, "one": one}, done)):
            found = [await done.get() for _ in range(33)]
        reviews = [item for item in found if item.kind is TicketKind.REVIEW]
        assert sorted(item.job or 0 for item in reviews if not item.owner) == list(range(1, 31))
        assert [item.owner for item in reviews].index("one") < 10, "far ahead of the last of the other's"
        assert {item.owner for item in found if item.kind is TicketKind.TEND} == {"", "one"}
        for stores in (many, one):
            assert await stores.jobs.waiting() == ()
            await stores.close()


async def test_changes_are_delivered_and_looks_promoted(database: str) -> None:
    with databases.new_database() as url:
        stores = open_stores(url, "", "own")
        done: asyncio.Queue[WorkItem] = asyncio.Queue()

        async def perform(item: WorkItem) -> WorkResult:
            if item.kind is TicketKind.WAKE:
                await stores.jobs.promote(datetime.now(UTC), NAMES)
            return await reviewing({"": stores}, done)(item)

        changes, contents = note(None, b"tea")
        await stores.ledger.record(changes, contents, NOW)
        await begin(stores, A)
        past = datetime.now(UTC) - timedelta(minutes=1)
        line = (await stores.sessions.load(A)).transcript
        await stores.sessions.append(A, said("on", on=line).nodes[2:], None, (), Look(past, cue="a cue"))
        async with working(stores, perform):
            kinds = set[TicketKind]()
            while kinds != {*TicketKind} - {TicketKind.COMMAND}:
                kinds.add((await done.get()).kind)
        [job] = await stores.jobs.jobs()
        assert (job.state, job.session) == (State.DONE, A)
        await stores.close()


async def test_a_worker_that_ends_hands_its_work_back(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hone.stores.postgres.delivery.GRACE", 0.1)
    with databases.new_database() as url:
        stores = open_stores(url, "", "own")
        await queue(stores, 1)
        begun = asyncio.Event()

        async def forever(_: WorkItem) -> WorkResult:
            begun.set()
            await asyncio.Event().wait()
            return WorkResult()

        async with working(stores, forever):
            await begun.wait()
        with psycopg.connect(url) as connection:
            rows = connection.execute("SELECT status, worker_id FROM hone_jobs.procrastinate_jobs").fetchall()
        assert rows == [("todo", None)]
        done: asyncio.Queue[WorkItem] = asyncio.Queue()
        async with working(stores, reviewing({"": stores}, done)):
            assert (await done.get()).kind is TicketKind.REVIEW
        await stores.close()


async def test_work_that_breaks_off_comes_again(database: str) -> None:
    with databases.new_database() as url:
        stores = open_stores(url, "", "own")
        done: asyncio.Queue[WorkItem] = asyncio.Queue()
        await queue(stores, 1)
        is_first = True

        async def perform(item: WorkItem) -> WorkResult:
            nonlocal is_first
            if is_first:
                is_first = False
                raise RuntimeError("a plugin")
            return await reviewing({"": stores}, done)(item)

        async with working(stores, perform):
            await done.get()
        await stores.close()


async def test_who_may_make_no_role_has_workers_too(database: str) -> None:
    """Row security hides rows from who owns the tables, and from triggers, unless the owner is named."""
    server = databases.shared()
    with databases.new_database() as url:
        name = urlsplit(url).path.lstrip("/")
        user = f"{name}_user"
        databases.execute(server, f"CREATE ROLE {user} LOGIN; ALTER DATABASE {name} OWNER TO {user}")
        try:
            plain = url.replace("postgres:@", f"{user}:@")
            one, two = open_stores(plain, "", "one"), open_stores(plain, "", "two")
            done: asyncio.Queue[WorkItem] = asyncio.Queue()
            await queue(one, 2)
            await queue(two, 2)
            async with working(one, reviewing({"": one, "two": two}, done)):
                await until_done(one)
                await until_done(two)
            for stores in (one, two):
                await stores.close()
        finally:
            databases.execute(url, f"REASSIGN OWNED BY {user} TO postgres; DROP OWNED BY {user}")
            databases.execute(server, f"ALTER DATABASE {name} OWNER TO postgres; DROP ROLE {user}")


async def test_a_lost_connection_is_said_once_and_work_goes_on(database: str) -> None:
    with databases.new_database() as url:
        stores = open_stores(url, "", "own")
        done: asyncio.Queue[WorkItem] = asyncio.Queue()
        async with working(stores, reviewing({"": stores}, done)):
            for number in range(2):
                await queue(stores, 1, f"round {number} ")
                await until_done(stores)
                ended = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = %s"
                with psycopg.connect(databases.shared()) as connection:
                    connection.execute(ended, (urlsplit(url).path.lstrip("/"),))
            await queue(stores, 1, "last ")
            await until_done(stores)
        await stores.close()


async def test_what_the_engine_cannot_note_prints_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    """Somebody took over a ticket of a worker that was stopped for long, and it is done when that returns."""
    with databases.new_database() as url:
        stores = open_stores(url, "", "own")
        done: asyncio.Queue[WorkItem] = asyncio.Queue()
        inner = reviewing({"": stores}, done)

        async def perform(item: WorkItem) -> WorkResult:
            databases.execute(url, TAKEN_AWAY)
            return await inner(item)

        async with working(stores, perform):
            await queue(stores, 3)
            await until_done(stores)
        gc.collect()
        await stores.close()
    assert [record.getMessage() for record in caplog.records] == []
