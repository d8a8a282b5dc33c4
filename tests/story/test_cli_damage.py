"""`hone doctor --deep` and `--repair`: a damage is noticed, what can be read is saved, the rest is told."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import apsw

from hone.models.fake_provider import FakeProvider
from hone.models.scripted import echo
from tests.cli.driving import Ended, environment, hone

SESSIONS = "SELECT pageno FROM dbstat WHERE name = 'sessions' AND pagetype = 'leaf'"
CONTENTS = "SELECT pageno FROM dbstat WHERE name = 'contents' AND pagetype = 'overflow'"
SIZE = 4096


class Desk:
    """A home and the command on it."""

    def __init__(self, home: Path, stage: FakeProvider, folder: Path) -> None:
        self.database = home / "hone.db"
        self._env = environment(home, stage)
        self._folder = folder

    async def hone(self, *words: str) -> Ended:
        return await hone(*words, env=self._env, folder=self._folder)

    async def furnish(self) -> None:
        """Two conversations, one of them with a long message, an entry of the journal, and a title."""
        said = await self.hone("run", "--json", "-q", "first question")
        await self.hone("run", "long " * 2000)
        await self.hone("memory", "add", "The staging server is called otter.")
        named = await self.hone("sessions", "rename", json.loads(said.out)["session"], "otters")
        assert named.code == 0, named

    def overwrite(self, pages: str, change: Callable[[bytes], bytes]) -> None:
        """Changes the first of these pages, behind SQLite's back."""
        with closing(apsw.Connection(str(self.database))) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            start = (int(str(connection.execute(pages).fetchall()[0][0])) - 1) * SIZE
        data = self.database.read_bytes()
        page = change(data[start : start + SIZE])
        self.database.write_bytes(data[:start] + page + data[start + SIZE :])

    async def works(self) -> None:
        """It is whole, it answers, and it learns."""
        said = [
            await self.hone("doctor", "--deep"),
            await self.hone("run", "and now?"),
            await self.hone("memory", "add", "Otters like rivers."),
            await self.hone("doctor", "--deep"),
        ]
        assert [each.code for each in said] == [0] * 4, said


@asynccontextmanager
async def context(home: Path, folder: Path) -> AsyncIterator[Desk]:
    async with FakeProvider(echo) as stage:
        made = Desk(home, stage, folder)
        await made.furnish()
        yield made


async def test_a_changed_letter_is_found_and_the_home_is_whole_after_a_repair(
    home: Path, tmp_path: Path
) -> None:
    async with context(home, tmp_path) as at:
        well = await at.hone("doctor", "--deep")
        assert (well.code, "✗" in well.out) == (0, False), well
        assert "✓ database: every message, change and row is what was written" in well.out
        assert "nothing is damaged" in (await at.hone("doctor", "--repair")).out

        at.overwrite(SESSIONS, lambda page: page.replace(b"otters", b"otterz"))
        ill = await at.hone("doctor", "--deep")
        assert ill.code == 1
        assert "lost text: The table sessions and its index sessions_tree differ" in ill.out
        assert "hone doctor --repair" in ill.out

        mended = await at.hone("doctor", "--repair")
        assert mended.code == 0, mended
        assert (
            "✓ sessions: 2 saved, 0 gone\n✓ messages: 4 saved, 0 gone\n✓ changes: 1 saved, 0 gone"
            in mended.out
        )
        assert "1 row was stored twice with different contents" in mended.out
        await at.works()


async def test_a_page_of_sessions_that_is_gone_is_read_from_its_index(home: Path, tmp_path: Path) -> None:
    async with context(home, tmp_path) as at:
        before = await at.hone("sessions", "list")
        at.overwrite(SESSIONS, lambda _: bytes(SIZE))
        failed = await at.hone("sessions", "list")
        assert failed.code == 1
        assert "is damaged" in failed.err
        assert "hone doctor --repair" in failed.err
        mended = await at.hone("doctor", "--repair")
        assert "✓ sessions: 2 saved, 0 gone" in mended.out
        assert (await at.hone("sessions", "list")).out == before.out
        assert len(list(home.glob("hone-damaged-*.db"))) == 1
        await at.works()


async def test_a_message_that_is_gone_is_counted_and_the_rest_is_there(home: Path, tmp_path: Path) -> None:
    async with context(home, tmp_path) as at:
        at.overwrite(CONTENTS, lambda page: page.replace(b"long", b"lung", 1))
        mended = await at.hone("doctor", "--repair")
        assert mended.code == 0, mended
        assert "✓ messages: 3 saved, 1 gone" in mended.out
        await at.works()
        assert "first question" in (await at.hone("sessions", "search", "question")).out
        assert "The staging server is called otter." in (await at.hone("memory", "show")).out


async def test_a_home_that_somebody_has_open_is_not_repaired(home: Path, tmp_path: Path) -> None:
    async with context(home, tmp_path) as at:
        at.overwrite(SESSIONS, lambda _: bytes(SIZE))
        before = {each.name for each in home.iterdir()}, at.database.read_bytes()
        with closing(apsw.Connection(str(at.database))) as other:
            other.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            refused = await at.hone("doctor", "--repair")
        assert refused.code == 1
        assert "Another process has" in refused.err
        left = {each.name for each in home.iterdir()} - {"hone.db-wal", "hone.db-shm"}
        assert (left, at.database.read_bytes()) == before
