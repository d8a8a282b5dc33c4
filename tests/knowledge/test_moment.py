"""B3, C2: what is known is read again when something was touched, and not otherwise."""

import asyncio
import os
import string
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from hone.core.clock import ManualClock
from hone.core.ids import SessionId
from hone.core.ledger import MEMORY, USER, Held, Target
from hone.core.skill import SkillOrigin
from hone.core.waiting import SingleFlight
from hone.files.tree import FileTree
from hone.knowledge.journal import Add
from hone.knowledge.keeper import OWNER, Keeper
from hone.knowledge.library import Library
from hone.knowledge.skills.folder import Archive, Create
from hone.knowledge.snapshots import SnapshotCache
from hone.stores.database import Database
from hone.stores.ledger import SqliteLedger
from hone.stores.skill_catalog import SqliteSkillCatalog
from tests.conftest import Tier

FOLDER = Path("/a/folder")


def much_later() -> int:
    """For a disk on which nothing was touched just now."""
    return time.time_ns() + 10**10


class Counted(SqliteLedger):
    """Counts how often a journal or a skill is read."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.reads = 0

    async def held(self, target: Target) -> Held:
        self.reads += 1
        return await super().held(target)


@asynccontextmanager
async def opened(
    home: Path, clock: ManualClock, now: Callable[[], int] = much_later
) -> AsyncIterator[tuple[Library, Counted]]:
    database = Database.open(home / "hone.db")
    ledger = Counted(database)
    keeper = Keeper(ledger, FileTree(home, now), clock, lambda _: None)
    yield Library(keeper, SqliteSkillCatalog(database), clock), ledger
    keeper.close()
    await database.close()


def document(name: str, description: str = "A craft.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n\nWork.\n"


class Hands:
    """An owner with an editor, and another process with a keeper of its own."""

    def __init__(self, home: Path, other: Library, random: Random) -> None:
        self._home, self._other, self._random = home, other, random
        self._count = 0

    async def do(self) -> str:
        self._count += 1
        deeds: list[Callable[[], Awaitable[None]]] = [
            self._edit, self._lose, self._close, self._lay, self._tell, self._make, self._put_away
        ]  # fmt: skip
        deed = self._random.choice(deeds)
        await deed()
        return deed.__name__

    async def _edit(self) -> None:
        path = self._home / self._random.choice(["MEMORY.md", "USER.md"])
        path.chmod(0o600) if path.exists() else None
        before = path.read_text() if path.exists() else ""
        path.write_text(f"{before}- by hand, {self._count}\n" if len(before) < 900 else "")

    async def _lose(self) -> None:
        (self._home / "MEMORY.md").unlink(missing_ok=True)

    async def _close(self) -> None:
        path = self._home / "USER.md"
        if path.exists():
            path.chmod(0o600 if self._random.random() < 0.5 else 0o000)

    async def _lay(self) -> None:
        """A folder first, its document some other time; or the document again."""
        folder = self._home / "skills" / f"laid-{self._random.randrange(3)}"
        if folder.exists():
            (folder / "SKILL.md").write_text(document(folder.name, f"A craft, {self._count}."))
        else:
            folder.mkdir(parents=True)

    async def _tell(self) -> None:
        await self._other.keeper.note([(MEMORY, Add(f"told, {self._count}"))], OWNER)

    async def _make(self) -> None:
        number, letters = self._count, string.ascii_lowercase
        name = "made-" + "".join(letters[number // 26**place % 26] for place in range(3))
        await self._other.keeper.edit_skill(name, Create(document(name), SkillOrigin.AGENT), OWNER)

    async def _put_away(self) -> None:
        for each in await self._other.listed():
            if each.origin is not SkillOrigin.BUNDLED:
                await self._other.keeper.edit_skill(each.name, Archive(), OWNER)
                return


@pytest.mark.rights
async def test_whatever_hands_and_other_processes_do_the_next_look_has_it(home: Path, tier: Tier) -> None:
    clock = ManualClock()
    random = tier.random()
    async with opened(home, clock) as (library, ledger), opened(home, clock) as (other, _):
        hands, moments = Hands(home, other, random), SnapshotCache(library)
        still = 0
        for _ in range(tier.size(short=60, full=400)):
            deed = await hands.do()
            if random.random() < 0.1:
                clock.advance(timedelta(days=1).total_seconds())
            found = await moments.snapshot(FOLDER)
            assert found == await SnapshotCache(library).snapshot(FOLDER), deed
            read = ledger.reads
            assert await moments.snapshot(FOLDER) == found
            still += ledger.reads == read
        assert still > 0


async def test_nothing_is_read_again_while_nothing_is_touched(home: Path) -> None:
    clock = ManualClock()
    async with opened(home, clock) as (library, ledger):
        await library.keeper.note([(USER, Add("likes tea"))], OWNER)
        moments = SnapshotCache(library)
        known = await moments.snapshot(FOLDER)
        reads = ledger.reads
        for _ in range(3):
            assert await moments.snapshot(FOLDER) is known
            assert not await moments.news(FOLDER, known.upto, SessionId("a"))
        assert ledger.reads == reads
        clock.advance(timedelta(days=1).total_seconds())
        assert await moments.snapshot(FOLDER) == known
        assert ledger.reads > reads, "ranks are those of a day"


async def test_an_edit_that_leaves_size_and_time_as_they_were_is_noticed(home: Path) -> None:
    """As long as the clock of the files may not have moved on, how they look proves nothing."""
    async with opened(home, ManualClock(), time.time_ns) as (library, _):
        await library.keeper.note([(USER, Add("likes tea"))], OWNER)
        moments, path = SnapshotCache(library), home / "USER.md"
        assert (await moments.snapshot(FOLDER)).user == ("likes tea",)
        status = path.stat()
        path.write_text(path.read_text().replace("tea", "rum"))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert (await moments.snapshot(FOLDER)).user == ("likes rum",)


async def test_all_who_ask_at_once_share_an_answer_that_is_never_older_than_the_question() -> None:
    told = found = 0
    gate = asyncio.Event()

    async def find() -> int:
        nonlocal found
        found += 1
        seen = told
        await gate.wait()
        return seen

    shared = SingleFlight(find)
    first = asyncio.create_task(shared.ask())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    told = 1
    later = [asyncio.create_task(shared.ask()) for _ in range(50)]
    await asyncio.sleep(0)
    later[0].cancel()
    gate.set()
    assert await first == 0
    assert await asyncio.gather(*later[1:]) == [1] * 49
    assert found == 2
    assert await shared.ask() == 1
    assert found == 3


async def test_an_answer_that_cannot_be_found_is_told_to_all_who_asked_and_looked_for_again() -> None:
    fail = True

    async def find() -> int:
        if fail:
            raise OSError("gone")
        return 1

    shared = SingleFlight(find)
    assert [
        type(each) for each in await asyncio.gather(shared.ask(), shared.ask(), return_exceptions=True)
    ] == [OSError, OSError]
    fail = False
    assert await shared.ask() == 1
