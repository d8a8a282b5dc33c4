"""What SQLite adds to the contract: several processes, damaged files, full disks, and who may read."""

import asyncio
import os
import stat
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import pytest

from hone.core.errors import Conflict, Corrupt, Missing, StoreError
from hone.core.ids import SessionId
from hone.core.jobs import JobId, TopicCount
from hone.core.ledger import (
    Actor,
    Author,
    Change,
    ChangeKind,
    ChangeQuery,
    ChangeState,
    Delta,
    Evidence,
    PublishedFile,
    skill,
)
from hone.core.messages import assistant, digest, user
from hone.core.model import Usage
from hone.core.ports import Header, Spending, StoredSession
from hone.core.prefix import Prefix
from hone.core.skill import SkillEvent, SkillSummary
from hone.core.topics import NAMES
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.core.value import replace
from hone.stores.database import MIGRATIONS, Database
from hone.stores.jobs import SqliteJobs
from hone.stores.ledger import SqliteLedger
from hone.stores.skill_catalog import SqliteSkillCatalog
from hone.stores.sqlite import SqliteSessions
from tests.conftest import Figures, Tier
from tests.stores.worker import NOW, PREFIX, OpenedSessions, begin

WORKER = Path(__file__).with_name("worker.py")
A, B = SessionId("a"), SessionId("b")


@contextmanager
def worker(job: str, path: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-W", "error", str(WORKER), job, str(path), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def run(*processes: subprocess.Popen[str]) -> list[list[str]]:
    """Lets all of them go at once; returns what each has said."""
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate()[0].splitlines() for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), said
    return said


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@contextmanager
def opened(path: Path) -> Iterator[SqliteSessions]:
    store = OpenedSessions.open(path)
    try:
        yield store
    finally:
        asyncio.run(store.close())


def raw(path: Path) -> closing[apsw.Connection]:
    return closing(apsw.Connection(str(path)))


def texts(path: Path, session: SessionId) -> list[str]:
    with opened(path) as store:
        return [message.text for message in asyncio.run(store.load(session)).transcript]


def test_two_processes_with_a_session_each_lose_nothing(path: Path, tier: Tier, figures: Figures) -> None:
    count = tier.size(short=100, full=2000)
    with worker("own", path, "a", "a", str(count)) as one, worker("own", path, "b", "b", str(count)) as two:
        said = run(one, two)
    stored = [texts(path, A), texts(path, B)]
    assert stored == said
    assert [len(each) for each in said] == [count + 1] * 2
    figures.tally(2 * count, lost=2 * count + 2 - sum(map(len, stored)), note="messages in a session each")


def test_two_processes_on_one_session_conflict_openly_and_lose_nothing(
    path: Path, tier: Tier, figures: Figures
) -> None:
    count = tier.size(short=100, full=2000)
    with opened(path) as store:
        asyncio.run(begin(store, A, "first"))
    with worker("same", path, "a", "x", str(count)) as one, worker("same", path, "a", "y", str(count)) as two:
        said = run(one, two)
    acknowledged = [line for each in said for line in each if line != "conflict"]
    stored = texts(path, A)[1:]
    assert sorted(stored) == sorted(acknowledged)
    assert len(set(stored)) == 2 * count
    assert [[line for line in stored if line[0] == name] for name in "xy"] == [
        [f"{name} {number}" for number in range(count)] for name in "xy"
    ]
    conflicts = sum(each.count("conflict") for each in said)
    figures.tally(2 * count, note=f"messages in one session, {conflicts} conflicts told")


def test_what_a_killed_process_was_told_is_stored_is_there(path: Path, tier: Tier, figures: Figures) -> None:
    kills, random, told = tier.size(short=5, full=100), tier.random(), 0
    for kill in range(kills):
        with worker("own", path, f"k{kill}", "x", "100000") as process:
            assert process.stdin
            assert process.stdout
            process.stdin.write("go\n")
            process.stdin.flush()
            heard = [process.stdout.readline().strip() for _ in range(random.randint(1, 60))]
            process.kill()
            heard += process.stdout.read().split("\n")[:-1]
        stored = texts(path, SessionId(f"k{kill}"))
        told += len(heard)
        assert stored[: len(heard)] == heard
        assert len(stored) - len(heard) <= 1
    figures(f"{kills} kills, {told} acknowledged, 0 lost")


