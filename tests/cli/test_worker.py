"""How a worker goes through the queue: what failed rests, what somebody else has does not."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from hone import Hone
from hone.cli.crew import without_file
from hone.core.clock import ManualClock
from hone.core.delivery import TicketKind, WorkItem, WorkResult
from hone.core.jobs import JobId
from hone.models.scripted import Scripted, lines
from hone.settings import Settings
from hone.settings.sections import Memory
from hone.stores.delivery import POLL, REST, EmbeddedDelivery
from tests.given import NOON

TOPICS = frozenset({"memory"})


async def tried(home: Path, answers: Sequence[bool]) -> list[float]:
    """When a job was tried that `answers` so, as many times as there are answers."""
    clock, times = ManualClock(), list[float]()
    async with Hone(home=home, model=Scripted(lines("Yes."))) as hone, asyncio.timeout(60):
        session = await hone.session()
        await session.send("hello")
        await hone.jobs.enqueue(session.id, 2, TOPICS, "by hand", NOON)

        async def perform(item: WorkItem) -> WorkResult:
            if item.kind is not TicketKind.REVIEW:
                return WorkResult(worked=False)
            times.append(clock.monotonic())
            if len(times) == len(answers):
                serving.cancel()
            return WorkResult(answers[len(times) - 1])

        serving = asyncio.ensure_future(EmbeddedDelivery(hone.jobs, clock).serve(perform, 1, print))
        await asyncio.wait([serving])
    return times


async def test_what_could_not_be_done_rests_for_a_minute(tmp_path: Path) -> None:
    assert await tried(tmp_path, [True, True, False]) == [0, REST, 2 * REST]


async def test_what_somebody_else_has_is_tried_at_the_next_look(tmp_path: Path) -> None:
    assert await tried(tmp_path, [False, False, False]) == [0, POLL, 2 * POLL]


async def test_once_looks_at_each_job_once(tmp_path: Path) -> None:
    seen: list[WorkItem] = []

    async def perform(item: WorkItem) -> WorkResult:
        seen.append(item)
        return WorkResult()

    async with Hone(home=tmp_path, model=Scripted(lines("Yes."))) as hone:
        session = await hone.session()
        await session.send("hello")
        for _ in range(2):
            await hone.jobs.enqueue(session.id, 2, TOPICS, "by hand", NOON)
        await EmbeddedDelivery(hone.jobs, ManualClock(), once=True).serve(perform, 1, print)
    reviews = [WorkItem(TicketKind.REVIEW, job=JobId(number)) for number in (1, 2)]
    rest = map(WorkItem, (TicketKind.COMMAND, TicketKind.TEND))
    assert seen == [WorkItem(TicketKind.WAKE), *reviews, *rest]


def test_memories_of_another_owner_lie_in_no_file_of_the_worker() -> None:
    assert without_file(Settings(memory=Memory(backend="sqlite"))).memory.backend == "null"
    away = Settings(memory=Memory(backend="postgres", url="postgresql://db"))
    assert without_file(away) is away
