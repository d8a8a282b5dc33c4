"""What SQLite adds to the contract of jobs: several processes, kills, databases from before, damage."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from hone.core.errors import Corrupt
from hone.core.ids import SessionId
from hone.core.jobs import Counters, Job, JobId, State, TopicCount
from hone.core.messages import Role, user
from hone.core.ports import Header
from hone.core.topics import NAMES
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.stores import jobs as reviews
from hone.stores.database import Database
from hone.stores.examine import examine
from hone.stores.jobs import SqliteJobs
from hone.stores.ledger import SqliteLedger
from hone.stores.repair import Repaired, repair
from hone.stores.sqlite import SqliteSessions
from tests.conftest import Figures, Tier
from tests.stores.test_sqlite import age, raw, run, worker
from tests.stores.worker import EVERY, NOW, PREFIX, begin

A, B, C, D, E, F, G, X = (SessionId(name) for name in "abcdefgx")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "hone.db"


@contextmanager
def opened(path: Path) -> Iterator[Database]:
    database = Database.open(path)
    try:
        yield database
    finally:
        asyncio.run(database.close())


async def fork(sessions: SqliteSessions, id: SessionId, parent: SessionId) -> None:
    await sessions.start(Header(id, NOW, parent=parent, shared=1), PREFIX, ())


def answers(path: Path, session: SessionId) -> int:
    """How many turns of a session have their last message."""
    with opened(path) as database:
        stored = asyncio.run(SqliteSessions(database).load(session))
    return sum(message.role is Role.ASSISTANT for message in stored.transcript)


def counted(turns: int) -> Counters:
    left = turns % EVERY
    return {"memory": left} if left else {}


def jobs(path: Path, session: SessionId) -> tuple[list[Job], Counters]:
    """All jobs, oldest first, and what the session's tree has counted since."""
    with opened(path) as database:
        store = SqliteJobs(database)
        return list(asyncio.run(store.jobs()))[::-1], asyncio.run(store.counters(session))


