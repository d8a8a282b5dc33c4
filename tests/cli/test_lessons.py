"""Leaving a chat that still learns: nobody is kept for longer than a minute."""

import asyncio
from collections.abc import AsyncGenerator

from hone import Hone
from hone.cli.context import Interrupts
from hone.cli.lessons import LATER, MOST, STILL, Lessons
from hone.core.clock import ManualClock
from hone.core.jobs import State
from hone.core.model import Piece
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.models.scripted import Scripted, lines
from hone.settings import Learning, Settings


class Tongueless(Scripted):
    """Answers once and then never again."""

    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        if self.calls:
            await asyncio.Event().wait()
        async for piece in super().stream(prefix, transcript):
            yield piece


async def test_what_takes_longer_than_a_minute_is_left_for_later() -> None:
    clock, settings = ManualClock(), Settings(learning=Learning(turns=1))
    said: asyncio.Queue[str] = asyncio.Queue()
    async with Hone(model=Tongueless(lines("Yes.")), settings=settings) as hone, asyncio.timeout(60):
        lessons = Lessons(hone, lambda _: False, said.put_nowait, clock)
        lessons.begin()
        await (await hone.session()).send("Always answer in one sentence.")
        with Interrupts() as interrupts:
            leaving = asyncio.create_task(lessons.finish(interrupts))
            assert await said.get() == STILL
            clock.advance(MOST - 1)
            await asyncio.wait([leaving], timeout=0)
            assert not leaving.done()
            clock.advance(1)
            await leaving
        assert said.get_nowait() == LATER
        [job] = await hone.jobs.jobs()
        assert job.state is State.QUEUED


async def test_where_nothing_is_left_to_learn_nothing_is_said() -> None:
    said: list[str] = []
    async with Hone(model=Scripted(lines("Yes."))) as hone:
        lessons = Lessons(hone, lambda _: False, said.append)
        lessons.begin()
        await (await hone.session()).send("hello")
        with Interrupts() as interrupts:
            await lessons.finish(interrupts)
    assert said == []
