"""F6: a database that is opened read-only is read where it lies; what is added stays in memory."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from hashlib import sha256
from pathlib import Path

import apsw
import pytest

from hone.core.errors import StoreError
from hone.core.ids import SessionId
from hone.core.jobs import JobId
from hone.core.messages import user
from hone.core.ports import Header
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.stores.database import MIGRATIONS, PATIENCE, Database
from hone.stores.home import Stores, over
from hone.stores.readonly import open_readonly
from tests.given import NOON

PREFIX = Prefix("scripted/one", "You help.")
A, B = SessionId("a1"), SessionId("b1")
START = Transcript(PREFIX.digest).then(user("first"), Trust.OWNER, NOON)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    async def fill() -> None:
        stores = over(tmp_path, Database.open(tmp_path / "hone.db"))
        await stores.sessions.start(Header(A, NOON), PREFIX, START.nodes)
        await stores.jobs.enqueue(A, 1, frozenset({"memory"}), "by hand", NOON)
        await stores.close()

    asyncio.run(fill())
    return tmp_path / "hone.db"


@asynccontextmanager
async def closed(path: Path, *, overlay: bool = True) -> AsyncIterator[Stores]:
    """As a user opens it who cannot write it; root could, so the decision is made here."""
    first, more = open_readonly(path, PATIENCE, MIGRATIONS)
    stores = over(path.parent, Database(path, first, more, readonly=True, overlay=overlay))
    try:
        yield stores
    finally:
        await stores.close()


def contents(path: Path) -> dict[str, str]:
    files = (each for each in path.parent.iterdir() if not each.name.endswith("-shm"))
    return {each.name: sha256(each.read_bytes()).hexdigest() for each in files}


LASTING: dict[str, Callable[[Stores], Awaitable[object]]] = {
    "rename": lambda stores: stores.sessions.rename(A, "Another"),
    "delete": lambda stores: stores.sessions.delete(A),
    "enqueue": lambda stores: stores.jobs.enqueue(A, 1, frozenset({"memory"}), "by hand", NOON),
    "cancel": lambda stores: stores.jobs.cancel(JobId(1), NOON),
    "begin": lambda stores: stores.jobs.begin(JobId(1), B),
}


@pytest.mark.parametrize("name", LASTING)
async def test_what_the_user_expects_to_last_is_refused(path: Path, name: str) -> None:
    before = contents(path)
    async with closed(path) as stores:
        with pytest.raises(StoreError, match="is read-only; nothing was changed"):
            await LASTING[name](stores)
        assert [each.header.id for each in await stores.sessions.list()] == [A]
    assert contents(path) == before


async def test_what_a_conversation_adds_is_seen_in_this_process_and_nowhere_else(path: Path) -> None:
    before = contents(path)
    longer = START.then(user("second"), Trust.OWNER, NOON)
    async with closed(path) as stores:
        assert len((await stores.sessions.load(A)).transcript) == 1
        await stores.sessions.append(A, longer.nodes[1:])
        await stores.sessions.start(Header(B, NOON), PREFIX, START.nodes)
        assert (await stores.sessions.load(A)).transcript.head == longer.head
        assert {each.header.id for each in await stores.sessions.list()} == {A, B}
    async with closed(path) as stores:
        assert (await stores.sessions.load(A)).transcript.head == START.head
        assert [each.header.id for each in await stores.sessions.list()] == [A]
    assert contents(path) == before


async def test_without_a_place_for_them_all_writes_are_refused(path: Path) -> None:
    async with closed(path, overlay=False) as stores:
        with pytest.raises(StoreError, match="is read-only; nothing was changed"):
            await stores.sessions.start(Header(B, NOON), PREFIX, START.nodes)
        assert [each.header.id for each in await stores.sessions.list()] == [A]


@pytest.mark.parametrize("lost", [(), ("-shm",), ("-wal", "-shm")])
async def test_it_is_read_with_its_log_and_nothing_is_made_beside_it(
    path: Path, lost: tuple[str, ...]
) -> None:
    if "-wal" in lost:
        with closing(apsw.Connection(str(path))) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for suffix in lost:
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    before = sorted(each.name for each in path.parent.iterdir())
    async with closed(path) as stores:
        assert (await stores.sessions.load(A)).transcript.head == START.head
    assert sorted(each.name for each in path.parent.iterdir()) == before
