"""Clients of a server under load: they talk, think, leave in the middle of answers and start over."""

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from urllib.parse import urlsplit

from benchmarks.talk import spoken

TURNS = (2, 5)
"""The fewest and most turns of a conversation; then its client begins another one."""
CALLS = 1
CUT, STREAMED = 0.1, 0.5
"""Shares of the turns: those whose client disconnects in the middle, and those that are streamed."""
STOP = (b'"finish_reason":"stop"', b'"finish_reason": "stop"')


@dataclass(frozen=True, slots=True)
class Place:
    """Where the server is, and the key to it."""

    url: str
    key: str

    def request(self, name: str, *, stream: bool) -> bytes:
        said = [{"role": "user", "content": spoken(CALLS)}]
        body = json.dumps({"messages": said, "stream": stream}).encode()
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: {urlsplit(self.url).netloc}\r\n"
            f"Authorization: Bearer {self.key}\r\nContent-Type: application/json\r\nConnection: close\r\n"
            f"X-Hone-Session: {name}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


@dataclass(slots=True)
class Crowd:
    """`think` is the mean time between an answer and the next words, in seconds. Every turn opens a
    connection, so the server has to notice each client that leaves."""

    place: Place
    think: float
    random: Random
    seconds: list[float] = field(default_factory=list)
    cut: int = 0
    conversations: int = 0
    wrong: list[str] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def talk(self, number: int) -> None:
        """Run one client until the end. It enters the first conversation somewhere in its middle."""
        left = self.random.randint(1, TURNS[1])
        await self._pause(self.random.random() * self.think)
        conversation = 0
        while not self.over.is_set():
            if not left:
                conversation, left = conversation + 1, self.random.randint(*TURNS)
            left -= 1
            await self._turn(f"soak-{number}-{conversation}")
            await self._pause(self.random.expovariate(1 / self.think) if self.think else 0.0)
        self.conversations += conversation + 1

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self.over.wait(), seconds)

    async def _turn(self, name: str) -> None:
        place, loop = urlsplit(self.place.url), asyncio.get_running_loop()
        leaves, stream = self.random.random() < CUT, self.random.random() < STREAMED
        began = loop.time()
        try:
            reader, writer = await asyncio.open_connection(place.hostname, place.port)
        except OSError as error:
            self.wrong.append(f"{name}: {error}")
            return
        try:
            writer.write(self.place.request(name, stream=stream or leaves))
            if leaves:
                await reader.readuntil(b"data: ")
                self.cut += 1
                return
            answer = await reader.read()
            if not answer.startswith(b"HTTP/1.1 200") or not any(mark in answer for mark in STOP):
                self.wrong.append(f"{name}: {answer[:1000]!r}")
                return
            self.seconds.append(loop.time() - began)
        except (OSError, EOFError) as error:
            self.wrong.append(f"{name}: {type(error).__name__} {error}")
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
