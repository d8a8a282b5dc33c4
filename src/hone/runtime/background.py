"""Owns what runs beside the conversation: reviews, one at a time, out of the user's way."""

import asyncio
from collections.abc import Callable

from hone.core.clock import Clock
from hone.core.events import Emit
from hone.core.jobs import JobId, Jobs
from hone.runtime.review import Reviewer


class Background:
    """`attend` from a process that stays; one that does not leaves its jobs in the queue. `pause` is how long
    the user must be quiet before a review begins: on a server that does one thing at a time it would be in
    the way."""

    def __init__(self, jobs: Jobs, reviewer: Reviewer, clock: Clock, pause: float = 0.0) -> None:
        self._jobs = jobs
        self._reviewer = reviewer
        self._clock = clock
        self._pause = pause
        self._emit: Emit | None = None
        self._busy = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._seen: set[JobId] = set()
        self.working: JobId | None = None

    def attend(self, emit: Emit) -> None:
        """From now on, does what is queued, what an earlier process left included."""
        self._emit = emit
        if self._task is None:
            self._task = asyncio.create_task(self._serve())
        self._wake.set()

    def notify(self) -> None:
        """Something was queued."""
        self._wake.set()

    def occupied(self, busy: bool) -> None:
        """The user's turn begins or has ended."""
        self._busy += 1 if busy else -1
        if self._busy:
            self._idle.clear()
        else:
            self._idle.set()

    async def left(self) -> int:
        """How many reviews are still to be done."""
        return len(await self._jobs.waiting())

    async def drain(self, say: Callable[[int], None] = lambda _: None) -> None:
        """Waits until nothing is left that this process can do."""
        while waiting := [job.id for job in await self._jobs.waiting() if job.id not in self._seen]:
            say(len(waiting))
            for id in waiting:
                await self._do(id)

    async def close(self) -> None:
        """What is at work is left for later; it starts again from nothing."""
        if self._task:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _serve(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            for job in await self._jobs.waiting():
                if job.id not in self._seen:
                    await self._quiet()
                    await self._do(job.id)

    async def _quiet(self) -> None:
        """Until the user has been quiet for a while."""
        while self._pause:
            await self._idle.wait()
            await self._clock.sleep(self._pause)
            if self._idle.is_set():
                return

    async def _do(self, id: JobId) -> None:
        """Once in this process: what fails is tried again by the next one."""
        self._seen.add(id)
        self.working = id
        try:
            await self._reviewer.work(id, self._emit or (lambda _: None))
        finally:
            self.working = None
