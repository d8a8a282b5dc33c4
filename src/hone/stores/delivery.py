"""The embedded queue: a process works on its own home's queue, and no other program is needed."""

import asyncio
from collections.abc import Callable

from hone.core.clock import Clock
from hone.core.delivery import DeliveryStatus, Perform, TicketKind, WorkItem
from hone.core.jobs import Job, JobId, Jobs

POLL = 2.0
"""Seconds between two checks of the queue."""
REST = 60.0
"""Seconds before failed work is tried again."""


class EmbeddedDelivery:
    """Works on the queue. `once`: end when everything was tried."""

    def __init__(self, jobs: Jobs, clock: Clock, *, once: bool = False) -> None:
        self._jobs = jobs
        self._clock = clock
        self._once = once
        self._resting: dict[JobId, float] = {}

    async def serve(self, perform: Perform, concurrency: int, say: Callable[[str], None]) -> None:
        """Work on the queue, oldest first. Failed work rests for a while."""
        tended = float("-inf")
        while True:
            await perform(WorkItem(TicketKind.WAKE))
            await self._work_off(perform, asyncio.Semaphore(concurrency))
            await self._do_commands(perform)
            if self._clock.monotonic() - tended >= REST:
                await perform(WorkItem(TicketKind.TEND))
                tended = self._clock.monotonic()
            if self._once:
                return
            await self._clock.sleep(POLL)

    async def _work_off(self, perform: Perform, free: asyncio.Semaphore) -> None:
        async with asyncio.TaskGroup() as group:
            for job in await self._jobs.waiting():
                if self._resting.get(job.id, 0.0) <= self._clock.monotonic():
                    await free.acquire()
                    task = group.create_task(self._try(job, perform))
                    task.add_done_callback(lambda _: free.release())

    async def _do_commands(self, perform: Perform) -> None:
        """Do one step of what the owner queued; everything that can be done now if this is to end."""
        while True:
            left = await perform(WorkItem(TicketKind.COMMAND))
            is_due = left.command is not None and left.command <= self._clock.now()
            if not (self._once and left.worked and is_due):
                return

    async def _try(self, job: Job, perform: Perform) -> None:
        result = await perform(WorkItem(TicketKind.REVIEW, job=job.id))
        self._resting[job.id] = self._clock.monotonic() + (REST if result.worked else 0.0)

    async def status(self) -> DeliveryStatus:
        """Return the status. A file of the home names its worker."""
        waiting = len(await self._jobs.waiting())
        return DeliveryStatus(waiting={TicketKind.REVIEW: waiting} if waiting else {})
