"""What SQLite adds to the contracts of ledger and shelf: one database for all, several processes, damage."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from hone.core.errors import Conflict, Corrupt, StoreError
from hone.core.ids import SessionId
from hone.core.ledger import (
    MEMORY,
    Actor,
    Author,
    Change,
    ChangeId,
    ChangeKind,
    ChangeQuery,
    ChangeState,
    Delta,
    Entry,
    Evidence,
    PublishedFile,
    skill,
)
from hone.core.messages import digest
from hone.core.skill import DOCUMENT, ORIGIN, PINNED, SkillEvent, SkillSummary
from hone.core.trust import Trust
from hone.stores.database import Database
from hone.stores.ledger import SqliteLedger
from hone.stores.record import record
from hone.stores.skill_catalog import SqliteSkillCatalog
from hone.stores.sqlite import SqliteSessions
from tests.conftest import Figures, Tier
from tests.stores.test_sqlite import age, raw, run, worker
from tests.stores.worker import NOW, begin

A, B = digest(b"a"), digest(b"b")
BODIES = {A: b"a", B: b"b"}
OWNER = Author(Actor.OWNER)
NOTE = Change(MEMORY, ChangeKind.ADD, (Delta("MEMORY.md", None, A),), OWNER)


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


def ask(path: Path) -> tuple[list[Entry], list[str], list[str]]:
    """All entries, oldest first, the lines of the journal, and what is unsound."""

    async def asked(ledger: SqliteLedger) -> tuple[list[Entry], list[str], list[str]]:
        entries = list(reversed(await ledger.entries()))
        held = (await ledger.held(MEMORY)).get("MEMORY.md")
        text = (await ledger.contents([held]))[held] if held else b""
        return entries, text.decode().splitlines(), list(await ledger.unsound())

    with opened(path) as database:
        return asyncio.run(asked(SqliteLedger(database)))


def test_two_processes_that_record_at_once_lose_nothing(path: Path, tier: Tier, figures: Figures) -> None:
    count = tier.size(short=100, full=1000)
    with worker("learn", path, "x", str(count)) as one, worker("learn", path, "y", str(count)) as two:
        said = run(one, two)
    acknowledged = [line for each in said for line in each if line != "conflict"]
    entries, lines, unsound = ask(path)
    assert sorted(lines) == sorted(acknowledged)
    assert len(set(lines)) == 2 * count
    assert [entry.change.author.reason for entry in entries] == lines
    assert unsound == []
    conflicts = sum(each.count("conflict") for each in said)
    figures.tally(2 * count, lost=2 * count - len(lines), note=f"changes, {conflicts} conflicts told")


def test_what_a_killed_process_was_told_is_recorded_is_there(
    path: Path, tier: Tier, figures: Figures
) -> None:
    kills, random, told = tier.size(short=5, full=100), tier.random(), 0
    for kill in range(kills):
        with worker("learn", path, f"k{kill}", "100000") as process:
            assert process.stdin
            assert process.stdout
            process.stdin.write("go\n")
            process.stdin.flush()
            heard = [process.stdout.readline().strip() for _ in range(random.randint(1, 40))]
            process.kill()
            heard += process.stdout.read().split("\n")[:-1]
        entries, lines, unsound = ask(path)
        mine = [line for line in lines if line.startswith(f"k{kill} ")]
        assert mine[: len(heard)] == heard
        assert len(mine) - len(heard) <= 1
        assert ([entry.change.author.reason for entry in entries], unsound) == (lines, [])
        told += len(heard)
    figures(f"{kills} kills, {told} acknowledged, 0 lost")


async def test_one_database_serves_all_stores_and_who_opened_it_closes_it(path: Path) -> None:
    database = Database.open(path)
    sessions, ledger, shelf = SqliteSessions(database), SqliteLedger(database), SqliteSkillCatalog(database)
    await begin(sessions, SessionId("a"), "first")
    await ledger.record([NOTE], BODIES, NOW)
    assert (len(await sessions.list()), await shelf.listed(), await ledger.latest()) == (1, (), 1)
    await database.close()
    for asked in (sessions.list(), ledger.latest(), shelf.listed(), ledger.record([], {}, NOW)):
        with pytest.raises(StoreError, match="closed"):
            await asked


async def test_a_record_and_what_else_is_in_its_transaction_happen_together_or_not_at_all(path: Path) -> None:
    database = Database.open(path)
    ledger = SqliteLedger(database)

    def finish(connection: apsw.Connection) -> Sequence[Entry]:
        connection.execute(
            "INSERT INTO uses (skill, day, session) SELECT 'a job', count(*) || '', 'done' FROM uses"
        )
        return record(connection, [NOTE], BODIES, NOW)

    def fail(connection: apsw.Connection) -> None:
        record(
            connection, [Change(skill("x"), ChangeKind.CREATE, (Delta(DOCUMENT, None, B),), OWNER)], {}, NOW
        )
        raise Conflict("the job is no longer ours")

    def done(connection: apsw.Connection) -> int:
        return int(connection.execute("SELECT count(*) FROM uses").get)

    assert await database.write(finish) == await ledger.entries()
    for work, error in ((finish, Conflict), (fail, Conflict)):
        with pytest.raises(error):
            await database.write(work)
    assert (await database.read(done), await ledger.latest(), await ledger.held_below("skill:")) == (1, 1, {})
    assert await ledger.unsound() == []
    await database.close()


def test_a_database_from_before_keeps_its_sessions_and_learns(path: Path) -> None:
    with opened(path) as database:
        asyncio.run(begin(SqliteSessions(database), SessionId("a"), "first"))
    age(path, 1)
    with opened(path) as database:
        asyncio.run(SqliteLedger(database).record([NOTE], BODIES, NOW))
        assert len(asyncio.run(SqliteSessions(database).load(SessionId("a"))).transcript) == 1


async def fill(database: Database) -> None:
    evidence = (Evidence(SessionId("s1"), 1, Trust.OWNER, "x"),)
    create = Change(
        skill("one"),
        ChangeKind.CREATE,
        (Delta(DOCUMENT, None, A), Delta(ORIGIN, None, B), Delta(PINNED, None, B)),
        Author(Actor.AGENT, SessionId("s2"), quotes=("words",), evidence=evidence),
    )
    await SqliteLedger(database).record([NOTE, create], BODIES, NOW)
    await SqliteSkillCatalog(database).save_summaries({A: SkillSummary("one", "words", "words")})
    await SqliteSkillCatalog(database).count("one", SkillEvent.USE, Actor.AGENT, SessionId("s1"), NOW.date())


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE changes SET actor = 'nobody' WHERE id = 2",
        "UPDATE changes SET standing = 'maybe' WHERE id = 2",
        "UPDATE changes SET ground = 9 WHERE id = 2",
        "UPDATE changes SET at = 1 << 62 WHERE id = 2",
        "UPDATE changes SET quotes = 'x' WHERE id = 2",
        "UPDATE changes SET sources = '7' WHERE id = 2",
        "UPDATE changes SET reason = CAST(x'ff' AS TEXT) WHERE id = 2",
        "UPDATE evidence SET trust = 9",
    ],
)
def test_a_change_that_is_not_what_was_written_is_noticed(path: Path, damage: str) -> None:
    with opened(path) as database:
        asyncio.run(fill(database))
        with raw(path) as connection:
            connection.execute(damage)
        ledger = SqliteLedger(database)
        with pytest.raises(Corrupt, match=r"damaged.* Restore"):
            asyncio.run(ledger.entry(ChangeId(2)))
        assert asyncio.run(ledger.entry(ChangeId(1))).change == NOTE


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        ("UPDATE knowledge SET body = x'00' WHERE id = 1", "is not what was written"),
        ("DELETE FROM knowledge WHERE id = 1", "is not there"),
        ("UPDATE holdings SET digest = 'x' WHERE path = 'MEMORY.md'", "memory holds something else"),
        ("DELETE FROM holdings WHERE path = 'MEMORY.md'", "memory holds something else"),
        ("INSERT INTO holdings VALUES ('user', 'USER.md', 'x')", "user holds something else"),
        ("DELETE FROM deltas WHERE change = 1", "memory holds something else"),
        ("UPDATE deltas SET before = after WHERE change = 1", "Change 1 does not begin"),
        ("UPDATE changes SET standing = 'pending' WHERE id = 2", "skill:one holds something else"),
        ("DELETE FROM holdings WHERE path = '@pinned'", "list of skills says something else of one"),
        ("DELETE FROM skills", "list of skills says something else of one"),
        ("INSERT INTO skills VALUES ('two', 'x', NULL, 'user', 0, 0, '')", "something else of two"),
        ("UPDATE skills SET birth = 'bundled'", "list of skills says something else of one"),
    ],
)
async def test_what_is_not_as_the_changes_say_is_listed(path: Path, damage: str, found: str) -> None:
    database = Database.open(path)
    ledger = SqliteLedger(database)
    await fill(database)
    assert await ledger.unsound() == []
    with raw(path) as connection:
        connection.execute(damage)
    assert any(found in line for line in await ledger.unsound()), await ledger.unsound()
    if "knowledge" in damage:
        with pytest.raises(StoreError, match="damaged" if "UPDATE" in damage else "no content"):
            await ledger.contents([A])
    await database.close()


async def test_a_damaged_line_of_a_skill_or_of_a_file_is_noticed(path: Path) -> None:
    database = Database.open(path)
    ledger, shelf = SqliteLedger(database), SqliteSkillCatalog(database)
    await fill(database)
    await ledger.mark_published({(MEMORY, "MEMORY.md"): PublishedFile(A, 1, 2)})
    with raw(path) as connection:
        connection.execute("UPDATE prints SET inode = 'x'")
    with pytest.raises(Corrupt, match="published"):
        await ledger.published_files([MEMORY])
    for damage in ("UPDATE tallies SET last_use = 'soon'", "UPDATE skills SET birth = 'unknown'"):
        with raw(path) as connection:
            connection.execute(damage)
        with pytest.raises(Corrupt, match="skill one"):
            await shelf.listed()
    with pytest.raises(Corrupt, match="skill one"):
        await shelf.usage_counts()
    await database.close()


async def test_cards_of_documents_that_nobody_holds_go_away(path: Path) -> None:
    database = Database.open(path)
    ledger, shelf = SqliteLedger(database), SqliteSkillCatalog(database)
    held: str | None = None
    for number in range(50):
        body = f"version {number}".encode()
        delta = Delta(DOCUMENT, held, digest(body))
        await ledger.record(
            [Change(skill("one"), ChangeKind.EDIT, (delta,), OWNER)], {digest(body): body}, NOW
        )
        await shelf.save_summaries({digest(body): SkillSummary("one", f"words{number}", "same")})
        held = digest(body)

    def counts(connection: apsw.Connection) -> list[int]:
        tables = ("cards", "card_words", "card_words_content")
        return [connection.execute(f"SELECT count(*) FROM {table}").get for table in tables]

    assert await database.read(counts) == [1, 1, 1]
    found = [(await shelf.search([word], 9)).found for word in ("words48", "words49", "same")]
    assert [len(each) for each in found] == [0, 1, 1]
    await database.close()


async def test_words_are_found_in_their_other_forms(path: Path) -> None:
    database = Database.open(path)
    ledger, shelf = SqliteLedger(database), SqliteSkillCatalog(database)
    for name, text in {"deploy": "Deploying services", "bake": "Baking cakes"}.items():
        body = text.encode()
        delta = Delta(DOCUMENT, None, digest(body))
        await ledger.record(
            [Change(skill(name), ChangeKind.CREATE, (delta,), OWNER)], {digest(body): body}, NOW
        )
        await shelf.save_summaries({digest(body): SkillSummary(name, text, "")})
    found = (await shelf.search(["deployed", "service"], 9)).found
    assert [line.name for line, *_ in found] == ["deploy"]
    await database.close()


async def test_what_rests_on_a_session_is_found_without_reading_all_changes(path: Path) -> None:
    asked: list[str] = []

    def plan(connection: apsw.Connection) -> list[str]:
        rows = [
            connection.execute(f"EXPLAIN QUERY PLAN {query}", (None,) * query.count("?")) for query in asked
        ]
        return [step for each in rows for (*_, step) in each]

    def listen(connection: apsw.Connection) -> None:
        connection.trace_v2(apsw.SQLITE_TRACE_STMT, lambda event: asked.append(str(event["sql"])))

    database = Database.open(path)
    ledger = SqliteLedger(database)
    await ledger.record([NOTE, Change(MEMORY, ChangeKind.OTHER, (), OWNER, ChangeState.PENDING)], BODIES, NOW)
    await database.read(listen)
    await ledger.entries(ChangeQuery(session="s1"))
    await ledger.pending()
    await database.read(lambda connection: connection.trace_v2(0))
    asked = [query for query in asked if query.startswith("SELECT")]
    steps = await database.read(plan)
    assert len(asked) == 8
    whole = ("SCAN changes", "SCAN deltas", "SCAN evidence")
    assert [step for step in steps if step.startswith(whole) or step == "SCAN c"] == []
    await database.close()
