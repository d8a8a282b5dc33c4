"""The index in SQLite: kept with the contents, filled for older databases, read beside writers."""

import asyncio
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.errors import Conflict
from hone.core.ids import SessionId
from hone.core.messages import assistant, user
from hone.core.ports import Header, Sessions
from hone.core.prefix import Prefix
from hone.core.recall import Query
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.stores import passages
from hone.stores.database import MIGRATIONS, Database
from hone.stores.recall import SqliteRecall, search
from hone.stores.sqlite import SqliteSessions
from hone.stores.sqlite_source import SqliteSource
from hone.stores.terms import COMMON
from tests.conftest import Figures, Tier
from tests.stores.worker import OpenedSessions
from tests.tier import fewer

NOW = datetime(2026, 3, 5, 12, tzinfo=UTC)
PREFIX, OTHER = Prefix("scripted/one", "One."), Prefix("scripted/two", "Two.")
A, B = SessionId("a"), SessionId("b")
WORDS = ["apple", "boiler", "cellar", "东京", "rain", "Zürich"]
WRITER = """
import asyncio, sys
from pathlib import Path
from hone.core.messages import user
from tests.stores.test_recall import *
async def main(path, name, count):
    store = OpenedSessions.open(Path(path))
    chain = talk(name)
    await store.start(Header(SessionId(name), NOW), PREFIX, chain.nodes)
    print("begun", flush=True)
    for number in range(int(count)):
        chain = chain.then(user(f"{name} harbour {number}"), Trust.OWNER, NOW)
        await store.append(SessionId(name), chain.nodes[-1:])
    await store.close()
asyncio.run(main(*sys.argv[1:]))
"""


def talk(*texts: str, prefix: Prefix = PREFIX) -> Transcript:
    chain = Transcript(prefix.digest)
    for text in texts:
        chain = chain.then(user(text), Trust.OWNER, NOW)
    return chain


def raw(path: Path) -> closing[apsw.Connection]:
    return closing(apsw.Connection(str(path)))


def left(path: Path) -> tuple[list[int], list[int], list[str]]:
    """The ids of contents, those that the index knows, and the words that it holds."""
    with raw(path) as connection:
        connection.execute("CREATE VIRTUAL TABLE temp.held USING fts5vocab (main, passage_words, instance)")
        contents = [id for (id,) in connection.execute("SELECT id FROM contents ORDER BY id")]
        held: list[Any] = connection.execute("SELECT doc, term FROM temp.held").fetchall()
        return contents, sorted({id for id, _ in held}), sorted({term for _, term in held})


