"""F6 on PostgreSQL: a backup is of one moment, and can be restored into PostgreSQL or into a home."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import apsw
import pytest

from hone.core.documents import RULES, SPILL, TEMPLATES, all_documents
from hone.core.ids import SessionId
from hone.core.messages import user
from hone.core.ports import Header
from hone.core.trust import Trust
from hone.features.backups.elsewhere import pin_rows, save_rows
from hone.files.documents import FileDocuments
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import echo
from hone.stores.postgres.home import open_home, open_stores
from tests import databases
from tests.cli.driving import Ended, environment, hone
from tests.stores.test_recall import NOW, PREFIX, talk

FACT, OTHER = "The plumber is called Ada.", "The harbor master is Ines Quint."


@pytest.fixture
def urls() -> Iterator[tuple[str, str]]:
    with ExitStack() as stack:
        one, two = (stack.enter_context(databases.new_database()) for _ in range(2))
        yield one, two


class Homes:
    """Homes by name, each with the address of its database; none for a file."""

    def __init__(self, root: Path, stage: FakeProvider, addresses: dict[str, str]) -> None:
        self._root, self._stage = root, stage
        self.addresses = addresses
        (root / "work").mkdir()

    async def act(self, home: str, *arguments: str) -> Ended:
        env = environment(self._root / home, self._stage) | {"HONE_DATABASE": self.addresses[home]}
        return await hone(*arguments, env=env, folder=self._root / "work")

    async def done(self, home: str, *arguments: str) -> str:
        ended = await self.act(home, *arguments)
        assert (ended.code, ended.err) == (0, ""), ended
        return ended.out

    async def begin(self) -> str:
        """Talk and learn in the first home, back it up, and return the session."""
        ran = await self.done("first", "run", "-q", "--json", "remember the plumber")
        await self.done("first", "memory", "add", FACT)
        await self.done("first", "memory", "add", OTHER)
        assert "Read back and checked" in await self.done("first", "backup", "a.tgz")
        return str(json.loads(ran)["session"])


async def test_a_backup_is_a_way_between_postgresql_and_a_home(tmp_path: Path, urls: tuple[str, str]) -> None:
    async with FakeProvider(echo) as stage:
        homes = Homes(tmp_path, stage, {"first": urls[0], "plain": "", "second": urls[1]})
        session = await homes.begin()
        for home in ("plain", "second"):
            assert "Restored" in await homes.done(home, "restore", "a.tgz")
            assert (tmp_path / home / "hone.db").exists() == (home == "plain")
            assert "✗" not in await homes.done(home, "doctor", "--deep")
            assert FACT in await homes.done(home, "memory", "show")
            assert session[:6] in await homes.done(home, "sessions", "search", "plumber")
        answer = await homes.act("second", "run", "-q", "-r", session, "and now?")
        assert answer.out == "A scripted model heard: and now?\n"
        refused = await homes.act("second", "restore", "a.tgz")
        assert (refused.code, "--replace" in refused.err) == (1, True)


async def read_documents(home: Path, url: str) -> list[tuple[str, str, bytes]]:
    stores = open_home(home, url)
    try:
        return [(kind.name, name, data) for kind, name, data in all_documents(stores.documents)]
    finally:
        await stores.close()


async def test_a_backup_has_the_documents_and_a_restore_trusts_nothing_unless_it_is_asked_to(
    tmp_path: Path, urls: tuple[str, str]
) -> None:
    async with FakeProvider(echo) as stage:
        homes = Homes(tmp_path, stage, {"first": urls[0], "plain": "", "second": urls[1]})
        await homes.done("first", "run", "-q", "hello")
        await homes.done("first", "trust", "--yes")
        stores = open_home(tmp_path / "first", urls[0])
        stores.documents.write(TEMPLATES, "a.json", b"one")
        stores.documents.write(SPILL, "x.txt", b"long")
        await stores.close()
        before = await read_documents(tmp_path / "first", urls[0])
        await homes.done("first", "backup", "a.tgz")
        await homes.done("plain", "restore", "a.tgz", "--with-rules")
        files = FileDocuments(tmp_path / "plain")
        assert [(kind.name, name, data) for kind, name, data in all_documents(files)] == before
        await homes.done("second", "restore", "a.tgz")
        untrusting = [each for each in before if each[0] != RULES.name]
        assert len(untrusting) < len(before)
        assert await read_documents(tmp_path / "second", urls[1]) == untrusting
        await homes.done("second", "restore", "a.tgz", "--replace", "--with-rules")
        assert await read_documents(tmp_path / "second", urls[1]) == before
        assert not (tmp_path / "second" / "templates").exists()
        [kept] = tmp_path.glob("second-before-restore-*")
        assert (kept / "templates" / "a.json").read_bytes() == b"one", "what was replaced works as a home"


@pytest.mark.long
async def test_what_a_restore_replaces_is_kept_and_what_was_erased_since_stays_erased(
    tmp_path: Path, urls: tuple[str, str]
) -> None:
    async with FakeProvider(echo) as stage:
        homes = Homes(tmp_path, stage, {"first": urls[0], "plain": "", "second": urls[1]})
        await homes.begin()
        for home in ("plain", "second"):
            await homes.done(home, "restore", "a.tgz")
        await homes.done("plain", "memory", "add", "Only in the plain home.")
        await homes.done("plain", "backup", "b.tgz")
        await homes.done("second", "restore", "b.tgz", "--replace")
        assert "Only in the plain home." in await homes.done("second", "memory", "show")
        [kept] = tmp_path.glob("second-before-restore-*")
        homes.addresses[kept.name] = ""
        former = await homes.done(kept.name, "memory", "show")
        assert (FACT in former, "Only in" in former) == (True, False), "what was replaced works as a home"
        await homes.done("second", "erase", "words", OTHER, "--yes")
        again = await homes.done("second", "restore", "b.tgz", "--replace")
        assert "What was erased since the backup was erased again" in again
        shown = await homes.done("second", "memory", "show")
        assert (FACT in shown, OTHER in shown) == (True, False)
        assert "✗" not in await homes.done("second", "doctor", "--deep")


def test_a_backup_is_of_one_moment_whatever_is_written_meanwhile(
    tmp_path: Path, urls: tuple[str, str]
) -> None:
    async def write(first: int, last: int) -> None:
        stores = open_stores(urls[0], "")
        chain = talk(*(f"message {number}" for number in range(first)))
        for number in range(first, last):
            chain = chain.then(user(f"message {number}"), Trust.OWNER, NOW)
        if first:
            await stores.sessions.append(SessionId("a"), chain.nodes[first:])
        else:
            await stores.sessions.start(Header(SessionId("a"), NOW), PREFIX, chain.nodes)
        await stores.close()

    asyncio.run(write(0, 3))
    tmp_path.joinpath("home").mkdir()
    with pin_rows(urls[0], tmp_path / "home") as rows:
        asyncio.run(write(3, 9))
        save_rows(rows, tmp_path / "hone.db", tmp_path / "files", lambda *_: None)
    with closing(apsw.Connection(str(tmp_path / "hone.db"))) as connection:
        assert connection.execute("SELECT count(*) FROM nodes").get == 3
        assert connection.execute("SELECT messages FROM sessions").get == 3
