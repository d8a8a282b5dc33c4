"""Two peers that are connected in memory, and a channel that plays what a test wrote."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from hone.rpc.messages import ConnectionLost
from hone.rpc.peer import Handler, Peer


class Wire:
    """One end of a connection in memory."""

    def __init__(self) -> None:
        self.other: Wire = self
        self.arrived: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.sent: list[bytes] = []

    async def send(self, message: bytes) -> None:
        self.sent.append(message)
        self.other.arrived.put_nowait(message)

    async def receive(self) -> bytes:
        message = await self.arrived.get()
        if message is None:
            raise ConnectionLost("The other side has closed the connection.")
        return message

    async def close(self) -> None:
        self.other.arrived.put_nowait(None)


def wires() -> tuple[Wire, Wire]:
    one, two = Wire(), Wire()
    one.other, two.other = two, one
    return one, two


def script(messages: Sequence[bytes]) -> Wire:
    """A channel on which these messages arrive, and then nothing more."""
    near, _ = wires()
    for message in (*messages, None):
        near.arrived.put_nowait(message)
    return near


@asynccontextmanager
async def running(*peers: Peer) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(peer.run()) for peer in peers]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def connected(near: Handler, far: Handler) -> AsyncIterator[tuple[Peer, Peer]]:
    one, two = wires()
    peers = Peer(one, near, cancel=lambda id: ("cancel", {"id": id})), Peer(two, far, reports_noise=True)
    async with running(*peers):
        yield peers
