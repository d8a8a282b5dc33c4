"""J1: the data of a home moves to PostgreSQL and back, every row of it, and a move that is cut off harms
nothing."""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import apsw
import psycopg
import pytest
from msgspec.structs import astuple

from hone.app import Hone
from hone.core.documents import KINDS, RULES, TEMPLATES, Documents, all_documents, is_document
from hone.core.errors import Corrupt, Refused, StoreError
from hone.core.ids import SessionId
from hone.core.ledger import USER, ChangeQuery
from hone.core.messages import assistant, user
from hone.core.ports import Header
from hone.core.recall import Query
from hone.core.topics import NAMES
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.features.moving.service import move_data
from hone.features.moving.values import Copied, MovePlan
from hone.files.documents import FileDocuments
from hone.holdings import all_holdings
from hone.stores.database import Database
from hone.stores.examine import examine_file
from hone.stores.home import FILE, MOVED, Stores, open_stores
from hone.stores.moving.copying import fingerprint
from hone.stores.moving.fingerprints import Fingerprints
from hone.stores.moving.sqlite import SqliteEnd
from hone.stores.moving.tables import APART, MADE_AGAIN, TABLES
from hone.stores.postgres import home as postgres_home
from hone.stores.postgres.database import PostgresDatabase, PostgresPool
from hone.stores.postgres.documents import PostgresDocuments
from hone.stores.postgres.home import name_checkout
from hone.stores.postgres.machine import name_machine
from hone.stores.postgres.moving import PostgresEnd
from tests import databases
from tests.contract.kinds import new_owner, shared_pool
from tests.golden import unpack
from tests.stores.homes import Household
from tests.stores.postgres_worker import NOW, PREFIX, A, note, said
from tests.story.test_holdings import HOME, SHADOWS
from tests.tier import Figures, Tier

postgres = databases.postgres


def quiet(what: str, done: int, total: int) -> None:
    """Nobody watches."""


class Traveler:
    """A home, and its owner in the database that all tests share."""

    def __init__(self, home: Path, url: str) -> None:
        self.home, self.url, self.owner = home, url, new_owner()
        self.now = NOW

    def move(self, *, to_sqlite: bool, keep: bool = False) -> Copied:
        self.now += timedelta(seconds=1)
        return move_data(MovePlan(self.home, self.url, to_sqlite, self.now, keep, self.owner), quiet)

    def there(self, **more: bool) -> Copied:
        return self.move(to_sqlite=False, **more)

    def back(self, **more: bool) -> Copied:
        return self.move(to_sqlite=True, **more)

    def look(self) -> Fingerprints:
        """What is in the file."""
        with closing(apsw.Connection(str(self.home / FILE))) as connection:
            return fingerprint(SqliteEnd(connection, self.home), "", quiet)

    def open_there(self) -> Stores:
        names = name_checkout(self.home), self.owner, name_machine(self.home)
        return postgres_home.open_stores(self.url, *names)

    def count_there(self) -> int:
        with psycopg.connect(self.url) as connection:
            counts = [
                connection.execute(f"SELECT count(*) FROM hone.{table.name} WHERE owner = %s", (self.owner,))
                for table in TABLES
            ]
            return sum(row[0] for count in counts for row in count)


@pytest.fixture
def traveler(tmp_path: Path, postgres: str) -> Traveler:
    home = tmp_path / "home"
    home.mkdir()
    return Traveler(home, postgres)


async def _close(stores: Stores) -> None:
    await stores.close()


def live(home: Path, random: Random, deeds: int) -> None:
    async def act() -> None:
        database = Database.open(home / FILE)
        await Household(database, random).live(deeds)
        await database.close()

    asyncio.run(act())
    write_documents(FileDocuments(home), random)


def write_documents(documents: Documents, random: Random) -> None:
    for kind in KINDS:
        names = kind.fixed or [f"{word}/{word}.json" for word in ("a", "b-2", "c")]
        for name in random.sample(names, random.randint(1, len(names))):
            documents.write(kind, name, random.randbytes(random.randint(0, 40)))


def read_documents(documents: Documents) -> list[tuple[str, str, bytes]]:
    return [(kind.name, name, data) for kind, name, data in all_documents(documents)]


