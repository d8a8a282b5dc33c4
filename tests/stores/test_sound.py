"""No false alarm: a healthy database is never called damaged, whatever was written and deleted in it."""

import asyncio
from contextlib import closing
from pathlib import Path
from random import Random

import apsw
import pytest

from hone.core.clock import SystemClock
from hone.core.ids import SessionId
from hone.core.messages import user
from hone.core.ports import Header
from hone.core.prefix import Prefix
from hone.core.recall import Query
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.features.backends.sqlite import SqliteBackend
from hone.stores import lookup
from hone.stores.damage import Damage
from hone.stores.database import Database
from hone.stores.erasing import SPARE
from hone.stores.examine import PASSAGE, examine, examine_file
from hone.stores.maintenance import MEMORIES, examine_home
from hone.stores.moving.sqlite import INDEX_LATER
from hone.stores.passages import DROP
from hone.stores.recall import SqliteRecall
from hone.stores.sqlite import SqliteSessions
from tests.conftest import Figures, Tier
from tests.stores.homes import PASTES, Household
from tests.stores.worker import NOW


async def alarms(path: Path, random: Random) -> list[Damage]:
    """What is said of a home that was lived in: by the process that wrote the story, or by another one."""
    database = Database.open(path)
    try:
        await Household(database, random).live(random.randint(1, 40))
        with closing(apsw.Connection(str(path))) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return await database.read(examine) if random.random() < 0.5 else examine_file(path)
    finally:
        await database.close()


@pytest.mark.timeout(3_600)
async def test_no_healthy_home_is_called_damaged(tmp_path: Path, tier: Tier, figures: Figures) -> None:
    tried, wrong = 0, {}
    for draw in tier.draws(short=12, full=2_000):
        path = tmp_path / f"{draw.index}.db"
        found = await alarms(path, draw.random)
        tried += 1
        if found:
            wrong[draw.index] = found
        for each in tmp_path.glob(f"{path.name}*"):
            each.unlink()
    figures.tally(tried, got_in=len(wrong), note=f"{len(wrong)} false alarms", at=wrong)
    assert not wrong


async def test_a_number_that_is_used_again_before_the_index_has_caught_up_is_indexed(tmp_path: Path) -> None:
    """As in a home that was just moved: nothing is indexed yet, and the newest messages are deleted."""
    database = Database.open(tmp_path / "moved.db")
    sessions, recall = SqliteSessions(database), SqliteRecall(database)
    prefix = Prefix("scripted/1", "You help.")

    async def start(name: str, *words: str) -> None:
        talk = Transcript(prefix.digest)
        for each in words:
            talk = talk.then(user(each), Trust.OWNER, NOW)
        await sessions.start(Header(SessionId(name), NOW), prefix, talk.nodes)

    try:
        await start("kept", "otters")
        await start("gone", "beavers", "martens", "badgers")
        await database.write(lambda connection: connection.execute(INDEX_LATER).fetchall())
        await sessions.delete(SessionId("gone"))
        assert len((await recall.search(Query("otters"))).hits) == 1
        await start("late", "weasels")
        assert len((await recall.search(Query("weasels"))).hits) == 1
        await sessions.delete(SessionId("late"))
        assert (await database.read(examine)) == []
    finally:
        await database.close()


async def test_a_home_in_use_is_not_called_damaged(tmp_path: Path, tier: Tier, figures: Figures) -> None:
    path, found, looks = tmp_path / "busy.db", list[Damage](), 0
    database = Database.open(path)
    living = asyncio.create_task(Household(database, tier.random()).live(tier.size(short=80, full=2_000)))
    ended = False
    while not ended:
        ended = living.done()
        found += await asyncio.to_thread(examine_file, path)
        looks += 1
    await living
    await database.close()
    figures.tally(looks, got_in=len(found), note="looks at a home that is written to")
    assert found == []


async def test_a_commit_in_the_middle_of_a_look_is_not_called_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, commits = tmp_path / "busy.db", 0
    await Household(database := Database.open(path), Random(1)).live(40)
    await database.close()
    update = lookup.update

    def update_and_be_overtaken(connection: apsw.Connection) -> None:
        nonlocal commits
        update(connection)
        with closing(apsw.Connection(str(path))) as other:
            other.execute(PASSAGE, (SPARE, "overtaken"))
            other.execute("INSERT INTO passage_words (passage_words) VALUES ('optimize')")
            other.execute(DROP, (SPARE, "overtaken"))
        commits += 1

    monkeypatch.setattr(lookup, "update", update_and_be_overtaken)
    assert examine_file(path) == []
    assert commits


async def test_a_memory_backend_beside_the_database_is_not_called_damaged(tmp_path: Path) -> None:
    random, backend = Random(1), SqliteBackend(tmp_path / MEMORIES, SystemClock())
    for number in range(40):
        await backend.store("owner", f"key {number % 25}", random.choice(PASTES)(random, 3_000))
        if number % 3 == 0:
            await backend.delete("owner", f"key {random.randrange(25)}")
    await backend.close()
    assert await examine_home(tmp_path) == {"hone.db": [], MEMORIES: []}
