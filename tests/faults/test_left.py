"""E1, E2: leaving in any way loses no lesson and doubles none, and leaves no process behind."""

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

import pytest

from hone.core.messages import Message
from hone.models.fake_provider import FakeProvider
from hone.runtime.claims import find_worker
from tests.cli.driving import CTRL_D, HONE, environment, hone, terminal
from tests.conftest import Figures, Tier
from tests.faults.left import WISH, aftermath, gone, learner
from tests.processes import has_ended

WAYS = (
    "exit",
    "kill the run",
    "kill the chat",
    "hang up on the chat",
    "close the window",
    "kill the worker",
    "stop the worker",
    "kill both",
)
LONGEST = 1.5
"""Seconds after which the last of what is done in the background is over, most of the time."""


@dataclass
class Scene:
    home: Path
    stage: FakeProvider
    random: Random
    begun: asyncio.Event
    env: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.home.mkdir(mode=0o700)
        self.env = environment(self.home, self.stage, HONE_LEARNING="")

    async def moment(self, most: float = LONGEST) -> None:
        """Lets some of it happen."""
        await asyncio.sleep(self.random.uniform(0.0, most))

    async def run(self, *, kill: bool = False) -> None:
        process = await asyncio.create_subprocess_exec(
            *HONE,
            *("run", "-q", WISH),
            env=self.env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
        )
        if kill:
            await self.begun.wait()
            await self.moment(0.6)
            with suppress(ProcessLookupError):
                process.kill()
        await process.wait()

    async def chat(self, way: str) -> None:
        async with terminal(env=self.env) as user:
            await user.enter(WISH)
            await user.sees("Yes.")
            if way == "kill the chat":
                await self.moment(0.3)
                user.signal(signal.SIGKILL)
            elif way == "hang up on the chat":
                await self.moment(0.3)
                user.signal(signal.SIGHUP)
            else:
                await user.prompt()
                if self.random.random() < 0.5:
                    user.type(CTRL_D)
                    await self.moment(0.3)
                user.hang_up()
            await user.ended()

    async def strike(self, number: int) -> None:
        """The worker, if there is one at that moment."""
        await self.moment()
        if worker := find_worker(self.home):
            with suppress(ProcessLookupError):
                os.kill(worker, number)
            await asyncio.to_thread(has_ended, worker)

    async def play(self, way: str) -> None:
        match way:
            case "exit":
                await self.run()
            case "kill the run":
                await self.run(kill=True)
            case "kill the worker":
                await self.run()
                await self.strike(signal.SIGKILL)
            case "stop the worker":
                await self.run()
                await self.moment()
                assert (await hone("worker", "stop", env=self.env)).code == 0
            case "kill both":
                await self.run(kill=True)
                await self.strike(signal.SIGKILL)
            case _:
                await self.chat(way)


def heard(begun: asyncio.Event, messages: Sequence[Message]) -> Message:
    begun.set()
    return learner(messages)


@pytest.mark.timeout(3_600)
async def test_however_the_owner_leaves_the_lesson_is_learned_once_and_nobody_stays(
    tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    tried, wrong, at = 0, list[str](), list[int]()
    for draw in tier.draws(short=5, full=200):
        way = WAYS[draw.index % len(WAYS)]
        begun = asyncio.Event()
        async with FakeProvider(partial(heard, begun)) as stage:
            scene = Scene(tmp_path / f"home{draw.index}", stage, draw.random, begun)
            await scene.play(way)
            stray = await gone(scene.home)
            found = await aftermath(scene.home, stage)
            assert stage.invalid == []
        found += [f"stray: {stray}"] if stray else []
        tried += 1
        wrong += [f"{way}: {each}" for each in found]
        at += [draw.index] if found else []
    doubled = sum(": doubled" in each or ": stray" in each for each in wrong)
    figures.tally(tried, got_in=doubled, lost=len(wrong) - doubled, note="ways to leave", at=at)
    assert not wrong, "\n".join(wrong)