def test_several_processes_may_open_a_fresh_file_at_once(path: Path, tier: Tier) -> None:
    count = tier.size(short=10, full=400)
    with (
        worker("open", path, str(count)) as one,
        worker("open", path, str(count)) as two,
        worker("open", path, str(count)) as three,
        worker("own", path.with_name("fresh-0.db"), "a", "a", "3") as four,
    ):
        assert run(one, two, three, four) == [[], [], [], ["first", "a 0", "a 1", "a 2"]]
    for number in range(count):
        with raw(path.with_name(f"fresh-{number}.db")) as connection:
            assert connection.pragma("user_version") == len(MIGRATIONS)
            assert connection.pragma("journal_mode") == "wal"
            assert connection.pragma("integrity_check") == "ok"


async def test_a_load_shows_one_moment_whatever_is_written_meanwhile(path: Path) -> None:
    store = OpenedSessions.open(path)
    await begin(store, A, "first")

    async def replace() -> None:
        for _ in range(100):
            await store.delete(A)
            await begin(store, A, "again")

    async def load() -> int:
        loaded = 0
        while not replacing.done():
            results = await asyncio.gather(*(store.load(A) for _ in range(8)), return_exceptions=True)
            assert {type(each) for each in results} <= {StoredSession, Missing}
            loaded += len(results)
        return loaded

    replacing = asyncio.create_task(replace())
    assert await load() > 0
    await replacing
    await store.close()


def age(path: Path, version: int) -> None:
    """Writes the sessions of a database into one as that many migrations made it, in its place."""
    old = path.with_name("old.db")
    with raw(old) as connection:
        for script in MIGRATIONS[:version]:
            connection.execute(script.read_text("utf-8"))
        connection.pragma("user_version", version)
        connection.execute("ATTACH ? AS present", (str(path),))
        for table in ("prefixes", "contents", "chains", "nodes", "sessions", "spending"):
            names = ", ".join(row[1] for row in connection.execute(f"PRAGMA main.table_info({table})"))
            connection.execute(f"INSERT INTO main.{table} ({names}) SELECT {names} FROM present.{table}")
    for each in path.parent.glob(f"{path.name}*"):
        each.unlink()
    old.rename(path)


def test_migrations_are_numbered_without_gaps() -> None:
    assert [int(script.name[:4]) for script in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))


def fingerprint(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


def write_newer(path: Path) -> None:
    with raw(path) as connection:
        connection.execute(f"CREATE TABLE later (x); PRAGMA user_version = {len(MIGRATIONS) + 1}")


def write_foreign(path: Path) -> None:
    with raw(path) as connection:
        connection.execute("CREATE TABLE bookmarks (x); INSERT INTO bookmarks VALUES ('mine')")


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (write_newer, StoreError, "newer Hone"),
        (lambda path: path.write_text("Dear diary,\n" * 500), Corrupt, "not a database"),
        (lambda path: path.write_text("short"), Corrupt, "not a database"),
        (lambda path: path.mkdir(), StoreError, "cannot be opened"),
    ],
)
def test_a_file_that_is_not_ours_to_write_is_refused_and_left_as_it_is(
    path: Path, make: Callable[[Path], Any], error: type[StoreError], words: str
) -> None:
    make(path)
    before = {} if path.is_dir() else fingerprint(path.parent)
    with pytest.raises(error, match=words):
        OpenedSessions.open(path)
    assert before == ({} if path.is_dir() else fingerprint(path.parent))


