"""Damaged pages: each is noticed, and of each a repair saves all that can still be read."""

import asyncio
import shutil
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import apsw
import pytest

from hone.core.curation import CuratorRun, CuratorRunId
from hone.core.errors import StoreError
from hone.core.ids import SessionId
from hone.core.ledger import MEMORY, Actor, Author, Change, ChangeKind, Delta
from hone.core.messages import assistant, digest, user
from hone.core.ports import Header
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.stores.curator_runs import SqliteCuratorRuns
from hone.stores.damage import Damage, DamageKind
from hone.stores.database import Database, connect
from hone.stores.examine import examine, examine_file
from hone.stores.ledger import SqliteLedger
from hone.stores.outbox import SqliteOutbox
from hone.stores.repair import Rebuilt, Repaired, repair
from hone.stores.sqlite import SqliteSessions
from tests.conftest import Figures, Tier
from tests.stores.pages import LEAF_TABLE, SIZE, Page, live, rows
from tests.stores.test_sqlite import ask, fill
from tests.stores.worker import NOW, PREFIX

DAY = datetime(2026, 3, 2, 10, 30, tzinfo=UTC)
KINDS = ("bit", "bytes", "zeros", "noise", "another page")
REMADE = {"listed", "ranked", "uncarded"}
"""What is made again from the skills when somebody asks for it."""


@dataclass(frozen=True, slots=True)
class Home:
    """A whole database, its bytes, the pages that hold something, and all that can be asked of it."""

    path: Path
    whole: bytes
    pages: list[Page]
    answers: dict[str, Any]


@pytest.fixture
def whole(tmp_path: Path) -> Home:
    return build(tmp_path / "whole.db")


def build(path: Path) -> Home:
    asyncio.run(furnish(path))
    settle(path)
    return Home(path, path.read_bytes(), live(path), ask(path))


async def furnish(path: Path) -> None:
    """Sessions and skills, a branch, a move, titles, a round of the curator, letters that were refused."""
    await fill(path)
    database = Database.open(path)
    sessions, ledger = SqliteSessions(database), SqliteLedger(database)
    first = (await sessions.load(SessionId("s0"))).transcript
    await sessions.start(
        Header(SessionId("branch"), NOW, "a branch", parent=SessionId("s0"), shared=2), PREFIX, ()
    )
    other = Prefix("scripted/two", "Another one.")
    await sessions.move(SessionId("s0"), other, first.rooted(other.digest))
    longer = (await sessions.load(SessionId("branch"))).transcript
    for text in ("otters", "rivers", "banks"):
        longer = longer.then(user(text), Trust.OWNER, NOW).then(
            assistant(f"More of {text}."), Trust.AGENT, NOW
        )
    await sessions.append(SessionId("branch"), longer.nodes[2:])
    for number in range(6):
        await sessions.rename(SessionId(f"s{number}"), f"title {number} " * 4)
    body = b"- The staging server is called otter.\n"
    note = Change(
        MEMORY, ChangeKind.ADD, (Delta("MEMORY.md", None, digest(body)),), Author(Actor.OWNER), confirmed=True
    )
    (entry,) = await ledger.record([note], {digest(body): body}, NOW)
    await SqliteOutbox(database).failed(entry.id, "the service said no")
    report = CuratorRun(NOW, "weekly", SessionId("s1"), "library", "", "merged nothing " * 20)
    await SqliteCuratorRuns(database).complete(report, CuratorRunId(0), [], {})
    await database.close()


