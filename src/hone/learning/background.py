"""Run reviews and the background work of features, one at a time, without delaying the conversation."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cached_property

from hone.core.clock import Clock
from hone.core.errors import StoreError
from hone.core.events import Emit
from hone.core.jobs import Job, JobId, Jobs, Topics
from hone.core.part import Part
from hone.core.topics import NAMES
from hone.learning.review import Reviewer
from hone.models.wrappers import Aside
from hone.runtime.session import ignore
from hone.runtime.triggers import ENOUGH

BREATH = 0.1
"""Seconds in which the prompt comes back before a review begins to share the processor with it."""
PATIENCE = 60.0
"""Seconds that a review steps aside in all: a turn that takes longer than that is mostly waiting itself."""

GLANCE = 600.0
"""Seconds between two looks for other work."""


class Background:
    """`attend` from a process that stays; one that does not leaves its jobs in the queue. `hire` gives the
    reviewer when one is needed. `pause` is how long the user must be quiet before a review begins: on a
    server that does one thing at a time it would be in the way. `topics` are what reviews are about; without
    any, nothing is looked back over. `parts` yields the parts of features and
    plugins that implement a hook: they attend, hear of changes and tend their own work."""

    def __init__(
        self,
        jobs: Jobs,
        hire: Callable[[], Reviewer],
        clock: Clock,
        parts: Callable[[str], Iterable[Part]] = lambda _: (),
        pause: float = 0.0,
        topics: Topics = NAMES,
    ) -> None:
        self._jobs = jobs
        self._topics = topics
        self._hire = hire
        self._clock = clock
        self._parts = parts
        self._pause = pause
        self._emit: Emit = ignore
        self._turn = asyncio.Lock()
        self._busy = self._turns = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._seen: set[JobId] = set()
        self.working: JobId | None = None

    @cached_property
    def _reviewer(self) -> Reviewer:
        return self._hire()

    def attend(self, emit: Emit) -> None:
        """From now on, does what is queued, what an earlier process left included."""
        self._emit = emit
        if self._task is None:
            self._task = asyncio.create_task(self._serve())
        self._wake.set()
        for part in self._parts("attend"):
            part.attend()

    def notify(self) -> None:
        """Something was queued."""
        self._wake.set()

    def again(self, id: JobId) -> None:
        """One that was tried here is to be tried once more."""
        self._seen.discard(id)
        self._wake.set()

    def occupied(self, busy: bool) -> None:
        """The user's turn begins or has ended."""
        self._busy += 1 if busy else -1
        self._turns += busy
        if self._busy:
            self._idle.clear()
            return
        self._idle.set()
        self._tell_parts()

    async def drain(self) -> None:
        """Does what is queued, and returns when it is done: what is at work already included."""
        async with self._turn:
            for job in await self._left():
                await self._do(job)
        for part in self._parts("finish"):
            await part.finish()

    async def close(self) -> None:
        """What is at work is left for later; it starts again from nothing."""
        if self._task:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _serve(self) -> None:
        while True:
            await self._woken()
            await self._clock.sleep(BREATH)
            self._wake.clear()
            for job in await self._left():
                await self._quiet()
                async with self._turn:
                    await self._do(job)
            await self._quiet()
            for part in self._parts("tend"):
                await part.tend(self._emit)  # without the turn: whoever leaves need not wait for it

    def _tell_parts(self) -> None:
        for part in self._parts("notify"):
            part.notify()

    async def _woken(self) -> None:
        """Until something was queued, a look is due, or for a while."""
        with suppress(TimeoutError):
            async with self._clock.timeout(await self._patience()):
                await self._wake.wait()

    async def _patience(self) -> float:
        """Seconds until the next look is due."""
        try:
            looks = await self._jobs.looks() if self._topics else ()
        except StoreError:
            return GLANCE
        now = self._clock.now()
        ahead = [(look.due - now).total_seconds() for look in looks if look.due > now]
        return min([GLANCE, *ahead])

    async def _quiet(self) -> None:
        """Until the user has been quiet for a while."""
        while self._pause:
            await self._idle.wait()
            turns = self._turns
            await self._clock.sleep(self._pause)
            if self._idle.is_set() and turns == self._turns:
                return

    def _aside(self) -> Aside:
        """For one review: waits while a turn of the user's is on."""
        left = PATIENCE

        async def aside() -> None:
            nonlocal left
            while left > 0 and not self._idle.is_set():
                began = self._clock.monotonic()
                with suppress(TimeoutError):
                    async with self._clock.timeout(left):
                        await self._idle.wait()
                await self._clock.sleep(BREATH)
                left -= self._clock.monotonic() - began

        return aside

    async def _left(self) -> Sequence[Job]:
        """What is queued and was not tried here. Whoever next has the store has what we cannot read."""
        try:
            if self._topics:
                await self._jobs.promote(self._clock.now(), self._topics, ENOUGH)
            waiting = await self._jobs.waiting()
            self._reviewer.tidy(waiting)
        except StoreError:
            return ()
        return [job for job in waiting if job.id not in self._seen]

    async def _do(self, job: Job) -> None:
        """Once in this process, unless another one had it: what fails is tried again by the next one."""
        if job.id in self._seen:
            return
        self.working = job.id
        try:
            await self._reviewer.work(job.id, self._emit, self._aside())
            after = await self._jobs.job(job.id)
            tried = after.tries > job.tries or bool(after.error)
        except StoreError:
            tried = True
        finally:
            self.working = None
            self._tell_parts()
        if tried:
            self._seen.add(job.id)