def test_two_processes_on_two_branches_of_one_tree_lose_no_count(
    path: Path, tier: Tier, figures: Figures
) -> None:
    count = tier.size(short=100, full=2000)
    with opened(path) as database:
        sessions = SqliteSessions(database)
        asyncio.run(begin(sessions, A, "first"))
        asyncio.run(fork(sessions, B, A))
    with worker("turns", path, "a", str(count)) as one, worker("turns", path, "b", str(count)) as two:
        said = [line.split() for each in run(one, two) for line in each]
    made, counters = jobs(path, B)
    assert (len(said), answers(path, A), answers(path, B)) == (2 * count, count, count)
    assert (len(made), counters) == (2 * count // EVERY, counted(2 * count))
    told = {int(job): (session, 3 + 2 * int(number)) for session, number, job in said if job != "0"}
    assert told == {job.id: (job.session, job.messages) for job in made}
    figures(f"{2 * count} turns in 2 processes, {len(made)} reviews due, {len(made)} queued, 0 lost")


def test_after_a_kill_a_review_is_queued_if_and_only_if_the_turns_last_message_is_there(
    path: Path, tier: Tier, figures: Figures
) -> None:
    kills, random, turns = tier.size(short=8, full=150), tier.random(), 0
    with opened(path) as database:
        asyncio.run(begin(SqliteSessions(database), A, "first"))
    for kill in range(kills):
        name = SessionId(f"k{kill}")
        with opened(path) as database:
            asyncio.run(fork(SqliteSessions(database), name, A))
        with worker("turns", path, name, "100000") as process:
            assert process.stdin
            assert process.stdout
            process.stdin.write("go\n")
            process.stdin.flush()
            heard = [process.stdout.readline() for _ in range(random.randint(1, 40))]
            process.kill()
            heard += process.stdout.read().splitlines(keepends=True)
        stored = answers(path, name)
        assert 0 <= stored - sum(line.endswith("\n") for line in heard) <= 1
        before, turns = turns, turns + stored
        made, counters = jobs(path, name)
        assert (len(made), counters) == (turns // EVERY, counted(turns))
        due = [2 * turn + 1 for turn in range(1, stored + 1) if (before + turn) % EVERY == 0]
        assert [job.messages for job in made if job.session == name] == due
    figures(f"{kills} kills, {turns} turns, {turns // EVERY} reviews due, all queued, none without its turn")


def test_after_a_kill_a_review_is_done_if_and_only_if_its_changes_are_recorded(
    path: Path, tier: Tier, figures: Figures
) -> None:
    kills, random, told = tier.size(short=5, full=100), tier.random(), 0
    with opened(path) as database:
        asyncio.run(begin(SqliteSessions(database), A, "first"))
    for _ in range(kills):
        with worker("finish", path, "a", "100000") as process:
            assert process.stdin
            assert process.stdout
            process.stdin.write("go\n")
            process.stdin.flush()
            heard = [process.stdout.readline() for _ in range(random.randint(1, 40))]
            process.kill()
            heard += process.stdout.read().splitlines(keepends=True)
        done = [int(line) for line in heard if line.endswith("\n")]
        made, _ = jobs(path, A)
        ended = [job for job in made if job.state is State.DONE]
        assert set(done) <= {job.id for job in ended}
        with opened(path) as database:
            ledger = SqliteLedger(database)
            entries = [entry.id for entry in asyncio.run(ledger.entries())][::-1]
            assert asyncio.run(ledger.unsound()) == []
        assert [change for job in ended for change in job.changes] == entries
        assert [job.changes for job in made if job.state is not State.DONE] == [()] * (len(made) - len(ended))
        told += len(done)
    figures(f"{kills} kills, {told} acknowledged, 0 lost, 0 recorded without their review")


def test_jobs_and_counters_are_there_after_reopening_and_ids_are_never_given_again(path: Path) -> None:
    async def queue_two(database: Database) -> tuple[Job | None, Job]:
        sessions, store = SqliteSessions(database), SqliteJobs(database)
        await begin(sessions, A, "first")
        due = await sessions.append(A, (), None, (TopicCount("memory", 4), TopicCount("skills", 5, 5)))
        return due, await store.enqueue(A, 1, NAMES, "by hand", NOW)

    with opened(path) as database:
        made = asyncio.run(queue_two(database))
    assert jobs(path, A) == (list(made), {"memory": 4})
    with raw(path) as connection:
        connection.execute("DELETE FROM jobs")
    with opened(path) as database:
        assert asyncio.run(SqliteJobs(database).enqueue(A, 1, frozenset(), "", NOW)).id == 3


async def families(database: Database) -> None:
    """Three generations, two children of a parent who is gone, and two who are each other's parents."""
    sessions = SqliteSessions(database)
    for root in (A, X, G):
        await begin(sessions, root, f"first of {root}")
    for child, parent in ((B, A), (C, B), (D, X), (E, X), (F, G)):
        await fork(sessions, child, parent)
    await sessions.delete(X)
    await sessions.delete(G)
    alone = Transcript(PREFIX.digest).then(user("again"), Trust.OWNER, NOW)
    await sessions.start(Header(G, NOW, parent=F), PREFIX, alone.nodes)


def test_sessions_from_before_belong_to_the_last_ancestor_that_is_known_by_name(path: Path) -> None:
    with opened(path) as database:
        asyncio.run(families(database))
    age(path, 2)

    async def trees(store: SqliteJobs) -> dict[str, str]:
        names = (A, B, C, D, E, F, G)
        return {id: (await store.enqueue(id, 1, frozenset(), "", NOW)).tree for id in names}

    with opened(path) as database:
        assert asyncio.run(trees(SqliteJobs(database))) == {
            **{A: A, B: A, C: A},
            **{D: X, E: X},
            **{F: F, G: G},
        }


@pytest.mark.parametrize(
    "damage",
    [
        "state = 'odd'",
        "topics = '[\"weather\"]'",
        "topics = '7'",
        "topics = 'x'",
        "created = 1 << 62",
        "ended = 1 << 62",
        "changes = '{'",
        "why = CAST(x'ff' AS TEXT)",
    ],
)
async def test_a_job_that_is_not_what_was_written_is_noticed_and_left_alone(path: Path, damage: str) -> None:
    database = Database.open(path)
    store = SqliteJobs(database)
    await begin(SqliteSessions(database), A, "first")
    for _ in range(2):
        await store.enqueue(A, 1, NAMES, "by hand", NOW)
    with raw(path) as connection:
        connection.execute(f"UPDATE jobs SET {damage} WHERE id = 2")
    for asked in (store.job(JobId(2)), store.jobs(), store.complete(JobId(2), [], {}, None, NOW)):
        with pytest.raises(Corrupt, match=r"damaged.* Restore"):
            await asked
    assert (await store.job(JobId(1))).state is State.QUEUED
    await database.close()


async def test_what_waits_and_what_a_deleted_session_leaves_is_found_without_reading_all_jobs(
    path: Path,
) -> None:
    def plan(connection: apsw.Connection) -> list[str]:
        asked = (reviews.QUEUED, reviews.ORPHAN.replace("?", "NULL"), reviews.UNCOUNT.replace("?1", "NULL"))
        rows = [connection.execute(f"EXPLAIN QUERY PLAN {each}") for each in asked]
        return [step for each in rows for (*_, step) in each]

    database = Database.open(path)
    steps = [step for step in await database.read(plan) if "jobs" in step or "sessions" in step]
    assert [step.partition(" INDEX ")[2].split()[0] for step in steps] == [
        "jobs_queued",
        "jobs_session",
        "sessions_tree",
    ]
    await database.close()


@pytest.mark.parametrize("damaged", [False, True], ids=["migrated", "repaired"])
async def test_what_was_counted_when_each_topic_had_a_column_still_counts(path: Path, damaged: bool) -> None:
    """A row for each tree before the eighth migration, a row for each topic since."""
    database = Database.open(path)
    for each in (A, B, C):
        await begin(SqliteSessions(database), each, f"first of {each}")
    await database.close()
    age(path, 7)
    with raw(path) as connection:
        connection.execute("INSERT INTO counters VALUES ('a', 3, 4), ('b', 0, 9), ('c', 2, 0)")
        connection.execute("UPDATE backlog SET upto = 99")  # as for words from before the index
        if damaged:
            connection.execute("UPDATE sessions SET messages = 7 WHERE id = 'c'")
    if damaged:
        made = await repair(path, NOW)
        assert isinstance(made, Repaired)
        assert made.left == ()
    database = Database.open(path)
    counted = [await SqliteJobs(database).counters(each) for each in (A, B, C)]
    assert await database.read(examine) == []
    await database.close()
    assert counted == [{"memory": 3, "skills": 4}, {"skills": 9}, {"memory": 2}]
