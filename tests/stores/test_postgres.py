"""J1: PostgreSQL with several processes, broken connections, killed clients and two walls between owners."""

import asyncio
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_type_hints
from urllib.parse import parse_qs, quote, urlsplit

import psycopg
import pytest

from hone.core.curation import CuratorRuns
from hone.core.errors import Conflict, StoreError
from hone.core.histories import Histories
from hone.core.ids import SessionId
from hone.core.jobs import Job, Jobs, TopicCount
from hone.core.ledger import ChangeId, ChangeQuery, Ledger, project
from hone.core.messages import assistant
from hone.core.model import Usage
from hone.core.outbox import Outbox
from hone.core.ports import Header, Sessions, Spending
from hone.core.skill import SkillCatalog
from hone.core.topics import NAMES
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.stores.home import Stores
from hone.stores.postgres import appending
from hone.stores.postgres import database as database_module
from hone.stores.postgres.database import PostgresDatabase, PostgresPool, Rows
from hone.stores.postgres.home import open_stores, over
from hone.stores.postgres.migrating import ADDITIONS, LOCK, MIGRATIONS, migrate
from tests import databases
from tests.contract.kinds import new_owner
from tests.contract.kinds import postgres as shared_stores
from tests.stores.postgres_worker import DEEDS, NOW, PREFIX, A, B, note, prepare, said
from tests.tier import Figures, Tier

WORKER = "tests.stores.postgres_worker"
TABLES = (
    "sessions", "nodes", "chains", "contents", "prefixes", "spending", "counts", "looks", "jobs", "changes",
    "deltas", "knowledge", "holdings", "outbox",
)  # fmt: skip

postgres = databases.postgres


@pytest.fixture
def stores(postgres: str) -> Iterator[Stores]:
    stores = open_stores(postgres, "a folder", new_owner())
    yield stores
    asyncio.run(_close(stores))


async def _close(stores: Stores) -> None:
    await stores.close()


@pytest.fixture
def empty() -> Iterator[str]:
    with databases.new_database() as url:
        yield url


def ask(url: str, query: str, **values: Any) -> list[tuple[Any, ...]]:
    """As a superuser, whom no policy holds back."""
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(query, values).fetchall()