def test_the_database_of_another_program_keeps_its_tables_and_gets_none(path: Path) -> None:
    write_foreign(path)
    with pytest.raises(StoreError, match="another program"):
        OpenedSessions.open(path)
    with raw(path) as connection:
        assert connection.execute("SELECT name FROM sqlite_schema").get == "bookmarks"


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE contents SET body = CAST(replace(CAST(body AS TEXT), 'two', 'TWO') AS BLOB) WHERE id = 2",
        "UPDATE contents SET body = substr(body, 1, 20) WHERE id = 2",
        "UPDATE contents SET digest = replace(digest, substr(digest, 1, 4), '0123') WHERE id = 2",
        "DELETE FROM contents WHERE id = 2",
        "DELETE FROM nodes WHERE id = 1",
        "DELETE FROM nodes WHERE id = 2",
        "DELETE FROM nodes WHERE id = 3",
        "UPDATE nodes SET content = 1 WHERE id = 2",
        "UPDATE nodes SET hash = upper(hash) WHERE id = 2",
        "UPDATE nodes SET parent = 3 WHERE id = 2",
        "UPDATE nodes SET parent = NULL WHERE id = 2",
        "UPDATE nodes SET depth = 7 WHERE id = 2",
        "UPDATE nodes SET trust = 9 WHERE id = 2",
        "UPDATE nodes SET at = 1 << 62 WHERE id = 2",
        "UPDATE nodes SET hash = CAST(x'ff' AS TEXT) WHERE id = 2",
        "UPDATE sessions SET head = 2 WHERE id = 'a'",
        "UPDATE sessions SET head = 4 WHERE id = 'a'",
        "UPDATE sessions SET origin = 'usar' WHERE id = 'a'",
        "UPDATE sessions SET title = CAST(x'ff' AS TEXT) WHERE id = 'a'",
        "UPDATE prefixes SET body = CAST(replace(CAST(body AS TEXT), 'help', 'harm') AS BLOB) WHERE id = 1",
        "UPDATE chains SET prefix = 77 WHERE id = 1",
    ],
)
def test_a_row_that_is_not_what_was_written_is_noticed_and_its_session_can_be_deleted(
    path: Path, damage: str
) -> None:
    async def fill(store: SqliteSessions) -> None:
        transcript = await begin(store, A, "one")
        longer = transcript.then(assistant("two"), Trust.AGENT, NOW).then(user("three"), Trust.OWNER, NOW)
        await store.append(A, longer.nodes[1:])
        other = Prefix("scripted/two", "Other.")
        alone = Transcript(other.digest).then(user("b alone"), Trust.OWNER, NOW)
        await store.start(Header(B, NOW), other, alone.nodes)

    with opened(path) as store:
        asyncio.run(fill(store))
    with raw(path) as connection:
        connection.execute(damage)
        assert connection.changes() == 1
    with opened(path) as store:
        with pytest.raises(Corrupt, match=r"damaged.* Restore") as caught:
            asyncio.run(store.load(A))
        assert ("its prefix" in str(caught.value)) == ("prefix" in damage)
        asyncio.run(store.delete(A))
        with pytest.raises(Missing):
            asyncio.run(store.load(A))
        assert asyncio.run(store.load(B)).transcript.nodes[0].message.text == "b alone"
        asyncio.run(store.rename(B, "still writable"))


async def test_nothing_is_added_to_a_session_whose_last_message_is_gone(path: Path) -> None:
    store = OpenedSessions.open(path)
    transcript = await begin(store, A, "first")
    with raw(path) as connection:
        connection.execute("DELETE FROM nodes")
    with pytest.raises(Corrupt, match=r"damaged.* Restore"):
        await store.append(A, grown(transcript).nodes[1:])
    assert (await store.list())[0].messages == 1
    await store.close()


Answers = dict[str, Any]
BODIES = [f"skill {number} ".encode() * 800 for number in range(6)]


async def answers(database: Database) -> Answers:
    """All that can be asked, each question by itself; an error is an answer."""
    store, found = SqliteSessions(database), await learned(database)
    for name in [f"s{number}" for number in range(6)]:
        id = SessionId(name)
        try:
            stored = await store.load(id)
            nodes = [(node.encoded, node.hash, node.trust, node.at) for node in stored.transcript.nodes]
            found[name] = (stored.header, stored.prefix, nodes)
        except StoreError as error:
            found[name] = type(error)
    try:
        found["list"] = await store.list()
        found["spending"] = await store.spending()
    except StoreError as error:
        found["list"] = type(error)
    return found


