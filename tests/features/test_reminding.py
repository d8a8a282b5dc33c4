"""G1: nobody waits for memory: sockets that hang, a backend that does not stop, a file that is damaged."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from hone.core.backend import LIMIT, Backend, MemoryItem
from hone.core.clock import SystemClock
from hone.core.transcript import Transcript
from hone.features.backends.guarded import GuardedBackend
from hone.features.backends.honcho import HonchoBackend
from hone.features.backends.postgres import PostgresBackend
from hone.features.backends.reminding import Reminding
from hone.features.backends.sqlite import SqliteBackend
from tests.backing import closing, honcho
from tests.doubles.honcho import KEY, HonchoDouble
from tests.doubles.odd import Odd
from tests.rig import asked

SHORT = 0.05


def reminding(backend: Backend, deadline: float = SHORT) -> Reminding:
    async def home() -> str:
        return "here"

    return Reminding(backend, "ann", home, SystemClock(), deadline, lambda text: text)


@asynccontextmanager
async def silence() -> AsyncIterator[int]:
    """The port of a server that takes connections and says nothing."""
    held: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: held.append(writer), "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in held:
            writer.transport.abort()


async def test_a_database_that_does_not_answer_is_left_at_the_deadline() -> None:
    async with silence() as port:
        url = f"postgresql://me@127.0.0.1:{port}/db?sslmode=disable"
        slow = GuardedBackend(PostgresBackend(url, SystemClock(), is_cloud=False))
        await slow.warm()
        found, warning = await reminding(slow)("hello", asked())
        assert found is None
        assert warning == "Memory (postgres) is left out for now: no answer within 0.05 seconds."
        await slow.close()


async def test_a_service_that_does_not_answer_is_left_at_the_deadline_and_used_when_it_does() -> None:
    async with HonchoDouble() as double, closing(honcho(double)) as backend:
        await backend.store("ann", "tea", "Ann likes tea.", {"trust": "agent"})
        double.hung = True
        found, warning = await reminding(backend)("tea?", asked())
        assert (found, "within 0.05 seconds" in warning) == (None, True)
        double.hung = False
        found, warning = await reminding(backend, 30.0)("tea?", asked())
        assert warning == ""
        assert found is not None
        assert (found.text, found.label) == ("- tea: Ann likes tea.", "foreign")


async def test_a_service_that_is_not_there_is_one_warning() -> None:
    gone = HonchoBackend("http://127.0.0.1:9", KEY, SystemClock(), is_cloud=True)
    async with closing(gone) as backend:
        found, warning = await reminding(backend, 30.0)("tea?", asked())
        assert found is None
        assert "Honcho cannot be reached" in warning


class Stubborn(Odd):
    """Does not stop when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.released = asyncio.Event()

    async def query(
        self, user_id: str, text: str, limit: int = LIMIT, *, dialectic: bool = False
    ) -> Sequence[MemoryItem]:
        while not self.released.is_set():
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                continue
        return ()


async def test_a_backend_that_does_not_stop_when_told_to_is_left_behind() -> None:
    backend = Stubborn()
    found, warning = await reminding(GuardedBackend(backend))("hello", asked())
    assert found is None
    assert "no answer within" in warning
    backend.released.set()


async def test_a_damaged_file_is_one_warning_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "memories.db"
    path.write_bytes(b"this is no database " * 500)
    async with closing(SqliteBackend(path, SystemClock())) as backend:
        assert "is not a database" in (await backend.available()).why
        ask = reminding(backend, 30.0)
        found, warning = await ask("hello", Transcript("root"))
        assert found is None
        assert "is not a database" in warning
        assert await ask("hello", Transcript("root")) == (None, "")
    assert path.read_bytes() == b"this is no database " * 500
