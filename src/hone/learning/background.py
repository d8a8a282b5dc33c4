"""Run reviews, a few at a time, and the background work of features without delaying the conversation."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from math import isqrt
from typing import Protocol

from msgspec import Struct

from hone.core.clock import Clock
from hone.core.errors import StoreError
from hone.core.events import Emit
from hone.core.ids import SessionId
from hone.core.jobs import USUAL, Job, JobId, Jobs, Needed, PendingLook, Topics, find_next, find_ripe
from hone.core.ledger import Entry
from hone.core.part import Part
from hone.core.topics import NAMES
from hone.models.wrappers import Aside
from hone.runtime.claims import Presence
from hone.runtime.task_runner import ignore

BREATH = 0.1
"""Seconds for the prompt to come back before a review starts to share the processor with it."""
PATIENCE = 60.0
"""The most seconds that a review steps aside in total: a longer turn mostly waits itself."""
LONG_PATIENCE = 300.0
"""The same for a server that handles one request at a time."""
QUIET = 30.0
"""Seconds without words from the user before a review may use a local server."""
RELOAD = 1.0
"""Seconds between two checks of the queue while reviews run."""
POLL = 0.5
"""Seconds between two checks whether another process runs a turn of the user's."""
GLANCE = 600.0
"""Seconds between two checks for other work."""


class ReviewRunner(Protocol):
    """Works on jobs from the queue until they end, as `Reviewer` does."""

    async def work(self, id: JobId, emit: Emit, aside: Aside = ...) -> Sequence[Entry] | None: ...

    def tidy(self, waiting: Iterable[Job]) -> None: ...

    async def needed(self) -> Needed:
        """Return where learning does not pay and a review without a cue needs more turns."""
        ...


class Pacing(Struct, frozen=True):
    """How reviews share the model with the user. `is_local` tells whether the model's server handles one
    request at a time, as far as is known: if so, a review begins when the user has been quiet for `pause`
    seconds, and gives way to a turn in any process with the same `presence`. Otherwise up to `parallel`
    reviews run side by side, each of another conversation tree."""

    pause: float = 0.0
    presence: Presence | None = None
    is_local: Callable[[], bool] = lambda: True
    parallel: int = 1

    def most(self, queued: int) -> int:
        """Return how many reviews may run at a time. A longer queue allows more: few reviews leave the
        provider to the user, and many must get through."""
        return 1 if self.is_local() else max(1, min(self.parallel, isqrt(max(0, queued - 1)) + 1))

    def patience(self, queued: int) -> float:
        """Return how many seconds a review steps aside for turns: a minute if it is the only one, and less
        the more are waiting. A server with many conversations is never idle, and its reviews must keep up."""
        if self.presence and self.is_local():
            return LONG_PATIENCE
        return PATIENCE / max(1, queued) ** 2


UNHURRIED = Pacing()