def running(*arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", WORKER, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


# Two walls


def list_owners(table: str, rows: Rows) -> list[tuple[Any, ...]]:
    return rows.execute(f"SELECT DISTINCT owner FROM {table}").fetchall()


async def test_a_query_that_forgets_the_owner_sees_no_other_owners_rows(postgres: str) -> None:
    pool = PostgresPool(postgres)
    one, two = (PostgresDatabase(pool, new_owner()) for _ in range(2))
    for database in (one, two):
        await prepare(over(database, "", pool.close))
    for table in TABLES:
        seen = await one.read(partial(list_owners, table))
        assert seen in ([(one.owner,)], []), table
    rights = "SELECT current_user, rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user"
    assert await one.read(lambda rows: rows.one(rights)) == ("hone_app", False, False)
    touching = "UPDATE sessions SET title = 'x' RETURNING owner"
    touched = await one.write(lambda rows: rows.execute(touching).fetchall())
    assert touched == [(one.owner,)]
    foreign = "INSERT INTO counts (owner, tree, topic, count) VALUES (%(other)s, 'a', 'b', 1)"
    with pytest.raises(StoreError, match="row-level security"):
        await one.write(lambda rows: rows.execute(foreign, other=two.owner))
    await pool.close()


async def test_whoever_may_make_no_role_is_behind_the_wall_as_owner_of_the_tables(
    postgres: str, empty: str
) -> None:
    name = urlsplit(empty).path.lstrip("/")
    ask_nothing(postgres, f"CREATE ROLE {name}_user LOGIN; ALTER DATABASE {name} OWNER TO {name}_user")
    pool = PostgresPool(empty.replace("postgres:@", f"{name}_user:@"))
    try:
        one, two = (PostgresDatabase(pool, new_owner()) for _ in range(2))
        for database in (one, two):
            await prepare(over(database, "", pool.close))
        seen = await one.read(
            lambda rows: rows.execute("SELECT owner, current_user FROM sessions").fetchall()
        )
        assert seen == [(one.owner, f"{name}_user")]
    finally:
        await pool.close()
        ask_nothing(empty, f"REASSIGN OWNED BY {name}_user TO postgres; DROP OWNED BY {name}_user")
        ask_nothing(postgres, f"ALTER DATABASE {name} OWNER TO postgres; DROP ROLE {name}_user")


def ask_nothing(url: str, script: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(script)


# Migrations


def test_of_many_who_open_a_new_database_at_once_one_makes_the_schema(empty: str) -> None:
    with ThreadPoolExecutor(4) as threads:
        pools = list(threads.map(PostgresPool, [empty] * 4))
    names = [(script.stem,) for script in MIGRATIONS]
    assert ask(empty, "SELECT name FROM hone.migrations ORDER BY number") == names
    for pool in pools:
        asyncio.run(pool.close())


def test_who_waited_while_another_made_the_schema_sees_it(empty: str) -> None:
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with psycopg.connect(empty, autocommit=True) as first, psycopg.connect(empty, autocommit=True) as second:
        with ThreadPoolExecutor(1) as threads, first.transaction():
            first.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            late = threads.submit(migrate, second, "here")
            until = time.monotonic() + 60
            while not late.done() and time.monotonic() < until and ask(empty, waiting) == [(0,)]:
                pass
            migrate(first, "here")
        late.result()
    assert ask(empty, "SELECT count(*) FROM hone.migrations") == [(len(MIGRATIONS),)]


def test_a_newer_schema_and_that_of_another_program_are_left_alone(empty: str) -> None:
    ask_nothing(empty, "CREATE SCHEMA hone; CREATE TABLE hone.bees (id integer)")
    with pytest.raises(StoreError, match="belongs to another program"):
        PostgresPool(empty)
    ask_nothing(empty, "DROP SCHEMA hone CASCADE")
    asyncio.run(PostgresPool(empty).close())
    ask_nothing(empty, "INSERT INTO hone.migrations (number, name) VALUES (9999, 'later')")
    with pytest.raises(StoreError, match="newer Hone"):
        PostgresPool(empty)


def test_an_addition_is_applied_once_and_leaves_the_format_that_older_programs_read(
    empty: str, tmp_path: Path
) -> None:
    script = tmp_path / "later.sql"
    script.write_text("CREATE TABLE later (owner word NOT NULL)")
    for _ in range(2):
        with psycopg.connect(empty, autocommit=True) as connection:
            migrate(connection, "here", additions=(*ADDITIONS, script))
    assert ask(empty, "SELECT max(number) FROM hone.migrations") == [(len(MIGRATIONS),)]
    assert ("later",) in ask(empty, "SELECT name FROM hone.additions")
    with psycopg.connect(empty, autocommit=True) as connection:  # an older Hone knows nothing of it
        migrate(connection, "here", additions=())


def test_a_server_that_does_not_answer_is_named_without_the_password() -> None:
    with pytest.raises(StoreError, match="does not answer") as caught:
        PostgresPool("postgresql://me:hunter2@127.0.0.1:1/home")
    assert "hunter2" not in str(caught.value)


# Several processes


async def test_two_processes_on_one_session_conflict_openly_and_lose_nothing(
    postgres: str, tier: Tier, figures: Figures
) -> None:
    owner, count = new_owner(), tier.size(short=30, full=1_000)
    stores = open_stores(postgres, "", owner)
    await stores.sessions.start(Header(A, NOW), PREFIX, said("begin").nodes)
    workers = [running("add", postgres, owner, name, str(count)) for name in ("one", "two")]
    told = [(await asyncio.to_thread(worker.communicate))[0].splitlines() for worker in workers]
    lines = [node.message.text for node in (await stores.sessions.load(A)).transcript.nodes][1:]
    await stores.close()
    for name, each in zip(("one", "two"), told, strict=True):
        acknowledged = [line for line in each if line != "conflict"]
        assert acknowledged == [f"{name} {number}" for number in range(count)]
        assert [line for line in lines if line.startswith(name)] == acknowledged
    conflicts = sum(each.count("conflict") for each in told)
    figures(f"{2 * count} lines in one session by 2 processes, {conflicts} conflicts told, 0 lost")


async def test_many_appends_to_different_trees_at_once_wait_for_each_other_and_never_in_a_circle(
    postgres: str, tier: Tier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a round bring the same new contents, each in another order, and most of them a review."""
    monkeypatch.setattr(database_module, "TRIES", 1)  # a deadlock is an error, not a reason to try again
    rounds, together = tier.size(short=20, full=200), 10
    pool = PostgresPool(postgres, lanes=8)
    stores = over(PostgresDatabase(pool, new_owner()), "", pool.close)

    async def talk(round: int, number: int) -> None:
        words, name = [f"{round} {word}" * 4_000 for word in range(12)], SessionId(f"{round}-{number}")
        whole = said(f"first {name}", *(words if number % 2 else reversed(words)))
        await stores.sessions.start(Header(name, NOW), PREFIX, whole.nodes[:1])
        started.append(name)
        if len(started) == together:
            all_started.set()
        await all_started.wait()
        await stores.sessions.append(name, whole.nodes[1:], None, [TopicCount("memory", 1, 1 + number % 3)])
        if number % 10 == 0:
            await stores.sessions.delete(name)

    for round in range(rounds):
        started: list[SessionId] = []
        all_started = asyncio.Event()
        await asyncio.gather(*(talk(round, number) for number in range(together)))
    left = await stores.sessions.list(origin=None)
    assert sorted(each.header.id for each in left) == sorted(
        f"{round}-{number}" for round in range(rounds) for number in range(together) if number % 10
    )
    assert {each.messages for each in left} == {13}
    ids = [job.id for job in await stores.jobs.jobs()]
    assert ids == list(range(len(ids), 0, -1)), "no number is left out or given twice"
    await stores.close()


async def test_a_reader_who_asks_for_what_came_after_misses_nothing(postgres: str, tier: Tier) -> None:
    owner, count = new_owner(), tier.size(short=40, full=1_000)
    pools = [PostgresPool(postgres) for _ in range(4)]
    ledgers = [over(PostgresDatabase(pool, owner), "", pool.close).ledger for pool in pools]

    targets = [project(f"/{number}") for number in range(3)]  # the same one would put them in order

    async def write(number: int) -> None:
        for line in range(count):
            while True:
                held = (await ledgers[number].held(targets[number])).get("MEMORY.md")
                changes, contents = note(held, f"{number} {line} {held}".encode(), targets[number])
                with suppress(Conflict):
                    await ledgers[number].record(changes, contents, NOW)
                    break

    async def read(writers: "asyncio.Task[Any]") -> list[int]:
        seen: list[int] = []
        while True:
            is_last = writers.done()
            after = ChangeQuery(after=ChangeId(seen[-1] if seen else 0))
            seen += reversed([entry.id for entry in await ledgers[3].entries(after)])
            if is_last:
                return seen

    writers = asyncio.create_task(asyncio.wait([asyncio.create_task(write(each)) for each in range(3)]))
    assert await read(writers) == list(range(1, 3 * count + 1))
    for pool in pools:
        await pool.close()


async def test_ids_are_counted_for_each_owner_alone(postgres: str) -> None:
    pool = PostgresPool(postgres)
    for _ in range(2):
        stores, held = over(PostgresDatabase(pool, new_owner()), "", pool.close), None
        await prepare(stores)
        for number in range(1, 4):
            changes, contents = note(held, f"{number}".encode())
            [entry] = await stores.ledger.record(changes, contents, NOW)
            held = entry.change.deltas[0].after
            assert entry.id == number
        assert sorted(job.id for job in await stores.jobs.jobs()) == [1, 2]
    await pool.close()


async def test_what_a_cancelled_caller_handed_over_is_written_in_its_order(postgres: str) -> None:
    owner = new_owner()
    stores, whole = open_stores(postgres, "", owner), said("one", "two", "three", "four")
    await stores.sessions.start(Header(A, NOW), PREFIX, whole.nodes[:1])
    changes, contents = note(None, b"text")
    pieces = (
        stores.sessions.append(A, whole.nodes[1:2]),
        stores.ledger.record(changes, contents, NOW),
        stores.sessions.append(A, whole.nodes[2:3]),
    )
    callers = [asyncio.create_task(each) for each in pieces]
    await asyncio.sleep(0)  # each has handed its work over, and none has heard of it
    for caller in callers:
        caller.cancel()
    assert await asyncio.gather(*callers, return_exceptions=True) != []
    assert all(caller.cancelled() for caller in callers)
    await stores.sessions.append(A, whole.nodes[3:])
    await stores.close()
    later = shared_stores(owner)
    assert (await later.sessions.load(A)).transcript.head == whole.head
    assert await later.ledger.latest() == 1


def test_no_port_takes_a_function_that_a_database_would_have_to_call() -> None:
    """What a store decides by is data, so that a function in the database can decide."""
    for port in (Sessions, Jobs, Ledger, SkillCatalog, CuratorRuns, Outbox, Histories):
        for name, method in vars(port).items():
            if name.startswith("_") or not callable(method):
                continue
            hints = get_type_hints(method, localns={"Job": Job})
            assert not [each for each in hints.values() if "Callable" in str(each)], f"{port.__name__}.{name}"


# Killed clients


COUNTS = "SELECT " + ", ".join(
    f"(SELECT count(*) FROM hone.{each} WHERE owner = %(owner)s)" for each in TABLES
)


async def see(url: str, owner: str) -> tuple[Any, ...]:
    stores = shared_stores(owner)
    names = [each.header.id for each in await stores.sessions.list(origin=None)]
    loaded = [(await stores.sessions.load(name)).transcript.head for name in names]
    return (
        names,
        loaded,
        await stores.jobs.jobs(),
        await stores.jobs.looks(),
        await stores.ledger.entries(),
        await stores.ledger.held_below(""),
        ask(url, COUNTS, owner=owner),
    )


@pytest.mark.parametrize("deed", DEEDS)
async def test_a_client_that_is_killed_before_any_statement_leaves_all_or_nothing(
    postgres: str, deed: str, figures: Figures
) -> None:
    untouched, done = new_owner(), new_owner()
    for owner in (untouched, done):
        await prepare(shared_stores(owner))
    await DEEDS[deed](shared_stores(done))
    whole = [await see(postgres, owner) for owner in (untouched, done)]
    assert whole[0] != whole[1]
    out, _ = await asyncio.to_thread(running("die", postgres, deed).communicate)
    told = [line.split() for line in out.splitlines()]
    *killed, last = [await see(postgres, owner) for owner, _ in told]
    assert last == whole[1]
    assert all(each in whole for each in killed), "nothing is there by half"
    assert [how for _, how in told] == ["killed"] * len(killed) + ["ended"]
    figures(f"{deed}: killed before each of {len(killed)} statements, nothing left by half")


# Broken connections

WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


class Proxy:
    """Stands between a client and the server. Once armed with some bytes, it passes on what holds them, waits
    for the answer, and breaks the connection instead of passing the answer on."""

    def __init__(self, url: str, folder: Path) -> None:
        self._server = f"{parse_qs(urlsplit(url).query)['host'][0]}/.s.PGSQL.5432"
        self.url = f"postgresql://postgres:@/postgres?host={quote(str(folder), safe='')}"
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / ".s.PGSQL.5432"))
        self._listening.listen()
        self.mark, self.swallow, self.broken = b"", True, 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        back = threading.Thread(target=self._return, args=(client, server), daemon=True)
        back.start()
        with suppress(OSError):
            while data := client.recv(65536):
                if self.mark and self.mark in data:
                    self.mark = b""
                    self.broken += 1
                    if self.swallow:
                        client.shutdown(socket.SHUT_WR)
                        server.sendall(data)
                        back.join(5)
                    break
                server.sendall(data)
        for each in (client, server):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _return(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                client.sendall(data)


@pytest.fixture
def proxy(postgres: str) -> Iterator[Proxy]:
    with TemporaryDirectory(prefix="hone-px-", dir="/tmp") as folder:
        proxy = Proxy(postgres, Path(folder))
        yield proxy
        proxy.close()


@contextmanager
def opened(url: str, owner: str) -> Iterator[Stores]:
    stores = open_stores(url, "", owner)
    yield stores
    asyncio.run(_close(stores))


@pytest.mark.parametrize("swallow", [True, False], ids=["answer lost", "question lost"])
def test_an_append_whose_answer_is_lost_is_settled_by_the_head_and_happens_once(
    proxy: Proxy, swallow: bool
) -> None:
    async def story(stores: Stores) -> None:
        whole = said("one", "two", "three")
        await stores.sessions.start(Header(A, NOW), PREFIX, whole.nodes[:1])
        proxy.mark, proxy.swallow = b"append(", swallow
        job = await stores.sessions.append(A, whole.nodes[1:], None, [TopicCount("memory", 1, 1, why="due")])
        assert job is not None
        assert (job.id, job.messages, job.why, proxy.broken) == (1, 3, "due", 1)
        assert (await stores.sessions.load(A)).transcript.head == whole.head
        assert await stores.jobs.jobs() == (job,)

    with opened(proxy.url, new_owner()) as stores:
        asyncio.run(story(stores))


@contextmanager
def one_lane(url: str) -> Iterator[tuple[PostgresDatabase, Stores]]:
    pool = PostgresPool(url, lanes=1)
    database = PostgresDatabase(pool, new_owner())
    stores = over(database, "", pool.close)
    yield database, stores
    asyncio.run(_close(stores))


def replied(number: int) -> Transcript:
    return said("hello").then(assistant(f"reply {number}"), Trust.AGENT, NOW)


async def append_at_once(
    database: PostgresDatabase, stores: Stores, spent: Mapping[int, Spending]
) -> tuple[list[Any], list[int]]:
    """Hand steps of six conversations over while their lane is busy. Return what became of each, and how many
    messages each conversation has then."""
    names, released = [SessionId(f"talk-{number}") for number in range(6)], threading.Event()
    for name in names:
        await stores.sessions.start(Header(name, NOW), PREFIX, said("hello").nodes)
    busy = asyncio.create_task(database.call(lambda rows: released.wait(60)))
    calls = [
        asyncio.create_task(stores.sessions.append(name, replied(number).nodes[1:], spent.get(number)))
        for number, name in enumerate(names)
    ]
    await asyncio.sleep(0)
    released.set()
    results = await asyncio.gather(*calls, return_exceptions=True)
    await busy
    return results, [len((await stores.sessions.load(name)).transcript) for name in names]


def test_steps_that_wait_for_one_connection_take_one_transaction(postgres: str) -> None:
    async def story(database: PostgresDatabase, stores: Stores) -> None:
        assert await append_at_once(database, stores, {}) == ([None] * 6, [2] * 6)
        written = "SELECT count(DISTINCT xmin::text) FROM hone.nodes WHERE owner = %(owner)s AND depth = 2"
        assert ask(postgres, written, owner=database.owner) == [(1,)]

    with one_lane(postgres) as opened:
        asyncio.run(story(*opened))


@pytest.mark.parametrize("swallow", [True, False], ids=["answer lost", "question lost"])
def test_steps_that_were_sent_together_happen_once_each_if_the_connection_breaks(
    proxy: Proxy, swallow: bool
) -> None:
    async def story(database: PostgresDatabase, stores: Stores) -> None:
        proxy.mark, proxy.swallow = b"append_steps(", swallow
        assert await append_at_once(database, stores, {}) == ([None] * 6, [2] * 6)
        assert proxy.broken == 1

    with one_lane(proxy.url) as opened:
        asyncio.run(story(*opened))


def test_a_step_that_cannot_be_stored_takes_no_other_with_it(postgres: str) -> None:
    huge = Spending(NOW, "scripted/one", Origin.USER, Usage(2**70))

    async def story(database: PostgresDatabase, stores: Stores) -> None:
        results, lengths = await append_at_once(database, stores, {3: huge})
        assert [type(each) for each in results] == [*[type(None)] * 3, StoreError, *[type(None)] * 2]
        assert lengths == [2, 2, 2, 1, 2, 2]

    with one_lane(postgres) as opened:
        asyncio.run(story(*opened))


def test_nobody_waits_for_steps_that_failed_in_a_way_nobody_thought_of(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise LookupError("a fault of ours")

    async def story(database: PostgresDatabase, stores: Stores) -> None:
        monkeypatch.setattr(appending, "_append_steps", fail)
        results, lengths = await append_at_once(database, stores, {})
        assert ([type(each) for each in results], lengths) == ([LookupError] * 6, [1] * 6)

    with one_lane(postgres) as opened:
        asyncio.run(story(*opened))


def wait_for(url: str, waiting: int) -> None:
    """Return when so many statements wait for others."""
    while ask(url, WAITING) != [(waiting,)]:
        time.sleep(0.01)


def test_an_append_that_is_still_under_way_when_its_connection_breaks_happens_once(
    proxy: Proxy, postgres: str
) -> None:
    """The server works on after the client is gone, so the head tells nothing yet."""
    owner, whole = new_owner(), said("one", "two", "three")

    async def story(stores: Stores) -> None:
        await stores.sessions.start(Header(A, NOW), PREFIX, whole.nodes[:1])
        with psycopg.connect(postgres) as other:  # keeps both attempts waiting, one behind the other
            other.execute("SELECT 1 FROM hone.sessions WHERE owner = %s FOR UPDATE", (owner,))
            proxy.mark, proxy.swallow = b"append(", True
            appending = asyncio.create_task(stores.sessions.append(A, whole.nodes[1:]))
            await asyncio.to_thread(wait_for, postgres, 2)
        await appending
        assert proxy.broken == 1
        assert (await stores.sessions.load(A)).transcript.head == whole.head

    with opened(proxy.url, owner) as stores:
        asyncio.run(story(stores))


@pytest.mark.parametrize("swallow", [True, False], ids=["answer lost", "question lost"])
def test_a_commit_whose_answer_is_lost_is_settled_by_the_transactions_number(
    proxy: Proxy, swallow: bool
) -> None:
    async def story(stores: Stores) -> None:
        changes, contents = note(None, b"text")
        proxy.mark, proxy.swallow = b"COMMIT", swallow
        if swallow:
            [entry] = await stores.ledger.record(changes, contents, NOW)
            assert entry.id == 1
        else:
            with pytest.raises(StoreError):
                await stores.ledger.record(changes, contents, NOW)
        assert proxy.broken == 1
        assert await stores.ledger.latest() == int(swallow), "what is reported is what is there"

    with opened(proxy.url, new_owner()) as stores:
        asyncio.run(story(stores))


async def test_after_the_servers_connections_were_cut_reads_and_writes_go_on(
    stores: Stores, postgres: str
) -> None:
    whole = said("one", "two", "three")
    await stores.sessions.start(Header(A, NOW), PREFIX, whole.nodes[:1])
    await stores.sessions.load(A)
    cut = """
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'
    """
    ask(postgres, cut)
    assert len((await stores.sessions.load(A)).transcript) == 1
    ask(postgres, cut)
    await stores.sessions.append(A, whole.nodes[1:2])
    ask(postgres, cut)
    await stores.jobs.enqueue(A, 1, NAMES, "by hand", NOW)
    assert len((await stores.sessions.load(A)).transcript) == 2


async def test_a_writer_that_hangs_in_the_middle_of_a_write_keeps_nobody_out(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here PostgreSQL waits for a moment, elsewhere for ten seconds."""
    owner, begun, released = new_owner(), threading.Event(), threading.Event()
    pools = [PostgresPool(postgres, lanes=1, readers=1) for _ in range(2)]
    hung, other = (PostgresDatabase(pool, owner) for pool in pools)

    def hang(rows: Rows) -> None:
        begun.set()
        released.wait(60)

    short = database_module.BREAK_OFF.replace("10s", "50ms")
    with monkeypatch.context() as patched:
        patched.setattr(database_module, "BREAK_OFF", short)
        writing = asyncio.create_task(hung.write(hang, alone=True))
        await asyncio.to_thread(begun.wait)
    await other.write(lambda rows: rows.execute("SELECT 1"), alone=True)
    released.set()
    with pytest.raises(StoreError):
        await writing
    for pool in pools:
        await pool.close()


async def test_a_closed_database_takes_nothing_more(postgres: str) -> None:
    stores = open_stores(postgres, "", new_owner())
    await stores.sessions.start(Header(B, NOW), PREFIX, said("one").nodes)
    await stores.close()
    with pytest.raises(StoreError, match="closed"):
        await stores.sessions.load(B)