# Nothing is forgotten


def columns_of(url: str) -> dict[str, set[str]]:
    query = """
    SELECT table_name, column_name FROM information_schema.columns JOIN pg_tables
        ON schemaname = table_schema AND tablename = table_name WHERE table_schema = 'hone'
    """
    found: dict[str, set[str]] = {}
    with psycopg.connect(url) as connection:
        for table, column in connection.execute(query):
            found.setdefault(table, set()).add(column)
    return found


def columns_in(path: Path) -> dict[str, set[str]]:
    with closing(apsw.Connection(str(path))) as connection:
        names = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
            if not name.startswith("sqlite_") and not name.endswith(SHADOWS)
        ]
        return {name: {row[1] for row in connection.execute(f"PRAGMA table_info({name})")} for name in names}


def test_every_table_and_column_of_both_databases_moves_or_says_why_not(
    tmp_path: Path, postgres: str
) -> None:
    asyncio.run(PostgresPool(postgres).close())
    asyncio.run(Database.open(tmp_path / FILE).close())
    left = MADE_AGAIN.keys() | APART.keys()
    for known, moved in (
        (columns_in(tmp_path / FILE), {table.in_sqlite: table for table in TABLES if not table.files}),
        (columns_of(postgres), {table.name: table for table in TABLES}),
    ):
        assert known.keys() - left == moved.keys(), "a new table moves, or tables.py says why it does not"
        for name, table in moved.items():
            fixed = {"owner", "checkout"} | ({"machine"} if table.files else set())
            others = fixed | {*table.made_again, *(["id"] if table.content else [])}
            assert known[name] - others == set(table.columns), name


def test_every_holding_says_what_a_move_does_with_its_tables_and_places(tmp_path: Path) -> None:
    moved = {table.in_sqlite for table in TABLES} | MADE_AGAIN.keys() | APART.keys()
    for holding in all_holdings(Hone(home=tmp_path).parts("holdings")):
        assert set(holding.tables) <= moved, holding.name
        paths = [f"{place}x" if place[-1] == "/" else place for place in holding.places]
        is_in_database = bool(holding.tables) or all(map(is_document, paths))
        assert holding.stays or is_in_database or not holding.places, f"{holding.name}: do its places stay?"


# There and back


def test_any_home_moves_there_and_back_without_a_change(
    tmp_path: Path, postgres: str, tier: Tier, figures: Figures
) -> None:
    tried = rows = 0
    for draw in tier.draws(short=4, full=200):
        home = tmp_path / str(draw.index)
        home.mkdir()
        live(home, draw.random, draw.random.randint(10, 60))
        traveler = Traveler(home, postgres)
        before = traveler.look()
        there = traveler.there()
        assert there.fingerprints == before == traveler.look(), "the source is as it was"
        back = traveler.back()
        assert back.fingerprints == before == traveler.look()
        assert examine_file(home / FILE) == []
        tried, rows = tried + 1, rows + sum(each.count for each in before.values())
        shutil.rmtree(home)
    figures(f"{tried} homes with {rows} rows there and back, all the same")


async def ask_everything(stores: Stores) -> list[Any]:
    """What the ports answer."""
    names = [each.header.id for each in await stores.sessions.list(None, None)]
    loaded = [await stores.sessions.load(name) for name in names]
    return [
        await stores.sessions.list(None, None),
        [(each.header, each.prefix, list(map(astuple, each.transcript.nodes))) for each in loaded],
        await stores.ledger.entries(ChangeQuery()),
        await stores.ledger.held_below(""),
        await stores.catalog.usage_counts(),
        await stores.jobs.jobs(),
        await stores.jobs.looks(),
        await stores.curator_runs.runs(),
        await stores.outbox.letters(100),
    ]