async def learned(database: Database) -> Answers:
    ledger, shelf, jobs = SqliteLedger(database), SqliteSkillCatalog(database), SqliteJobs(database)
    questions: dict[str, Callable[[], Awaitable[Any]]] = {
        "entries": ledger.entries,
        "of a target": lambda: ledger.entries(ChangeQuery(target=skill("s3"))),
        "of a session": lambda: ledger.entries(ChangeQuery(session="s2")),
        "pending": ledger.pending,
        "held_below": lambda: ledger.held_below(""),
        "contents": lambda: ledger.contents([digest(body) for body in BODIES]),
        "prints": lambda: ledger.published_files([skill(f"s{number}") for number in range(6)]),
        "listed": shelf.listed,
        "ranked": lambda: shelf.ranked("", NOW.date(), 9),
        "uncarded": shelf.unsummarized,
        "tallies": shelf.usage_counts,
        "jobs": jobs.jobs,
        "queue": jobs.waiting,
        "a job": lambda: jobs.job(JobId(4)),
        "counters": lambda: jobs.counters(SessionId("s3")),
    }
    found: Answers = {}
    for name, question in questions.items():
        try:
            found[name] = await question()
        except StoreError as error:
            found[name] = type(error)
    return found


def ask(path: Path) -> Answers:
    try:
        database = Database.open(path)
    except StoreError as error:
        return {"open": type(error)}

    async def asked() -> Answers:
        found = await answers(database)
        await database.close()
        return found

    return asyncio.run(asked())


