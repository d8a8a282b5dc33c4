"""Leaving a chat that still learns: nobody is kept for long, and nothing is lost."""

import asyncio
from collections.abc import AsyncGenerator

from hone import Hone
from hone.cli.lessons import GRACE, Lessons
from hone.core.clock import ManualClock
from hone.core.jobs import State
from hone.core.messages import Role, assistant
from hone.core.model import Piece, Reply
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.models.scripted import Scripted, call, lines
from hone.settings import Settings
from hone.settings.sections import Learning

EVERY = Settings(learning=Learning(turns=1))
NOTE = call("memory", action="add", text="Answer in one sentence.", evidence=["#1"])


class Slow:
    """Answers at once and looks back when it is let go."""

    def __init__(self) -> None:
        self.asked, self.go = asyncio.Event(), asyncio.Event()

    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        if sum(message.role is Role.USER for message in transcript) == 1:
            yield Reply(assistant("Yes."))
            return
        self.asked.set()
        await self.go.wait()
        yield Reply(assistant(NOTE))


async def test_a_review_that_is_about_to_end_is_told_to_whoever_leaves() -> None:
    said, model = list[str](), Slow()
    async with Hone(model=model, settings=EVERY) as hone, asyncio.timeout(60):
        lessons = Lessons(hone, lambda _: False, said.append)
        lessons.begin()
        await (await hone.session()).send("Always answer in one sentence.")
        await model.asked.wait()
        leaving = asyncio.create_task(lessons.finish())
        await asyncio.sleep(0)
        model.go.set()
        await leaving
        assert [job.state for job in await hone.jobs.jobs()] == [State.DONE]
    assert len(said) == 1
    assert "learned" in said[0]


async def test_one_that_takes_longer_is_left_to_whoever_comes_next() -> None:
    said, model, clock = list[str](), Slow(), ManualClock()
    async with Hone(model=model, settings=EVERY, clock=clock) as hone, asyncio.timeout(60):
        lessons = Lessons(hone, lambda _: False, said.append)
        lessons.begin()
        await (await hone.session()).send("Always answer in one sentence.")
        await model.asked.wait()
        leaving = asyncio.create_task(lessons.finish())
        while not leaving.done():
            await asyncio.sleep(0)
            clock.advance(GRACE)
        await leaving
        assert [job.state for job in await hone.jobs.jobs()] == [State.QUEUED]
    assert said == []


async def test_where_nothing_is_left_to_learn_nothing_is_said() -> None:
    said: list[str] = []
    async with Hone(model=Scripted(lines("Yes."))) as hone:
        lessons = Lessons(hone, lambda _: False, said.append)
        lessons.begin()
        await (await hone.session()).send("hello")
        await lessons.finish()
    assert said == []
