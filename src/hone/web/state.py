"""The state that all routes share, and the background work of the server."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from hone.app import Hone
from hone.core.clock import Clock
from hone.core.errors import HoneError, StoreError
from hone.core.events import Curated, Event, Learned
from hone.core.ledger import START
from hone.knowledge.descriptions import describe, summarize
from hone.web.bus import EVERYWHERE, Bus
from hone.web.events import shown
from hone.web.keys import Keys
from hone.web.open_sessions import OpenSessions
from hone.web.pending_questions import PendingQuestions

LOOK = 1.0
"""Seconds between two looks at what other processes did."""
BEATS = 15
"""Looks between two signs of life."""
JOBS = 50
"""The latest reviews, whose state is watched."""


@dataclass(slots=True)
class ServerState:
    """`address` is where people find the server."""

    hone: Hone
    keys: Keys
    bus: Bus
    questions: PendingQuestions
    open_sessions: OpenSessions
    clock: Clock
    address: str
    _learned: asyncio.Queue[Learned] = field(default_factory=asyncio.Queue)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Do reviews, those that earlier processes left included, and report what happens meanwhile."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._watch()), group.create_task(self._report())]
            self.hone.background.attend(self._hear)
            try:
                yield
            finally:
                await self.end()
                for task in tasks:
                    task.cancel()

    async def end(self, grace: float = 0.0) -> int:
        """Turns end in order; then whoever listens is let go. Says how many turns had to be interrupted."""
        late = await self.open_sessions.finish(grace)
        self.bus.close()
        return late

    def _hear(self, event: Event) -> None:
        if isinstance(event, Learned):
            self._learned.put_nowait(event)
        elif isinstance(event, Curated):
            self.bus.publish(EVERYWHERE, *shown(event))

    async def _report(self) -> None:
        """What is learned is in the ledger, whether or not it can be told."""
        while True:
            learned = await self._learned.get()
            kind, data = shown(learned)
            with suppress(HoneError):
                data = {**data, "line": summarize(await describe(self.hone.keeper, learned.entries), "")}
            self.bus.publish(EVERYWHERE, kind, data)
            if self.open_sessions.find(learned.job.session):
                self.bus.publish(learned.job.session, kind, data)

    async def _watch(self) -> None:
        """Other processes change things, too. What cannot be read now is read at the next look."""
        before: tuple[object, object] = (START, ())
        beats = 0
        while True:
            with suppress(StoreError):
                now = await self._state()
                self._differ(before, now)
                before = now
            self._say_notices()
            beats = (beats + 1) % BEATS
            if not beats:
                self.bus.beat()
            await self.clock.sleep(LOOK)

    async def _state(self) -> tuple[object, object]:
        jobs = await self.hone.jobs.jobs(JOBS)
        states = tuple((job.id, job.state, job.tries, job.error) for job in jobs)
        return await self.hone.ledger.latest(), states

    def _differ(self, before: tuple[object, object], now: tuple[object, object]) -> None:
        if now[0] != before[0]:
            self.bus.publish(EVERYWHERE, "changed", {"latest": now[0]})
        if now[1] != before[1]:
            self.bus.publish(EVERYWHERE, "reviews", {})
            self.hone.background.notify()

    def _say_notices(self) -> None:
        sentences, self.hone.notices[:] = list(self.hone.notices), []
        for sentence in sentences:
            self.bus.publish(EVERYWHERE, "notice", {"text": sentence})