async def fill(path: Path) -> None:
    """Six sessions with short and long messages and a job each, and six skills, none of them in the log."""
    database = Database.open(path)
    store, ledger, shelf = SqliteSessions(database), SqliteLedger(database), SqliteSkillCatalog(database)
    for number in range(6):
        id = SessionId(f"s{number}")
        transcript = await begin(store, id, f"session {number}")
        for size in (10, 300, 9000, 20, 5000) * 4:
            transcript = transcript.then(assistant(f"{id} {size} " * (size // 10)), Trust.AGENT, NOW)
        usage = Usage(1, 2, 3, 4, 0.5)
        spent = Spending(NOW, "m", Origin.USER, usage)
        await store.append(id, transcript.nodes[1:], spent, [TopicCount(name, 1, 1) for name in NAMES])
        await store.append(id, (), None, (TopicCount("memory", 3), TopicCount("skills", 4)))
        body = BODIES[number]
        delta = Delta("SKILL.md", None, digest(body))
        author = Author(Actor.AGENT, id, reason="because", evidence=(Evidence(id, 1, Trust.OWNER, "x"),))
        made = Change(skill(id), ChangeKind.CREATE, (delta,), author)
        await ledger.record([made, replace(made, standing=ChangeState.PENDING)], {digest(body): body}, NOW)
        await ledger.mark_published({(skill(id), "SKILL.md"): PublishedFile(digest(body), number, number)})
        await shelf.save_summaries({digest(body): SkillSummary(id, f"{id} in words", "more")})
        await shelf.count(id, SkillEvent.USE, Actor.AGENT, id, NOW.date())
    await database.close()
    with raw(path) as connection:
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").get[0] == 0


def test_an_overwritten_page_is_noticed_and_never_gives_a_wrong_answer(
    path: Path, tier: Tier, figures: Figures
) -> None:
    asyncio.run(fill(path))
    expected, whole = ask(path), path.read_bytes()
    pages = len(whole) // 4096
    random, tried, noticed = tier.random(), tier.size(short=80, full=20 * pages), 0
    for number in range(tried):
        page = number % pages if tier.long else random.randrange(pages)
        damaged = path.with_name(f"damaged-{number}.db")
        junk = bytes(4096) if random.random() < 0.5 else random.randbytes(4096)
        damaged.write_bytes(whole[: page * 4096] + junk + whole[(page + 1) * 4096 :])
        found = ask(damaged)
        wrong = {key for key, value in found.items() if value != expected.get(key)}
        noticed += bool(wrong)
        assert all(isinstance(found[key], type) and found[key] is not Missing for key in wrong), (page, wrong)
        for each in path.parent.glob("damaged-*"):
            each.unlink()
    assert noticed > tried // 3
    figures(
        f"{tried} pages overwritten, {noticed} noticed, {tried - noticed} made no difference, 0 wrong answers"
    )


@pytest.mark.rights
def test_a_read_only_folder_gives_a_store_error(tier: Tier) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        with opened(folder / "old.db") as store:
            asyncio.run(begin(store, A, "first"))
        for each in folder.iterdir():
            each.chmod(0o444)
        folder.chmod(0o555)
        with worker("nobody", folder / "new.db", "a", "x", "1") as process:
            assert run(process)[0][0].startswith("StoreError: ")
        with worker("nobody", folder / "old.db", "a", "x", "1") as process:
            assert "read-only" in run(process)[0][0]
        folder.chmod(0o700)
        assert texts(folder / "old.db", A) == ["first"]
        assert not (folder / "new.db").exists()


def test_a_missing_folder_gives_a_store_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        OpenedSessions.open(tmp_path / "nowhere" / "sessions.db")


def test_a_full_disk_gives_a_store_error_and_keeps_what_was_acknowledged(path: Path) -> None:
    with opened(path) as store:
        asyncio.run(begin(store, A, "first"))
    with worker("full", path, "a", "x", "1000") as process:
        *acknowledged, last = run(process)[0]
    assert last.startswith("StoreError: ")
    assert acknowledged
    assert [text.rstrip("x") for text in texts(path, A)[1:]] == acknowledged


def test_only_the_owner_can_read_the_files(path: Path) -> None:
    before = os.umask(0)
    try:
        with opened(path) as store:
            asyncio.run(begin(store, A, "secret"))
            modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == {f"sessions.db{end}": 0o600 for end in ("", "-wal", "-shm")}


def test_a_deleted_sessions_words_are_gone_from_every_table(path: Path) -> None:
    async def histories(store: SqliteSessions) -> None:
        transcript = await begin(store, A, "shared words")
        longer = transcript.then(assistant("secret words"), Trust.AGENT, NOW)
        await store.append(A, longer.nodes[1:])
        await store.start(Header(B, NOW, parent=A, shared=1), PREFIX, ())
        other = Prefix("scripted/two", "Other.")
        await store.move(A, other, longer.rooted(other.digest))
        await store.delete(A)

    with opened(path) as store:
        asyncio.run(histories(store))
    with raw(path) as connection:
        assert [bytes(body) for (body,) in connection.execute("SELECT body FROM contents")] == [
            transcript_bytes("shared words")
        ]
        counts = [
            connection.execute(f"SELECT count(*) FROM {name}").get for name in ("nodes", "chains", "prefixes")
        ]
        assert counts == [1, 1, 1]
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert b"secret words" not in path.read_bytes()


def transcript_bytes(words: str) -> bytes:
    return Transcript("").then(user(words), Trust.OWNER, NOW).nodes[0].encoded


async def test_in_a_group_of_writes_a_conflict_fails_alone_and_a_cancelled_caller_is_no_trouble(
    path: Path,
) -> None:
    store = OpenedSessions.open(path)
    transcripts = {name: await begin(store, SessionId(name), name) for name in "abcdef"}
    with raw(path) as other:
        other.execute("BEGIN IMMEDIATE")  # so that all of them wait, and then go together
        appends = [
            store.append(SessionId(name), grown(transcript, stale=name in "bd").nodes[1:])
            for name, transcript in transcripts.items()
        ]
        tasks = [asyncio.create_task(each) for each in appends]
        await asyncio.sleep(0)
        tasks[2].cancel()
        await asyncio.sleep(0)
        other.execute("COMMIT")
    results = await asyncio.gather(*tasks, return_exceptions=True)
    given_up, done = asyncio.CancelledError, type(None)
    assert [type(each) for each in results] == [done, Conflict, given_up, Conflict, done, done]
    lengths = [len((await store.load(SessionId(name))).transcript) for name in transcripts]
    assert lengths == [1 if name in "bd" else 2 for name in transcripts]
    await store.close()


def grown(transcript: Transcript, *, stale: bool = False) -> Transcript:
    base = Transcript(PREFIX.digest).then(user("other"), Trust.OWNER, NOW) if stale else transcript
    return base.then(assistant("more"), Trust.AGENT, NOW)


async def test_a_file_that_another_process_keeps_locked_is_a_store_error_and_later_works(path: Path) -> None:
    database = Database.open(path, patience=0.01)
    store = SqliteSessions(database)
    with raw(path) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked"):
            await begin(store, A, "first")
        assert await store.list() == ()
        other.execute("ROLLBACK")
    await begin(store, A, "first")
    await database.close()


async def test_closing_waits_for_what_was_handed_over_and_then_nothing_more_is_taken(path: Path) -> None:
    store = OpenedSessions.open(path)
    with raw(path) as other:
        other.execute("BEGIN IMMEDIATE")
        tasks = [asyncio.create_task(begin(store, SessionId(f"s{number}"), "x")) for number in range(50)]
        closing = asyncio.create_task(store.close())
        await asyncio.sleep(0)
        other.execute("COMMIT")
    await closing
    await store.close()
    assert [len(each) for each in await asyncio.gather(*tasks)] == [1] * 50
    for asked in (begin(store, A, "x"), store.list()):
        with pytest.raises(StoreError, match="closed"):
            await asked
    again = OpenedSessions.open(path)
    assert len(await again.list()) == 50
    await again.close()


def test_a_write_survives_the_event_loop_of_its_caller(path: Path) -> None:
    async def hand_over(transcript: Transcript) -> None:
        task = asyncio.create_task(store.append(A, grown(transcript).nodes[1:]))
        await asyncio.sleep(0)
        assert not task.done()

    with opened(path) as store:
        transcript = asyncio.run(begin(store, A, "first"))
        with raw(path) as other:
            other.execute("BEGIN IMMEDIATE")
            asyncio.run(hand_over(transcript))
            other.execute("COMMIT")
        asyncio.run(begin(store, B, "and the writer goes on"))
        assert len(asyncio.run(store.load(A)).transcript) == 2


async def test_a_commit_waits_for_the_disk(path: Path) -> None:
    database = Database.open(path)
    assert await database.write(lambda connection: connection.pragma("synchronous")) == 2
    assert await database.read(lambda connection: connection.pragma("journal_mode")) == "wal"
    await database.close()


async def test_a_value_that_sqlite_cannot_hold_is_refused_and_the_next_write_goes_well(path: Path) -> None:
    store = OpenedSessions.open(path)
    transcript = await begin(store, A, "first")
    absurd = Spending(NOW, "m", Origin.USER, Usage(input=1 << 70))
    with pytest.raises(StoreError, match="cannot hold"):
        await store.append(A, grown(transcript).nodes[1:], absurd)
    await store.append(A, grown(transcript).nodes[1:])
    assert (len((await store.load(A)).transcript), await store.spending()) == (2, ())
    await store.close()


async def test_nobody_waits_for_a_writer_that_broke_down(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(_: apsw.Connection) -> None:
        raise AssertionError("a mistake of ours")

    seen: list[Any] = []
    monkeypatch.setattr("threading.excepthook", seen.append)
    database = Database.open(path)
    results = await asyncio.gather(*(database.write(break_down) for _ in range(3)), return_exceptions=True)
    await database.close()
    assert [type(each) for each in results] == [StoreError] * 3
    assert [each.exc_type for each in seen] == [AssertionError]


async def test_a_list_of_many_sessions_reads_no_conversation(path: Path) -> None:
    store = OpenedSessions.open(path)
    for number in range(20):
        await begin(store, SessionId(f"s{number}"), f"words {number}")
    with raw(path) as connection:
        connection.execute("UPDATE contents SET body = x''")
    assert [each.opening for each in await store.list(2)] == ["words 19", "words 18"]
    await store.close()