def settle(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def damaged(home: Home, page: Page, kind: str, random: Random) -> bytes:
    """The file with that page damaged, at bytes that mean something."""
    start = (page.number - 1) * SIZE
    data = bytearray(home.whole[start : start + SIZE])
    before, place = bytes(data), random.choice(page.used)
    while bytes(data) == before:
        match kind:
            case "bit":
                data[place] ^= 1 << random.randrange(8)
            case "bytes":
                end = min(SIZE, place + random.randint(1, 64))
                data[place:end] = random.randbytes(end - place)
            case "zeros":
                data[:] = bytes(SIZE)
            case "noise":
                data[:] = random.randbytes(SIZE)
            case _:
                other = random.choice(home.pages).number
                data[:] = home.whole[(other - 1) * SIZE : other * SIZE]
    return home.whole[:start] + bytes(data) + home.whole[start + SIZE :]


def deep(path: Path) -> list[Damage]:
    """What `hone doctor --deep` finds."""
    return examine_file(path)


def unlike(home: Home, path: Path) -> tuple[set[str], set[str]]:
    """Which questions are answered by an error, and which by something else than before."""
    found = ask(path)
    other = {key for key, value in found.items() if value != home.answers.get(key)}
    errors = {key for key in other if isinstance(found[key], type)}
    return errors, other - errors


def held(path: Path) -> list[Any]:
    """All rows. Only a key that parts two pages may be another one and still part the same rows."""
    with closing(apsw.Connection(str(path))) as connection:
        names = connection.execute("SELECT name FROM sqlite_schema WHERE rootpage > 0 AND type = 'table'")
        return [connection.execute(f"SELECT * FROM {name} NOT INDEXED").fetchall() for (name,) in names]


def clear(path: Path) -> None:
    for each in path.parent.glob(f"{path.stem}*"):
        each.unlink()


def test_a_file_that_cannot_be_opened_is_not_left_open(tmp_path: Path) -> None:
    """Its lock would stand in the way of the repair."""
    path = tmp_path / "damaged.db"
    path.write_bytes(b"no database " * 500)
    with pytest.raises(apsw.NotADBError) as caught:
        connect(path, 1)
    assert [each.filename for each in apsw.connections() if each.filename == str(path)] == [], caught.tb


def test_every_damage_to_a_page_that_holds_something_is_noticed(
    whole: Home, tier: Tier, figures: Figures
) -> None:
    assert deep(whole.path) == []
    missed, tried, read, wrong, harmless = {}, 0, 0, 0, 0
    path = whole.path.with_name("damaged.db")
    for draw in tier.draws(short=15, full=300):
        page, kind = draw.random.choice(whole.pages), KINDS[draw.index % len(KINDS)]
        path.write_bytes(damaged(whole, page, kind, draw.random))
        tried += 1
        found = deep(path)
        errors, others = unlike(whole, path)
        read, wrong = read + bool(errors), wrong + bool(others and not errors)
        if not found and not errors:
            if held(path) == held(whole.path):
                harmless += 1
            else:
                missed[draw.index] = (kind, page.owner, page.number)
        clear(path)
    note = (
        f"{tried - len(missed) - harmless} noticed, {read} of them already when read; "
        f"{wrong} read otherwise until then; {harmless} changed no row"
    )
    figures.tally(tried, got_in=len(missed), note=note, at=missed)
    assert not missed


async def test_a_database_with_much_written_and_deleted_is_not_taken_for_damaged(
    tmp_path: Path, tier: Tier
) -> None:
    count, random = tier.size(short=12, full=120), tier.random()
    words = [f"w{number}" for number in range(3000)] + ["the", "and", "of"] * 400
    database = Database.open(tmp_path / "busy.db")
    sessions = SqliteSessions(database)
    for number in range(count):
        talk = Transcript(PREFIX.digest)
        for place in range(60):
            said = " ".join(random.choices(words, k=random.choice([5, 40, 300])))
            talk = talk.then(assistant(said) if place % 2 else user(said), Trust.AGENT, NOW)
        await sessions.start(Header(SessionId(f"x{number}"), NOW), PREFIX, talk.nodes[:30])
        for start in range(30, 60, 5):
            await sessions.append(SessionId(f"x{number}"), talk.nodes[start : start + 5])
        if number % 5 > 1:
            await sessions.delete(SessionId(f"x{number - 2}"))
    assert await database.read(examine) == []
    await database.close()


def test_a_page_as_it_was_earlier_is_noticed_by_what_came_later(
    whole: Home, tier: Tier, figures: Figures
) -> None:
    asyncio.run(more(whole.path))
    settle(whole.path)
    later, pages = whole.path.read_bytes(), live(whole.path)
    before = {(page.owner, page.number) for page in whole.pages}
    stale = [
        (page, whole.whole[(page.number - 1) * SIZE : page.number * SIZE])
        for page in pages
        if (page.owner, page.number) in before
    ]
    stale = [
        (page, old) for page, old in stale if old != later[(page.number - 1) * SIZE : page.number * SIZE]
    ]
    path, missed = whole.path.with_name("stale.db"), []
    for page, old in stale[:: 1 if tier.long else 4]:
        start = (page.number - 1) * SIZE
        path.write_bytes(later[:start] + old + later[start + SIZE :])
        if not deep(path):
            missed.append(page.owner)
        clear(path)
    count = len(stale[:: 1 if tier.long else 4])
    figures(f"{count} pages as they were earlier, {count - len(missed)} noticed; not: {sorted(missed)}")
    assert len(missed) * 10 <= count


async def more(path: Path) -> None:
    """Every kind of row is added to or changed."""
    database = Database.open(path)
    sessions, ledger = SqliteSessions(database), SqliteLedger(database)
    for name in ("s1", "s2", "branch"):
        loaded = (await sessions.load(SessionId(name))).transcript
        longer = loaded.then(user("and then?"), Trust.OWNER, NOW).then(assistant("Then."), Trust.AGENT, NOW)
        await sessions.append(SessionId(name), longer.nodes[len(loaded) :])
        await sessions.rename(SessionId(name), f"later {name}")
    body, old = b"- Otters like rivers.\n", digest(b"- The staging server is called otter.\n")
    delta = Delta("MEMORY.md", old, digest(body))
    await ledger.record(
        [Change(MEMORY, ChangeKind.REPLACE, (delta,), Author(Actor.OWNER))], {digest(body): body}, NOW
    )
    await database.close()


def gone(whole: Home, page: Page) -> set[int]:
    """The contents that have something on this page."""
    if page.owner != "contents":
        return set()
    leaves = [
        each.number
        for each in whole.pages
        if each.owner == "contents" and whole.whole[(each.number - 1) * SIZE] == LEAF_TABLE
    ]
    leaves = [number for number in leaves if number in tables(whole.path)]
    return rows(whole.whole, leaves).get(page.number, set())


def tables(path: Path) -> set[int]:
    with closing(apsw.Connection(str(path))) as connection:
        found = connection.execute("SELECT pageno FROM dbstat WHERE name = 'contents' AND pagetype = 'leaf'")
        return {int(str(number)) for (number,) in found}


def messages(path: Path) -> dict[int, list[bytes]]:
    """The bodies of all nodes, by the number of their content."""
    with closing(apsw.Connection(str(path))) as connection:
        found: list[Any] = connection.execute(
            "SELECT content, body FROM nodes JOIN contents AS c ON c.id = content"
        ).fetchall()
    bodies: dict[int, list[bytes]] = {}
    for content, body in found:
        bodies.setdefault(content, []).append(body)
    return bodies


@pytest.mark.timeout(1_800)
def test_a_repair_saves_what_is_not_on_the_damaged_page_and_counts_what_is_gone(
    whole: Home, tier: Tier, figures: Figures
) -> None:
    total = sum(map(len, messages(whole.path).values()))
    tried = lost = rebuilt = copies = 0
    for draw in tier.draws(short=8, full=300):
        page, kind = draw.random.choice(whole.pages), KINDS[draw.index % 4]
        path = whole.path.with_name("damaged.db")
        path.write_bytes(damaged(whole, page, kind, draw.random))
        tried += 1
        before, found = path.read_bytes(), deep(path)
        made = asyncio.run(repair(path, DAY))
        case = (kind, page.owner, page.number, [str(each) for each in found])
        if isinstance(made, Rebuilt):
            rebuilt += 1
            check_rebuilt(whole, path, found, case)
        elif made or found or held(path) != held(whole.path):
            assert made, case
            copies += 1
            assert (made.kept.read_bytes(), made.left) == (before, ()), case
            check(whole, page, kind, path, made, total, case)
            lost += made.counts["messages"].gone or 0
        clear(path)
    figures(
        f"{tried} repairs of {total} messages each: {rebuilt} rebuilt in place, nothing gone; "
        f"{copies} copies, {lost} messages gone, all of them on the damaged page"
    )


def check_rebuilt(whole: Home, path: Path, found: list[Damage], case: tuple[Any, ...]) -> None:
    """The advice said that no text was lost, and none is: the same file gives the same answers."""
    assert DamageKind.TEXT not in {damage.kind for damage in found}, case
    assert [each.name for each in path.parent.glob("damaged*.db")] == [path.name], case
    assert messages(path) == messages(whole.path), case
    errors, others = unlike(whole, path)
    assert not (errors | others) - REMADE, (case, errors, others)
    assert deep(path) == [], case


def check(
    whole: Home, page: Page, kind: str, path: Path, made: Repaired, total: int, case: tuple[Any, ...]
) -> None:
    said, after = messages(whole.path), messages(path)
    on_page = gone(whole, page)
    bodies = {body for each in after.values() for body in each}
    missing = {content for content, each in said.items() if each[0] not in bodies}
    assert missing <= on_page, case
    assert kind in ("bit", "bytes") or missing == on_page, case
    count = made.counts["messages"]
    assert (count.saved + (count.gone or 0), count.gone) == (total, sum(len(said[id]) for id in missing)), (
        case
    )
    assert (made.counts["changes"].saved, made.counts["changes"].gone) == (13, 0), case
    assert (made.counts["sessions"].saved, made.counts["sessions"].gone) == (7, 0), case
    errors, others = unlike(whole, path)
    touched = page.owner in ("contents", "prefixes", "knowledge") or made.doubtful
    assert touched or not (errors | others) - REMADE, (case, errors, others)
    assert deep(path) == [], case


def test_what_a_repair_that_was_broken_off_left_behind_is_no_trouble(whole: Home) -> None:
    path = whole.path.with_name("damaged.db")
    page = next(page for page in whole.pages if page.owner == "sessions")
    path.write_bytes(damaged(whole, page, "zeros", Random(1)))
    path.with_name("damaged.db.repairing").write_bytes(b"half of it")
    path.with_name("damaged.db.repairing-wal").write_bytes(b"half of its log")
    made = asyncio.run(repair(path, DAY))
    assert isinstance(made, Repaired)
    assert (made.counts["sessions"].saved, made.doubtful) == (7, 0)
    assert not list(path.parent.glob("*repairing*"))
    assert unlike(whole, path) == (set(), REMADE)
    assert asyncio.run(repair(path, DAY)) is None


def test_a_repair_takes_what_is_in_the_log_along(whole: Home, tmp_path: Path) -> None:
    path = whole.path
    asyncio.run(more(path))
    assert path.with_name("whole.db-wal").stat().st_size
    page = next(page for page in whole.pages if page.owner == "jobs")
    with path.open("r+b") as file:
        file.seek((page.number - 1) * SIZE)
        file.write(bytes(SIZE))
    made = asyncio.run(repair(path, DAY))
    assert isinstance(made, Repaired)
    assert made.counts["changes"].saved == 14
    assert ask(path)["jobs"] == whole.answers["jobs"]
    assert deep(path) == []


def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "diary.db"
    path.write_text("Dear diary,\n" * 50_000)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="not a database"):
        asyncio.run(repair(path, DAY))
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"diary.db": before}


def test_a_database_that_another_connection_has_open_is_not_repaired(whole: Home) -> None:
    page = next(page for page in whole.pages if page.owner == "jobs")
    path = whole.path.with_name("damaged.db")
    path.write_bytes(damaged(whole, page, "zeros", Random(1)))
    with closing(apsw.Connection(str(path))) as other:
        other.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        with pytest.raises(StoreError, match="Another process has"):
            asyncio.run(repair(path, DAY))
    assert asyncio.run(repair(path, DAY)) is not None
    shutil.rmtree(path.parent)