def test_both_ends_give_the_same_answers_and_continue_with_the_same_ids(traveler: Traveler) -> None:
    live(traveler.home, Random(5), 60)

    async def answers(stores: Stores) -> list[Any]:
        said = await ask_everything(stores)
        await stores.close()
        return said

    async def go_on(stores: Stores) -> tuple[int, int]:
        [name, *_] = [each.header.id for each in await stores.sessions.list(1, None)]
        talk = (await stores.sessions.load(name)).transcript.then(user("and then?"), Trust.OWNER, NOW)
        await stores.sessions.append(name, talk.nodes[-1:])
        held = (await stores.ledger.held(USER)).get("MEMORY.md")
        [entry] = await stores.ledger.record(*note(held, b"one more", USER), NOW)
        job = await stores.jobs.enqueue(name, 1, NAMES, "by hand", NOW)
        assert (await stores.sessions.load(name)).transcript.head == talk.head
        await stores.close()
        return entry.id, job.id

    before = asyncio.run(answers(open_stores(traveler.home)))
    copy = traveler.home.with_name("copy")
    shutil.copytree(traveler.home, copy)
    traveler.there()
    assert asyncio.run(answers(traveler.open_there())) == before
    assert asyncio.run(go_on(traveler.open_there())) == asyncio.run(go_on(open_stores(copy)))
    later = asyncio.run(answers(traveler.open_there()))
    traveler.back()
    assert asyncio.run(answers(open_stores(traveler.home))) == later
    assert examine_file(traveler.home / FILE) == []


