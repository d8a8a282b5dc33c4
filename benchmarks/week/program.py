"""A program that uses the library as documented."""

import asyncio
import os
import signal
from pathlib import Path

from msgspec import Struct

from benchmarks.week.world import SILENCE, TURN, WorldClock
from hone import Hone
from hone.core.permissions import Answer, Question

PAUSE, PATIENCE = 0.1, 50
"""Seconds between two checks whether an idle program has finished its reviews, and the number of checks."""
ASKED = "asked: "
"""The start of the line that says how often the owner was asked."""


class Task(Struct, frozen=True):
    """`signal` ends the program after its last turn, instead of a normal end."""

    turns: tuple[str, ...]
    signal: int = 0
    silent: bool = False
    """It stays open for a while after the last turn."""


def run(task: Task, clock: WorldClock, folder: Path) -> int:
    asked = asyncio.run(_converse(task, clock, folder))
    print(f"{ASKED}{asked}")
    return 0


async def _converse(task: Task, clock: WorldClock, folder: Path) -> int:
    asked = 0

    async def ask(_: Question) -> Answer:
        nonlocal asked
        asked += 1
        return Answer.ONCE

    async with Hone(folder=folder, ask=ask) as hone:
        session = await hone.session()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, session.cancel)
        for turn in task.turns:
            clock.advance(TURN)
            await session.send(turn)
        if task.silent:
            await _stay(hone, clock)
        if task.signal:
            os.kill(os.getpid(), task.signal)
    return asked


async def _stay(hone: Hone, clock: WorldClock) -> None:
    """Stay idle until the reviews that follow are done."""
    await asyncio.sleep(5 * PAUSE)
    clock.advance(SILENCE)
    for _ in range(PATIENCE):
        await asyncio.sleep(PAUSE)
        looks = getattr(hone.jobs, "looks", None)
        if not await hone.jobs.waiting() and not (looks and await looks()):
            return