class Background:
    """Call `attend` from a process that stays; any other leaves its jobs in the queue. `hire` returns the
    reviewer when one is needed. `parts` yields the parts of features and plugins that implement a hook: they
    attend, hear of changes and do their own work. `topics` are the topics of reviews; without any, nothing is
    looked back over."""

    def __init__(
        self,
        jobs: Jobs,
        hire: Callable[[], ReviewRunner],
        clock: Clock,
        parts: Callable[[str], Iterable[Part]] = lambda _: (),
        topics: Topics = NAMES,
        pacing: Pacing = UNHURRIED,
    ) -> None:
        self._jobs = jobs
        self._hire = hire
        self._clock = clock
        self._parts = parts
        self._topics = topics
        self._pacing = pacing
        self._emit: Emit = ignore
        self._at_work: dict[JobId, tuple[Job, asyncio.Task[None]]] = {}
        self._moved = asyncio.Event()
        self._queued, self._reloaded = 0, 0.0
        self._busy = self._turns = 0
        self._idle, self._taken = asyncio.Event(), asyncio.Event()
        self._idle.set()
        self._wake, self._stir = asyncio.Event(), asyncio.Event()
        self._rested = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._seen: set[JobId] = set()
        self._promoted = datetime.min.replace(tzinfo=UTC)

    @cached_property
    def _reviewer(self) -> ReviewRunner:
        return self._hire()

    @property
    def working(self) -> JobId | None:
        """The oldest review that runs here."""
        return min(self._at_work, default=None)

    @property
    def is_busy(self) -> bool:
        """Whether a turn of the user's is running."""
        return self._busy > 0

    @property
    def pause(self) -> float:
        """How many seconds the user must be quiet before a review begins."""
        return self._pacing.pause if self._pacing.is_local() else 0.0

    @property
    def is_attended(self) -> bool:
        return self._task is not None

    def attend(self, emit: Emit) -> None:
        """Work on the queue from now on, including what an earlier process left."""
        self._emit = emit
        if self._task is None:
            self._task = asyncio.create_task(self._serve())
        self.notify()
        for part in self._parts("attend"):
            part.attend()

    def notify(self) -> None:
        """Note that something was queued."""
        self._wake.set()
        self._stir.set()
        self._moved.set()

    def again(self, id: JobId) -> None:
        """Try a job once more that was already tried here."""
        self._seen.discard(id)
        self.notify()

    def occupied(self, busy: bool) -> None:
        """Note that the user's turn begins or has ended."""
        self._busy += 1 if busy else -1
        self._turns += busy
        if self._busy:
            self._idle.clear()
            self._taken.set()
            if self._pacing.presence and self._pacing.is_local():
                self._pacing.presence.enter()
            return
        if self._pacing.presence:
            self._pacing.presence.leave()
        self._taken.clear()
        self._idle.set()
        self._stir.set()  # the next look has moved
        self._tell_parts()

    async def drain(self) -> None:
        """Do what is due, and return when it is done, running reviews included."""
        await self._work_off(list(await self._left()))
        for part in self._parts("finish"):
            await part.finish()

    async def catch_up(self, emit: Emit, seconds: float) -> None:
        """Attend, and wait at most this long for what is due now. A server that handles one request at a time
        serves the user first. Raises StoreError."""
        due = await self.next_look()  # asked first: a review that has begun no longer waits
        self.attend(emit)
        if due is not None and due <= self._clock.now() and not self._pacing.is_local():
            with suppress(TimeoutError):
                async with self._clock.timeout(seconds):
                    await self._rested.wait()

    async def finish_current(self, seconds: float) -> None:
        """Wait at most this long for running reviews, if there are any."""
        if tasks := [task for _, task in self._at_work.values()]:
            with suppress(TimeoutError):
                async with self._clock.timeout(seconds):
                    await asyncio.wait(tasks)

    async def close(self) -> None:
        """Stop. Running reviews are left for later, and start over."""
        if self._task:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _serve(self) -> None:
        while True:
            await self._woken()
            await self._clock.sleep(BREATH)
            self._wake.clear()
            await self._work_off(list(await self._left()), quiet=True, until=self._clock.monotonic() + GLANCE)
            self._rested.set()
            await self._quiet()
            for part in self._parts("tend"):
                await part.tend(self._emit)

    async def _work_off(self, left: list[Job], *, quiet: bool = False, until: float = 0.0) -> None:
        """Do these reviews, and those that are queued in the meantime. `quiet`: wait for a pause before each,
        if the server handles one request at a time."""
        async with asyncio.TaskGroup() as group:
            while left or (self._at_work and self._clock.monotonic() < until):
                await self._reload(left, until)
                job = self._find_free(left)
                if job is None:
                    await self._move(until)
                    continue
                if quiet:
                    await self._quiet()
                if job is self._find_free(left):
                    left.remove(job)
                    self._start(job, group)

    def _start(self, job: Job, group: asyncio.TaskGroup) -> None:
        task = group.create_task(self._do(job))
        self._at_work[job.id] = job, task

        def end(_: object) -> None:
            del self._at_work[job.id]
            self._moved.set()
            self._tell_parts()

        task.add_done_callback(end)

    async def _reload(self, left: list[Job], until: float) -> None:
        """Read the queue again if something was queued, but not constantly."""
        now = self._clock.monotonic()
        if self._wake.is_set() and self._reloaded + RELOAD <= now < until:
            self._wake.clear()
            left[:] = [job for job in await self._left() if job.id not in self._at_work]

    async def _move(self, until: float) -> None:
        """Wait until a review has ended, or until it is time to read the queue again."""
        if not self._at_work:
            return
        self._moved.clear()
        again = self._reloaded + RELOAD
        wait = again - self._clock.monotonic() if self._wake.is_set() and again < until else GLANCE
        with suppress(TimeoutError):
            async with self._clock.timeout(max(0.0, wait)):
                await self._moved.wait()

    def _find_free(self, left: list[Job]) -> Job | None:
        """Return the first job that can begin now, and drop those that have been tried since."""
        left[:] = [job for job in left if job.id not in self._seen]
        if len(self._at_work) >= self._pacing.most(self._queued):
            return None
        trees = {job.tree for job, _ in self._at_work.values()}
        return next((job for job in left if job.tree not in trees), None)

    def _tell_parts(self) -> None:
        for part in self._parts("notify"):
            part.notify()

    async def _woken(self) -> None:
        """Wait until something was queued, a look is due, or some time has passed. Each turn moves the
        looks."""
        left = self._clock.monotonic() + GLANCE
        while not self._wake.is_set():
            self._stir.clear()
            due = await self._next_due()
            wait = left - self._clock.monotonic()
            if due is not None:  # time may have passed during the query
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
        due = [look for look in await self._looks() if look.due <= now]
        if due:
            await self._jobs.promote(now, self._topics, await self._needed(due))

    async def next_look(self, session: SessionId | None = None) -> datetime | None:
        """Return when the next review is due, of any conversation or of this one: now if one is queued that
        was not tried here; None if none will be."""
        now = self._clock.now()
        jobs = await self._jobs.jobs(1)
        waiting = [job for job in await self._jobs.waiting() if job.id not in self._seen]
        if any(session in (None, job.session) for job in waiting):
            return now
        looks = [look for look in await self._looks() if session in (None, look.session)]
        return find_next(looks, now, first=not jobs, needed=await self._needed(looks))

    async def _needed(self, looks: Sequence[PendingLook]) -> Needed:
        """Return where more turns are needed, if that affects one of these."""
        ripe = [look for group in find_ripe(looks, first=False) for look in group]
        return await self._reviewer.needed() if any(not look.cue for look in ripe) else USUAL

    async def _next_due(self) -> datetime | None:
        """Return when the next look is due, among those that were not due at the last check."""
        return min((look.due for look in await self._looks() if look.due > self._promoted), default=None)

    async def _looks(self) -> Sequence[PendingLook]:
        """Return what is to be looked back over. The next process finds what cannot be read now."""
        try:
            return await self._jobs.looks() if self._topics else ()
        except StoreError:
            return ()

    async def _quiet(self) -> None:
        """Wait until the user has been quiet for a while."""
        while self.pause:
            await self._idle.wait()
            turns = self._turns
            await self._clock.sleep(self.pause)
            if self._idle.is_set() and turns == self._turns and not self._is_elsewhere():
                return

    def _is_elsewhere(self) -> bool:
        return (
            self._pacing.presence is not None
            and self._pacing.is_local()
            and self._pacing.presence.is_elsewhere()
        )

    def _aside(self) -> Aside:
        """Wait, for one review, while a turn of the user's runs."""
        waited = 0.0

        def left() -> float:
            return self._pacing.patience(self._queued) - waited

        async def wait() -> None:
            nonlocal waited
            while left() > 0 and (not self._idle.is_set() or self._is_elsewhere()):
                began = self._clock.monotonic()
                with suppress(TimeoutError):
                    async with self._clock.timeout(min(left(), RELOAD)):  # the queue may grow in the meantime
                        await self._idle.wait()
                await self._clock.sleep(BREATH)
                waited += self._clock.monotonic() - began

        async def taken() -> None:
            if not self._pacing.is_local() or left() <= 0:
                await asyncio.Event().wait()
            while not self._is_elsewhere():
                with suppress(TimeoutError):
                    async with self._clock.timeout(POLL):
                        await self._taken.wait()
                        return

        return Aside(wait, taken if self._pacing.presence else None)

    async def _left(self) -> Sequence[Job]:
        """Return the queued jobs that were not tried here. The next process finds what cannot be read now."""
        try:
            await self.promote()
            waiting = await self._jobs.waiting()
            self._reviewer.tidy(waiting)
        except StoreError:
            return ()
        self._reloaded = self._clock.monotonic()
        self._seen &= {job.id for job in waiting}
        left = [job for job in waiting if job.id not in self._seen]
        self._queued = len(left)
        return left

    async def _do(self, job: Job) -> None:
        """Work on a job once in this process, unless another process holds it: failures are retried by the
        next one."""
        try:
            await self._reviewer.work(job.id, self._emit, self._aside())
            after = await self._jobs.job(job.id)
            tried = after.tries > job.tries or bool(after.error)
        except StoreError:
            tried = True
        if tried:
            self._seen.add(job.id)
