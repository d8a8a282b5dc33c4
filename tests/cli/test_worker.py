"""How a worker goes through the queue: what failed rests, what somebody else has does not."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from hone import Hone
from hone.core.clock import ManualClock
from hone.core.delivery import TicketKind, WorkItem
from hone.core.jobs import JobId
from hone.models.scripted import Scripted, lines
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

        async def perform(item: WorkItem) -> bool:
            if item.kind is not TicketKind.REVIEW:
                return False
            times.append(clock.monotonic())
            if len(times) == len(answers):
                serving.cancel()
            return answers[len(times) - 1]

        serving = asyncio.ensure_future(EmbeddedDelivery(hone.jobs, clock).serve(perform, 1, print))
        await asyncio.wait([serving])
    return times


async def test_what_could_not_be_done_rests_for_a_minute(tmp_path: Path) -> None:
    assert await tried(tmp_path, [True, True, False]) == [0, REST, 2 * REST]


async def test_what_somebody_else_has_is_tried_at_the_next_look(tmp_path: Path) -> None:
    assert await tried(tmp_path, [False, False, False]) == [0, POLL, 2 * POLL]


async def test_once_looks_at_each_job_once(tmp_path: Path) -> None:
    seen: list[WorkItem] = []

    async def perform(item: WorkItem) -> bool:
        seen.append(item)
        return True

    async with Hone(home=tmp_path, model=Scripted(lines("Yes."))) as hone:
        session = await hone.session()
        await session.send("hello")
        for _ in range(2):
            await hone.jobs.enqueue(session.id, 2, TOPICS, "by hand", NOON)
        await EmbeddedDelivery(hone.jobs, ManualClock(), once=True).serve(perform, 1, print)
    reviews = [WorkItem(TicketKind.REVIEW, job=JobId(number)) for number in (1, 2)]
    assert seen == [WorkItem(TicketKind.WAKE), *reviews, WorkItem(TicketKind.TEND)]
