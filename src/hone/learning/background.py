"""Run reviews and the background work of features, one at a time, without delaying the conversation."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import Protocol

from hone.core.clock import Clock
from hone.core.errors import StoreError
from hone.core.events import Emit
from hone.core.ids import SessionId
from hone.core.jobs import Job, JobId, Jobs, PendingLook, Topics, find_next
from hone.core.ledger import Entry
from hone.core.part import Part
from hone.core.topics import NAMES
from hone.models.wrappers import Aside
from hone.runtime.claims import Presence
from hone.runtime.session import ignore

BREATH = 0.1
"""Seconds in which the prompt comes back before a review begins to share the processor with it."""
PATIENCE = 60.0
"""Seconds that a review steps aside in all: a turn that takes longer than that is mostly waiting itself."""
LONG_PATIENCE = 300.0
"""The same where a server does one thing at a time."""
POLL = 0.5
"""Seconds between two looks whether the user's turn is on in another process."""
GLANCE = 600.0
"""Seconds between two looks for other work."""


class ReviewRunner(Protocol):
    """Takes jobs from the queue to their end, as `Reviewer` does."""

    async def work(self, id: JobId, emit: Emit, aside: Aside = ...) -> Sequence[Entry] | None: ...

    def tidy(self, waiting: Iterable[Job]) -> None: ...


class Background:
    """`attend` from a process that stays; one that does not leaves its jobs in the queue. `hire` gives the
    reviewer when one is needed. `parts` yields the parts of features and plugins that implement a hook: they
    attend, hear of changes and tend their own work. `topics` are what reviews are about; without any, nothing
    is looked back over. `is_local` tells whether the model's server does one thing at a time, as far as is
    known by then: if so, a review begins when the user has been quiet for `pause` seconds, and gives way to a
    turn in any process that has the same `presence`."""

    def __init__(
        self,
        jobs: Jobs,
        hire: Callable[[], ReviewRunner],
        clock: Clock,
        parts: Callable[[str], Iterable[Part]] = lambda _: (),
        pause: float = 0.0,
        topics: Topics = NAMES,
        presence: Presence | None = None,
        is_local: Callable[[], bool] = lambda: True,
    ) -> None:
        self._jobs = jobs
        self._hire = hire
        self._clock = clock
        self._parts = parts
        self._pause = pause
        self._topics = topics
        self._presence = presence
        self._is_local = is_local
        self._emit: Emit = ignore
        self._turn = asyncio.Lock()
        self._busy = self._turns = 0
        self._idle, self._taken = asyncio.Event(), asyncio.Event()
        self._idle.set()
        self._wake, self._stir = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._seen: set[JobId] = set()
        self._promoted = datetime.min.replace(tzinfo=UTC)
        self.working: JobId | None = None

    @cached_property
    def _reviewer(self) -> ReviewRunner:
        return self._hire()

    @property
    def is_attended(self) -> bool:
        return self._task is not None

    def attend(self, emit: Emit) -> None:
        """From now on, does what is queued, what an earlier process left included."""
        self._emit = emit
        if self._task is None:
            self._task = asyncio.create_task(self._serve())
        self.notify()
        for part in self._parts("attend"):
            part.attend()

    def notify(self) -> None:
        """Something was queued."""
        self._wake.set()
        self._stir.set()

    def again(self, id: JobId) -> None:
        """One that was tried here is to be tried once more."""
        self._seen.discard(id)
        self.notify()

    def occupied(self, busy: bool) -> None:
        """The user's turn begins or has ended."""
        self._busy += 1 if busy else -1
        self._turns += busy
        if self._busy:
            self._idle.clear()
            self._taken.set()
            if self._presence and self._is_local():
                self._presence.enter()
            return
        if self._presence:
            self._presence.leave()
        self._taken.clear()
        self._idle.set()
        self._stir.set()  # when to look back has moved
        self._tell_parts()

    async def drain(self) -> None:
        """Does what is due, and returns when it is done: what is at work already included."""
        async with self._turn:
            for job in await self._left():
                await self._do(job)
        for part in self._parts("finish"):
            await part.finish()

    async def finish_current(self, seconds: float) -> None:
        """Wait so long for the review that is at work, if there is one."""
        if self.working is not None:
            with suppress(TimeoutError):
                async with self._clock.timeout(seconds), self._turn:
                    return

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
        """Until something was queued, a look is due, or for a while. Each turn moves the looks."""
        left = self._clock.monotonic() + GLANCE
        while not self._wake.is_set():
            self._stir.clear()
            due = await self._next_due()
            wait = left - self._clock.monotonic()
            if due is not None:  # time may have passed while we asked
                wait = min(wait, (due - self._clock.now()).total_seconds())
            if wait <= 0:
                return
            try:
                async with self._clock.timeout(wait):
                    await self._stir.wait()
            except TimeoutError:
                return

    async def promote(self) -> None:
        """Queue the reviews of what is due. Raises StoreError."""
        self._promoted = now = self._clock.now()
        if any(look.due <= now for look in await self._looks()):
            await self._jobs.promote(now, self._topics)

    async def next_look(self, session: SessionId | None = None) -> datetime | None:
        """Return when the next review is due, of any conversation or of this one: at once if one is queued
        that was not tried here; None if none will be."""
        now = self._clock.now()
        jobs = await self._jobs.jobs(1)
        waiting = [job for job in await self._jobs.waiting() if job.id not in self._seen]
        if any(session in (None, job.session) for job in waiting):
            return now
        looks = [look for look in await self._looks() if session in (None, look.session)]
        return find_next(looks, now, first=not jobs)

    async def _next_due(self) -> datetime | None:
        """Return when the next look is due, of those that were not due when we last looked."""
        return min((look.due for look in await self._looks() if look.due > self._promoted), default=None)

    async def _looks(self) -> Sequence[PendingLook]:
        """What is to be looked back over. The next process finds what we cannot read."""
        try:
            return await self._jobs.looks() if self._topics else ()
        except StoreError:
            return ()

    async def _quiet(self) -> None:
        """Until the user has been quiet for a while."""
        while self._pause and self._is_local():
            await self._idle.wait()
            turns = self._turns
            await self._clock.sleep(self._pause)
            if self._idle.is_set() and turns == self._turns and not self._is_elsewhere():
                return

    def _is_elsewhere(self) -> bool:
        return self._presence is not None and self._is_local() and self._presence.is_elsewhere()

    def _aside(self) -> Aside:
        """For one review: waits while a turn of the user's is on."""
        waited = 0.0

        def left() -> float:
            return (LONG_PATIENCE if self._presence and self._is_local() else PATIENCE) - waited

        async def wait() -> None:
            nonlocal waited
            while left() > 0 and (not self._idle.is_set() or self._is_elsewhere()):
                began = self._clock.monotonic()
                with suppress(TimeoutError):
                    async with self._clock.timeout(left()):
                        await self._idle.wait()
                await self._clock.sleep(BREATH)
                waited += self._clock.monotonic() - began

        async def taken() -> None:
            if not self._is_local() or left() <= 0:
                await asyncio.Event().wait()
            while not self._is_elsewhere():
                with suppress(TimeoutError):
                    async with self._clock.timeout(POLL):
                        await self._taken.wait()
                        return

        return Aside(wait, taken if self._presence else None)

    async def _left(self) -> Sequence[Job]:
        """What is queued and was not tried here. The next process finds what we cannot read."""
        try:
            await self.promote()
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