def test_a_deleted_sessions_words_are_in_no_byte_of_the_index(tmp_path: Path) -> None:
    async def story(database: Database) -> None:
        store = SqliteSessions(database)
        await store.start(Header(A, NOW), PREFIX, talk("the xqzvkwj canary", "another message").nodes)
        for number in range(50):
            await store.start(Header(SessionId(f"s{number}"), NOW), PREFIX, talk(f"xqzvkw {number}").nodes)
        assert (await SqliteRecall(database).search(Query("canary"))).hits
        await store.delete(A)
        await database.close()

    path = tmp_path / "hone.db"
    asyncio.run(story(Database.open(path)))
    with raw(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("INSERT INTO passage_words (passage_words) VALUES ('integrity-check')")
    contents, known, words = left(path)
    assert contents == known
    assert not {"xqzvkwj", "canari", "anoth"} & set(words)
    assert b"canari" not in path.read_bytes()


async def play(store: Sessions, steps: list[tuple[str, int, str]]) -> list[SessionId]:
    """What can be done with sessions, one step after the other; gives those that are there in the end."""
    alive: list[SessionId] = []
    for number, (deed, which, text) in enumerate(steps):
        name, new = (alive[which % len(alive)] if alive else A), SessionId(f"s{number}")
        if deed == "start" or not alive:
            await store.start(Header(new, NOW), PREFIX, talk(text, "yes").nodes)
            alive.append(new)
            continue
        stored = await store.load(name)
        chain = stored.transcript
        match deed:
            case "append":
                longer = chain.then(assistant(text), Trust.AGENT, NOW)
                await store.append(name, longer.nodes[-1:])
            case "branch":
                header = Header(new, NOW, parent=name, shared=1 + which % len(chain))
                await store.start(header, stored.prefix, ())
                alive.append(new)
            case "move":
                await store.move(name, OTHER, chain.rooted(OTHER.digest))
            case "shorten":
                short = talk(chain.nodes[0].message.text, text, prefix=stored.prefix)
                await store.shorten(name, chain.head, short)
            case "delete":
                await store.delete(name)
                alive.remove(name)
    return alive


deeds = st.sampled_from(["start", "append", "append", "branch", "move", "shorten", "delete"])
steps = st.lists(st.tuples(deeds, st.integers(0, 9), st.sampled_from(WORDS)), max_size=25)


@fewer(30)
@given(steps)
def test_over_any_history_each_content_is_indexed_once_and_every_hit_can_be_opened(
    history: list[tuple[str, int, str]],
) -> None:
    async def whole(path: Path) -> None:
        database = Database.open(path)
        store, recall = SqliteSessions(database), SqliteRecall(database)
        alive = await play(store, history)
        held: set[str] = set()
        for name in alive:
            lines = (*await store.earlier(name), await store.load(name))
            held |= {node.message.text for line in lines for node in line.transcript.nodes}
        for word in WORDS:
            hits = (await recall.search(Query(f'"{word}"', 50))).hits
            assert bool(hits) == (word in held)
            for hit in hits:
                id, number = hit.header.id, hit.passage.number
                kept = await store.earlier(id) if hit.left else [await store.load(id)]
                said = [each.transcript.nodes[number - 1 : number] for each in kept]
                assert hit.passage.text in [node.message.text for nodes in said for node in nodes]
        for name in alive:
            await store.delete(name)
        await database.close()

    with TemporaryDirectory() as folder:
        path = Path(folder) / "hone.db"
        asyncio.run(whole(path))
        assert left(path) == ([], [], [])


def older(path: Path, texts: list[str]) -> None:
    """A database as it was before there was an index."""
    asyncio.run(_filled(path, texts))
    with raw(path) as connection:
        connection.execute(
            "DROP TABLE passage_words; DROP TABLE backlog; DROP INDEX nodes_at; DROP INDEX sessions_chain;"
            # What came later.
            "DROP TRIGGER sessions_deleted; DROP TABLE histories; DROP INDEX spending_at;"
            "DROP TRIGGER spending_added; DROP VIEW spending_by_hour; DROP TABLE spending_hours;"
            "DROP TRIGGER contents_deleted; DROP TABLE vectors; DROP TABLE vector_codes;"
            "DROP TABLE meanings; DROP TABLE embedders; DROP TABLE erasures;"
            "DROP TABLE outbox; DROP TABLE mirror; DROP TABLE rounds; DROP INDEX changes_batch;"
            "DROP INDEX changes_session; ALTER TABLE changes DROP COLUMN batch;"
            "ALTER TABLE changes DROP COLUMN platform; DROP TABLE looks;"
            "DROP INDEX jobs_session; ALTER TABLE jobs DROP COLUMN others;"
            "CREATE INDEX jobs_session ON jobs (session);"
            "CREATE INDEX changes_session ON changes (session);"
            + "".join(f"DROP INDEX {index};" for index in TWICE)
            + "ALTER TABLE cards DROP COLUMN words; ALTER TABLE cards DROP COLUMN stems; DROP TABLE counts;"
            "CREATE TABLE counters (tree TEXT NOT NULL PRIMARY KEY, turns INTEGER NOT NULL,"
            "    iterations INTEGER NOT NULL) STRICT, WITHOUT ROWID"
        )
        connection.pragma("user_version", RECALL)


STATEMENTS = 30
TWICE = ("deltas_whole", "prints_whole", "cards_whole", "tallies_whole")
RECALL = next(place for place, script in enumerate(MIGRATIONS) if "recall" in script.name)


async def _filled(path: Path, texts: list[str], name: SessionId = A) -> None:
    store = OpenedSessions.open(path)
    await store.start(Header(name, NOW), PREFIX, talk(*texts).nodes)
    await store.close()


async def test_older_messages_are_added_by_the_first_search(tmp_path: Path) -> None:
    path = tmp_path / "hone.db"
    await asyncio.to_thread(older, path, [f"harbour number{n}" for n in range(2_500)])
    database = Database.open(path)
    recall = SqliteRecall(database)
    assert await database.read(passages.waiting) == 2_500
    found = await recall.search(Query("number1"))
    assert ([hit.passage.number for hit in found.hits[:1]], found.waiting) == ([2], 0)
    await database.close()


async def test_a_message_is_found_at_once_although_it_is_indexed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stored by another process, which then neither rests nor ends."""
    monkeypatch.setattr("hone.stores.writer.QUIET", 3_600.0)
    path = tmp_path / "hone.db"
    one, other = Database.open(path), Database.open(path)
    for name, word in ((A, "harbour"), (B, "lighthouse")):
        await SqliteSessions(one).start(Header(name, NOW), PREFIX, talk(word).nodes)
        assert await one.read(passages.waiting) == 1
        found = await SqliteRecall(other).search(Query(word))
        assert ([hit.passage.text for hit in found.hits], found.waiting) == ([word], 0)
    await one.close()
    await other.close()


async def test_messages_are_indexed_in_a_quiet_moment_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "hone.db"
    monkeypatch.setattr("hone.stores.writer.QUIET", 0.001)
    quiet = Database.open(path)
    await SqliteSessions(quiet).start(Header(A, NOW), PREFIX, talk("harbour").nodes)
    async with asyncio.timeout(20):
        while await quiet.read(passages.waiting):
            pass
    await quiet.close()
    monkeypatch.setattr("hone.stores.writer.QUIET", 3_600.0)
    await _filled(path, ["lighthouse"], B)
    contents, known, words = await asyncio.to_thread(left, path)
    assert (contents, words) == (known, ["harbour", "lighthous"])


async def test_many_writes_without_a_pause_do_not_leave_the_index_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hone.stores.writer.QUIET", 3_600.0)
    monkeypatch.setattr("hone.stores.writer.BEHIND", 2)
    monkeypatch.setattr(passages, "FEW", 5)
    database = Database.open(tmp_path / "hone.db")
    store, most = SqliteSessions(database), 0
    for number in range(40):
        await store.start(Header(SessionId(f"s{number}"), NOW), PREFIX, talk(f"boiler {number}").nodes)
        most = max(most, await database.read(passages.waiting))
    await database.close()
    assert 0 < most <= 6


async def test_the_number_of_a_deleted_message_is_indexed_anew_when_it_is_given_again(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "hone.db")
    store, recall = SqliteSessions(database), SqliteRecall(database)
    for word, gone in (("apple", ""), ("boiler", "apple"), ("cellar", "boiler")):
        await store.start(Header(A, NOW), PREFIX, talk(word).nodes)
        found = (await recall.search(Query("apple boiler cellar"))).hits
        assert [hit.passage.text for hit in found] == [word], gone
        await store.delete(A)
    await database.close()
    assert (await asyncio.to_thread(left, tmp_path / "hone.db"))[2] == []


async def test_adding_goes_on_where_it_was_broken_off_and_leaves_out_what_was_deleted(tmp_path: Path) -> None:
    path = tmp_path / "hone.db"
    await asyncio.to_thread(older, path, ["first", "second", "third"])
    database = Database.open(path)
    store = SqliteSessions(database)
    assert await database.write(lambda connection: passages.fill(connection, 2)) == 2
    assert await database.read(passages.waiting) == 1
    await store.start(Header(B, NOW), PREFIX, talk("fourth").nodes)
    await store.delete(A)
    found = await SqliteRecall(database).search(Query("first second third fourth"))
    assert ([hit.passage.text for hit in found.hits], found.waiting) == (["fourth"], 0)
    await store.delete(B)
    await database.close()
    assert await asyncio.to_thread(left, path) == ([], [], [])


@pytest.mark.parametrize(
    "damage", ["UPDATE contents SET body = x'00' WHERE id = 1", "UPDATE nodes SET trust = 77 WHERE id = 1"]
)
async def test_a_damaged_row_is_left_out_and_its_session_can_be_deleted(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "hone.db"
    await _filled(path, ["harbour one", "harbour two"])
    with raw(path) as connection:
        connection.execute(damage)
    database = Database.open(path)
    hits = (await SqliteRecall(database).search(Query('"harbour two"'))).hits
    assert [hit.passage.text for hit in hits] == ["harbour two"]
    await SqliteSessions(database).delete(A)
    assert (await SqliteRecall(database).search(Query('"harbour two"'))).hits == ()
    await database.close()


async def test_words_of_very_many_messages_are_found_too_with_rare_ones_and_within_bounds(
    tmp_path: Path,
) -> None:
    database = Database.open(tmp_path / "hone.db")
    store, recall = SqliteSessions(database), SqliteRecall(database)
    many = talk(*(f"meeting {number} again" for number in range(COMMON + 1)))
    await store.start(Header(A, NOW), PREFIX, many.nodes)
    old = Transcript(PREFIX.digest).then(user("a xylophone"), Trust.OWNER, NOW - timedelta(days=400))
    old = old.then(user("the xylophone meeting"), Trust.OWNER, NOW - timedelta(days=400))
    await store.start(Header(B, NOW), PREFIX, old.nodes)

    async def found(words: str, since: datetime | None = None) -> list[tuple[str, int]]:
        hits = (await recall.search(Query(words, since=since))).hits
        return [(hit.header.id, hit.passage.number) for hit in hits]

    assert (await found("xylophone meeting"))[0] == (B, 2)
    assert all(number > COMMON - 200 for id, number in await found("meeting") if id == A)
    assert (await found("meeting 7"))[0] == (A, 8)
    assert {id for id, _ in await found("xylophone meeting", NOW)} == {A}
    await database.close()


QUERIES = (
    "xylophone",
    "what was it that we said about the boiler, the cellar and the rain in March?",
    " ".join(f"harbour number{n} and the meeting" for n in range(20)),
    '"harbour number7"',
    "numb*",
    "东京",
    "was haben wir über die Rechnungen von der Werkstatt gesagt?",
    "yesterday",
)


async def test_a_search_takes_few_statements_however_much_there_is(tmp_path: Path, figures: Figures) -> None:
    """Sixty conversations, each with a fork: what is asked for each hit is asked for all of them at once."""
    database = Database.open(tmp_path / "hone.db")
    store = SqliteSessions(database)
    for place in range(60):
        name, texts = SessionId(f"s{place}"), [f"harbour number{n} boiler {place}" for n in range(10)]
        await store.start(Header(name, NOW), PREFIX, talk(*texts, "go on", f"rain 东京 {place}").nodes)
        fork = Header(SessionId(f"r{place}"), NOW, origin=Origin.REVIEW, parent=name, shared=12)
        await store.start(fork, PREFIX, talk(*texts, "go on", f"rain 东京 {place}", "keep?").nodes[12:])
    while await database.write(passages.fill):
        pass
    most = max([await database.read(partial(statements, words=words)) for words in QUERIES])
    await database.close()
    figures(f"at most {most} statements a search")
    assert most <= STATEMENTS


def statements(connection: apsw.Connection, words: str) -> int:
    """Counts them, apart from those that FTS5 runs on its own tables."""
    traced: list[str] = []
    connection.trace_v2(apsw.SQLITE_TRACE_STMT, lambda event: traced.append(event["sql"]))
    try:
        search(SqliteSource(connection), Query(words, today=NOW.date()))
    finally:
        connection.trace_v2(0)
    return len([each for each in traced if "'main'." not in each and not each.startswith("--")])


async def test_what_comes_and_goes_in_one_transaction_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "hone.db"
    database = Database.open(path)
    store = SqliteSessions(database)
    told = (
        store.start(Header(A, NOW), PREFIX, talk("apple").nodes),
        store.start(Header(A, NOW), PREFIX, talk("cellar").nodes),
        store.start(Header(B, NOW), PREFIX, talk("boiler").nodes),
        store.delete(A),
        store.start(Header(A, NOW), PREFIX, talk("rain").nodes),
    )
    outcomes = await asyncio.gather(*told, return_exceptions=True)
    assert [type(each) for each in outcomes] == [type(None), Conflict, *[type(None)] * 3]
    hits = (await SqliteRecall(database).search(Query("apple cellar boiler rain"))).hits
    assert sorted(hit.passage.text for hit in hits) == ["boiler", "rain"]
    await database.close()
    contents, known, words = await asyncio.to_thread(left, path)
    assert (contents, words) == (known, ["boiler", "rain"])


async def test_search_answers_while_three_processes_write(
    tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    count = tier.size(short=60, full=2_000)
    path = tmp_path / "hone.db"
    await _filled(path, ["harbour"])
    command = (sys.executable, "-c", WRITER, str(path))
    writers = [
        subprocess.Popen((*command, f"w{each}", str(count)), stdout=subprocess.PIPE) for each in range(3)
    ]
    database = Database.open(path)
    recall, searches = SqliteRecall(database), 0
    while any(writer.poll() is None for writer in writers):
        assert (await recall.search(Query("which harbour was it?"))).hits
        searches += 1
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    with raw(path) as connection:
        written = connection.execute(
            "SELECT count(*) FROM passage_words WHERE passage_words MATCH 'harbour'"
        ).get
    figures(f"{searches} searches beside 3 writers, 0 errors; {written} of {3 * count + 1} messages indexed")
    assert written == 3 * count + 1
    await database.close()
