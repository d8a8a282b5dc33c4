"""An interrupt ends a request at once, whatever it is waiting for."""

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from hone.core.clock import SystemClock
from hone.core.errors import Overloaded
from hone.core.model import Piece, Restart
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.models.http import Http
from hone.models.wrappers import Patience, Retrying
from tests.models import loopback
from tests.models.loopback import HELLO, STREAM, Reader, Writer, client, serving, turn, until

quiet = loopback.quiet
Wait = Callable[[], Awaitable[None]]
State = Callable[[AsyncExitStack, pytest.MonkeyPatch], Awaitable[tuple[str, Wait]]]
"""Sets a server up; gives the URL to ask, and what returns when the state is reached."""


async def looking_up(stack: AsyncExitStack, patch: pytest.MonkeyPatch) -> tuple[str, Wait]:
    """A name server that does not answer holds a thread, and nothing can end it."""
    asked, released = threading.Event(), threading.Event()

    def never(*_: Any, **__: Any) -> list[Any]:
        asked.set()
        released.wait()
        return []

    patch.setattr("hone.models.http.connection.look_up", never)
    stack.callback(released.set)
    return "http://slow.test/", lambda: until(asked.is_set)


async def connecting(stack: AsyncExitStack, _: pytest.MonkeyPatch) -> tuple[str, Wait]:
    """A server whose queue is full does not even refuse."""
    server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
    for _each in range(3):
        waiting = stack.enter_context(socket.socket())
        waiting.setblocking(False)
        waiting.connect_ex(server.getsockname())
    return f"http://127.0.0.1:{server.getsockname()[1]}/", turn


@asynccontextmanager
async def hearing(start: bytes, again: bytes = b"") -> AsyncIterator[tuple[str, Wait]]:
    """A server that says this when it is spoken to, and then nothing, or this again and again."""
    reached = asyncio.Event()

    async def script(reader: Reader, writer: Writer) -> None:
        await reader.read(1)
        writer.write(start)
        await writer.drain()
        reached.set()
        while again:
            writer.write(again)
            await writer.drain()
        await reader.read()

    async def wait() -> None:
        await reached.wait()
        await turn()

    async with serving(script) as site:
        yield site.url, wait


async def shaking_hands(stack: AsyncExitStack, _: pytest.MonkeyPatch) -> tuple[str, Wait]:
    url, wait = await stack.enter_async_context(hearing(b""))
    return url.replace("http:", "https:"), wait


async def tunneling(stack: AsyncExitStack, patch: pytest.MonkeyPatch) -> tuple[str, Wait]:
    url, wait = await stack.enter_async_context(hearing(b"HTTP/1.1 200"))
    patch.setenv("HTTPS_PROXY", url.removesuffix("/v1"))
    return "https://secure.test/", wait


async def waiting(stack: AsyncExitStack, _: pytest.MonkeyPatch) -> tuple[str, Wait]:
    return await stack.enter_async_context(hearing(b""))


async def reading(stack: AsyncExitStack, _: pytest.MonkeyPatch) -> tuple[str, Wait]:
    return await stack.enter_async_context(hearing(STREAM + HELLO))


async def flooded(stack: AsyncExitStack, _: pytest.MonkeyPatch) -> tuple[str, Wait]:
    return await stack.enter_async_context(hearing(STREAM, HELLO * 1_000))


async def drain(http: Http, url: str) -> None:
    async with http.post(url, {}, b"{}") as exchange:
        async for _ in exchange:
            continue


@pytest.mark.parametrize(
    "state", [looking_up, connecting, shaking_hands, tunneling, waiting, reading, flooded]
)
async def test_an_interrupt_ends_a_request_in_every_state(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AsyncExitStack() as stack:
        url, reached = await state(stack, monkeypatch)
        http = await stack.enter_async_context(client())
        asking = asyncio.create_task(drain(http, url))
        await reached()
        assert not asking.done()
        asking.cancel()
        await turn()
        assert asking.cancelled()


class Busy:
    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        raise Overloaded("Later.", 60)
        yield


async def test_an_interrupt_ends_the_pause_before_another_try() -> None:
    pausing = asyncio.Event()
    model = Retrying(Busy(), SystemClock(), Patience())

    async def ask() -> None:
        async for piece in model.stream(Prefix("a/b", "", ()), Transcript("")):
            assert isinstance(piece, Restart)
            pausing.set()

    asking = asyncio.create_task(ask())
    await pausing.wait()
    await turn()
    asking.cancel()
    await turn()
    assert asking.cancelled()


PROGRAM = """
import asyncio, threading
from hone.core.clock import SystemClock
from hone.models.http import Http, connection

asked = threading.Event()

def never(*_, **__):
    asked.set()
    threading.Event().wait()

connection.look_up = never

async def main():
    http = Http(SystemClock())
    asking = asyncio.create_task(http.get("http://slow.test/", {}).__aenter__())
    while not asked.is_set():
        await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])
    print("interrupted")

asyncio.run(main())
"""


def test_a_program_ends_although_its_name_server_never_answers() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")