ODD = (
    ("a\0title", "/srv/\udcff\udcfe".encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")),
    ("\x01\x02 \x01\x01 \0\0", "/tmp/räum\0"),
    ("河にはカワウソがいる", "/家"),
    ("", ""),
)


def test_nul_odd_names_large_contents_and_high_numbers_survive(traveler: Traveler) -> None:
    async def talk() -> None:
        stores = open_stores(traveler.home)
        for place, (title, folder) in enumerate(ODD):
            long = Transcript(PREFIX.digest).then(
                user(title + "x" * (3_000_000 * (place == 1) + place)), Trust.OWNER, NOW
            )
            long = long.then(assistant(f"{title}\0{place}"), Trust.AGENT, NOW)
            header = Header(SessionId(f"s\0{place}"), NOW, title, folder=folder)
            await stores.sessions.start(header, PREFIX, long.nodes)
        await stores.close()

    asyncio.run(talk())
    with closing(apsw.Connection(str(traveler.home / FILE))) as connection:
        connection.execute("UPDATE sqlite_sequence SET seq = 90000 WHERE name = 'nodes'")
    before = traveler.look()

    async def read() -> list[Any]:
        stores = traveler.open_there()
        listed = await stores.sessions.list(None, None)
        await stores.sessions.start(Header(A, NOW), PREFIX, said("fresh").nodes)
        await stores.sessions.delete(A)
        await stores.close()
        return sorted((each.header.id, each.header.title, each.header.folder) for each in listed)

    traveler.there()
    odd = sorted((f"s\0{place}", title, folder) for place, (title, folder) in enumerate(ODD))
    assert asyncio.run(read()) == odd
    traveler.back()
    assert traveler.look() == before
    with closing(apsw.Connection(str(traveler.home / FILE))) as connection:
        last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'nodes'").get
    assert last > 90_000, "a number that was once a message's is never another's"


def test_a_home_that_an_older_hone_wrote_moves_and_is_searchable_at_home_again(traveler: Traveler) -> None:
    shutil.rmtree(traveler.home)
    unpack(HOME, traveler.home)

    async def search() -> list[str]:
        stores = open_stores(traveler.home)
        found = await stores.recall.search(Query("amounts"))
        await stores.close()
        return [each.header.id for each in found.hits]

    before = asyncio.run(search())
    assert before
    same = traveler.look()
    assert traveler.there().fingerprints == traveler.back().fingerprints == same
    assert asyncio.run(search()) == before


def test_documents_are_used_where_they_moved_to_and_come_back_with_their_changes(traveler: Traveler) -> None:
    live(traveler.home, Random(5), 3)
    here = FileDocuments(traveler.home)
    before = read_documents(here)
    assert len({kind for kind, _, _ in before}) == len(KINDS)
    traveler.there()
    stores = traveler.open_there()
    try:
        there = stores.documents
        assert read_documents(there) == before
        kept, gone = [(kind, name) for kind, name, _ in all_documents(there)][:2]
        there.write(*kept, b"changed there")
        there.delete(*gone)
        there.write(TEMPLATES, "new.json", b"made there")
        changed = read_documents(there)
    finally:
        asyncio.run(_close(stores))
    assert read_documents(here) == before, "the source is as it was"
    traveler.back()
    assert read_documents(here) == changed
    [aside] = traveler.home.glob("hone-moved-files-*")
    assert read_documents(FileDocuments(aside)) == before
    assert not list(traveler.home.glob("hone.db.moving*"))


def test_what_other_machines_trust_neither_moves_nor_goes(traveler: Traveler) -> None:
    live(traveler.home, Random(5), 3)
    traveler.there()
    stores = postgres_home.open_stores(traveler.url, "elsewhere", traveler.owner, "another machine")
    try:
        assert stores.documents.names(RULES) == []
        stores.documents.write(RULES, "trusted.json", b'["/srv/x"]')
    finally:
        asyncio.run(_close(stores))
    before = FileDocuments(traveler.home).names(RULES)
    traveler.back()
    assert FileDocuments(traveler.home).names(RULES) == before
    assert b"/srv/x" not in (FileDocuments(traveler.home).read(RULES, "trusted.json") or b"")
    traveler.there()
    other = PostgresDocuments(PostgresDatabase(shared_pool(), traveler.owner), "another machine")
    assert other.read(RULES, "trusted.json") == b'["/srv/x"]'


# Who may use what


def test_a_home_whose_data_moved_says_so_until_it_is_back(traveler: Traveler) -> None:
    live(traveler.home, Random(2), 5)
    traveler.there()
    with pytest.raises(StoreError, match=r"moved to postgresql://.* hone move --to sqlite"):
        open_stores(traveler.home)
    with pytest.raises(StoreError, match=r"moved to postgresql://"):
        traveler.there()
    running = traveler.open_there()  # such as a server, which is still up when the data goes home
    traveler.back()
    asyncio.run(_close(open_stores(traveler.home)))
    with pytest.raises(StoreError, match=r"moved to .*home"):
        traveler.open_there()

    async def write() -> None:
        with pytest.raises(StoreError, match=r"moved to .*home"):
            await running.sessions.start(Header(A, NOW), PREFIX, said("late").nodes)
        await running.close()

    asyncio.run(write())
    assert not traveler.back().made, "it is all here"
    with pytest.raises(Refused, match="nothing to move"):
        Traveler(traveler.home, traveler.url).back()


def test_data_comes_home_to_a_new_machine(traveler: Traveler, tmp_path: Path) -> None:
    live(traveler.home, Random(3), 10)
    before = traveler.look()
    traveler.there()
    former, traveler.home = traveler.home, tmp_path / "new" / "home"
    traveler.back()
    apart = ("published", "documents")
    known = {name: each for name, each in traveler.look().items() if name not in apart}
    assert known == {name: each for name, each in before.items() if name not in apart}
    there, here = FileDocuments(former), FileDocuments(traveler.home)
    shared = [each for each in read_documents(there) if each[0] != RULES.name]
    assert shared
    assert read_documents(here) == shared, "a new machine trusts nothing that the old one did"


def test_a_copy_leaves_the_source_in_use_and_can_be_made_again(traveler: Traveler) -> None:
    live(traveler.home, Random(3), 10)
    traveler.there(keep=True)
    live(traveler.home, Random(4), 1)
    assert traveler.there(keep=True).fingerprints == traveler.look(), "an unused copy is replaced"
    assert not traveler.there(keep=True).made

    async def write() -> None:
        stores = traveler.open_there()
        await stores.sessions.start(Header(A, NOW), PREFIX, said("only there").nodes)
        await stores.close()

    asyncio.run(write())
    with pytest.raises(Refused, match="conversations or lessons already"):
        traveler.there()
    with pytest.raises(Refused, match="conversations or lessons already"):
        traveler.back()
    assert not (traveler.home / MOVED).exists()


def test_a_home_in_use_is_not_moved_and_the_process_is_named(traveler: Traveler) -> None:
    live(traveler.home, Random(2), 5)
    script = "import apsw, sys; held = apsw.Connection(sys.argv[1]); held.execute('SELECT 1 FROM nodes').get"
    command = [
        sys.executable,
        "-c",
        f"{script}; print(); sys.stdout.flush(); sys.stdin.read()",
        str(traveler.home / FILE),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as user_of_it:
        assert user_of_it.stdout
        user_of_it.stdout.readline()
        with pytest.raises(StoreError, match=f"process {user_of_it.pid}"):
            traveler.there()
    assert traveler.count_there() == 0
    traveler.there()


def test_whoever_writes_to_the_database_is_waited_for_and_named(
    traveler: Traveler, monkeypatch: pytest.MonkeyPatch
) -> None:
    live(traveler.home, Random(2), 5)
    monkeypatch.setattr("hone.stores.postgres.database.PATIENCE", 0.05)
    with psycopg.connect(traveler.url, application_name="hone 77@elsewhere") as other:
        other.execute("SELECT pg_advisory_xact_lock_shared(hashtextextended(%s, 1))", (traveler.owner,))
        with pytest.raises(StoreError, match="hone 77@elsewhere on this machine"):
            traveler.there()
    traveler.there()


def test_a_damaged_content_is_found_before_anything_moves(traveler: Traveler) -> None:
    live(traveler.home, Random(2), 20)
    with closing(apsw.Connection(str(traveler.home / FILE))) as connection:
        connection.execute("UPDATE contents SET body = x'00' WHERE id = (SELECT max(id) FROM contents)")
    with pytest.raises(Corrupt, match="hone doctor --repair"):
        traveler.there()
    assert (traveler.count_there(), (traveler.home / MOVED).exists()) == (0, False)


def test_a_copy_that_differs_is_not_kept(traveler: Traveler, monkeypatch: pytest.MonkeyPatch) -> None:
    live(traveler.home, Random(2), 20)
    put = PostgresEnd.put

    def lose(end: Any, table: Any, rows: Iterator[Any]) -> None:
        put(end, table, list(rows)[1:] if table.name == "nodes" else rows)

    monkeypatch.setattr(PostgresEnd, "put", lose)
    with pytest.raises(StoreError, match="not the same in nodes"):
        traveler.there()
    assert (traveler.count_there(), (traveler.home / MOVED).exists()) == (0, False)


# Cut off


@contextmanager
def mover(traveler: Traveler, *, to_sqlite: bool) -> Iterator[Callable[[int], bool]]:
    """Give a function that moves in another process, which dies before a step; it tells whether that died."""
    way = "back" if to_sqlite else "there"
    command: list[str] = [
        sys.executable,
        "-m",
        "tests.stores.moving_worker",
        str(traveler.home),
        traveler.url,
        traveler.owner,
        way,
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdin
        assert worker.stdout
        ask, answer = worker.stdin, worker.stdout

        def cut_off(step: int) -> bool:
            print(step, file=ask, flush=True)
            said = answer.readline().strip()
            assert said in ("killed", "ended")
            return bool(said == "killed")

        yield cut_off
        ask.close()


def is_refused(work: Any) -> bool:
    try:
        stores = work()
    except StoreError:
        return True
    asyncio.run(_close(stores))
    return False


@pytest.mark.parametrize("to_sqlite", [False, True], ids=["there", "back"])
def test_a_move_that_is_killed_at_any_step_leaves_one_whole_home_and_can_be_run_again(
    traveler: Traveler, to_sqlite: bool, tier: Tier, figures: Figures
) -> None:
    live(traveler.home, Random(2), 12)
    before, step, killed = traveler.look(), 0, 0
    stride = tier.size(short=7, full=1)
    whole = sum(each.count for each in before.values()) - 1
    if to_sqlite:
        traveler.there()
    with mover(traveler, to_sqlite=to_sqlite) as cut_off:
        while cut_off(step):
            killed += 1
            count = traveler.count_there()
            at_home = not is_refused(lambda: open_stores(traveler.home))
            there = not is_refused(traveler.open_there)
            if to_sqlite:
                assert count == whole, "the source has all of it"
                assert not (there and at_home), "two never work at once"
            else:
                assert (at_home, count in (0, whole)) == (True, True)
                assert traveler.look() == before
            step += stride
    assert traveler.look() == before
    assert is_refused(lambda: open_stores(traveler.home)) is not to_sqlite
    assert is_refused(traveler.open_there) is to_sqlite
    figures(f"killed before {killed} of {step} steps, nothing lost and nothing by half")
