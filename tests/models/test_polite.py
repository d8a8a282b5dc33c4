"""E3: on a server that does one thing at a time, the user's turn comes first."""

import asyncio
from collections.abc import AsyncGenerator

from hone.core.messages import assistant
from hone.core.model import Piece, Reply, TextPiece
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.models.wrappers import YIELDED, Aside, Polite
from tests.rig import PREFIX, asked


class Server:
    """Answers a request piece by piece, when it is let go."""

    def __init__(self) -> None:
        self.begun = self.closed = 0
        self.asked, self.go = asyncio.Event(), asyncio.Event()

    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        self.begun += 1
        self.asked.set()
        try:
            yield TextPiece("We")
            await self.go.wait()
            yield Reply(assistant("Well."))
        finally:
            self.closed += 1


class Way:
    """`turn` is set while the user's turn is on."""

    def __init__(self) -> None:
        self.turn, self.free = asyncio.Event(), asyncio.Event()
        self.free.set()

    def begin(self) -> None:
        self.turn.set()
        self.free.clear()

    def end(self) -> None:
        self.turn.clear()
        self.free.set()

    async def wait(self) -> None:
        await self.free.wait()

    async def taken(self) -> None:
        await self.turn.wait()


async def collect(model: Polite) -> list[Piece]:
    return [piece async for piece in model.stream(PREFIX, asked())]


async def test_a_request_is_given_up_for_the_users_turn_and_sent_again_after_it() -> None:
    server, way = Server(), Way()
    reading = asyncio.create_task(collect(Polite(server, Aside(way.wait, way.taken))))
    await server.asked.wait()
    way.begin()
    async with asyncio.timeout(20):
        while server.closed == 0:  # noqa: ASYNC110  the server is told by nobody but its connection
            await asyncio.sleep(0)
    assert (server.begun, reading.done()) == (1, False)
    server.asked.clear()
    server.go.set()
    way.end()
    pieces = await reading
    assert pieces == [TextPiece("We"), YIELDED, TextPiece("We"), Reply(assistant("Well."))]
    assert (server.begun, server.closed) == (2, 2)


async def test_elsewhere_a_request_stands_still_and_goes_on() -> None:
    server, way = Server(), Way()
    server.go.set()
    way.begin()
    reading = asyncio.create_task(collect(Polite(server, Aside(way.wait))))
    await asyncio.sleep(0)
    assert server.begun == 0
    way.end()
    assert await reading == [TextPiece("We"), Reply(assistant("Well."))]
    assert server.begun == 1


async def test_who_gives_up_a_review_closes_its_request() -> None:
    server, way = Server(), Way()
    reading = asyncio.create_task(collect(Polite(server, Aside(way.wait, way.taken))))
    await server.asked.wait()
    await asyncio.sleep(0)
    reading.cancel()
    await asyncio.wait([reading])
    assert (reading.cancelled(), server.closed) == (True, 1)
