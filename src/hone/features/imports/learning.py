"""Learn from what other agents stored: import what is new, and review it as Hone's own conversations."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path

from msgspec import Struct

from hone.app import Hone
from hone.core.errors import HoneError, Refused
from hone.core.ids import SessionId
from hone.core.jobs import Job
from hone.core.ports import IMPORTED
from hone.features.imports.estimating import Estimate, ReviewModel, estimate
from hone.features.imports.learn_state import LearnState, find_changed, mark_files
from hone.features.imports.looks import LookPlan
from hone.features.imports.plan import ImportPlan, Told, bring, look_up, survey
from hone.features.imports.sources import SourceFile, source_files
from hone.learning.budget import spent
from hone.runtime.triggers import configure_topics

Work = Callable[[Job], Awaitable[str]]
"""Does one review and returns its result."""
AT_ONCE = 4
"""How many reviews run side by side, if the model's server handles several requests at a time."""


class SourceLearner:
    """Learns from one source in one place. `mine`: words under the user's name there are the owner's. None:
    the owner has not been asked yet."""

    def __init__(self, hone: Hone, source: str, path: Path, *, mine: bool | None) -> None:
        self._hone = hone
        self._state = LearnState(hone.home)
        self.source = source
        self.path = path
        known = self._state.find(source, path)
        self.mine = mine if mine is not None or known is None else known.mine

    def answer(self, *, mine: bool) -> None:
        """Remember the owner's answer."""
        self.mine = mine
        self._state.answer(self.source, self.path, mine=mine)

    def find_files(self) -> list[SourceFile]:
        """Return the files that have changed since they were last read. Raises HoneError."""
        files = source_files(self.source, self.path)
        known = self._state.find(self.source, self.path)
        is_same = known is not None and known.mine == self.mine
        return find_changed(self.source, files, known.marks) if known and is_same else files

    async def plan(self, files: Sequence[SourceFile], told: Told) -> "LearnPlan":
        """Read the files and store nothing. Until the owner is asked, it assumes that the words are the
        owner's. Raises HoneError."""
        if reason := self._hone.learning_off:
            raise Refused(f"{reason} Nothing was read.")
        marks = mark_files(files)
        looks = await self._looks()
        foreign = self.mine is False
        found = await survey(self._hone.sessions, self.source, files, told, foreign=foreign, looks=looks)
        return LearnPlan(found, looks, marks, foreign)

    async def store(self, plan: "LearnPlan", told: Told) -> tuple[int, list[SessionId]]:
        """Store what was planned, each conversation together with when to look back over it. Only then the
        files count as read: a process killed before that repeats it, and nothing is stored twice. Raises
        Refused unless the owner has said whose words they are."""
        hone, found = self._hone, plan.found
        if self.mine is None or self.mine is plan.foreign:
            raise Refused(
                "Whose conversations these are was not said when they were read. Nothing was stored."
            )
        done = await bring(hone.sessions, self.source, found, told, foreign=plan.foreign, looks=plan.looks)
        for id in found.unread:
            stored = await look_up(hone.sessions, id)
            if stored and stored.prefix.provider == IMPORTED:
                await hone.sessions.append(id, (), look=plan.looks.look(stored.transcript))
        known = self._state.find(self.source, self.path)
        if known and not found.unreadable and done[0] >= found.due - len(done[1]):
            self._state.note(known, plan.marks)
        return done

    async def estimate(self, plan: "LearnPlan") -> Estimate:
        """Estimate the reviews of a plan."""
        jobs = self._hone.jobs
        first = not await jobs.jobs(1)
        now = self._hone.clock.now()
        return estimate(plan.found.looks, await jobs.looks(), await self._model(), now, first=first)

    async def _model(self) -> ReviewModel:
        """Return the model that reviews. Without one the estimate counts what there is."""
        try:
            agent = await self._hone.agent(self._hone.settings.learning.model)
        except HoneError:
            return ReviewModel()
        name = agent.prefix.model
        return ReviewModel(name, self._hone.models.price(name), len(agent.prefix.encode()))

    async def _looks(self) -> LookPlan:
        jobs = self._hone.jobs
        known = {id for job in await jobs.jobs() for id in (job.session, *dict(job.others))}
        known |= {look.session for look in await jobs.looks()}
        return LookPlan(configure_topics(self._hone.settings.learning), known)

    async def due(self) -> list[Job]:
        """Queue what is due by now, and return the reviews of this source's conversations."""
        await self._hone.background.promote()
        start = f"{self.source.partition('-')[0]}-"
        waiting = await self._hone.jobs.waiting()
        return [
            job for job in waiting if any(id.startswith(start) for id in (job.session, *dict(job.others)))
        ]

    async def over_budget(self) -> str:
        """Return why nothing more may be spent today; empty if it may."""
        return await spent(self._hone.sessions, self._hone.bounds, self._hone.clock.now())


class LearnPlan(Struct, frozen=True):
    """What would be stored and looked back over, and the marks of the files before they were read."""

    found: ImportPlan
    looks: LookPlan
    marks: dict[str, tuple[int, ...]]
    foreign: bool

    @property
    def is_empty(self) -> bool:
        return not self.found.due and not self.found.unread


async def in_parallel(jobs: Sequence[Job], hone: Hone, work: Work) -> AsyncGenerator[tuple[Job, str], None]:
    """Run reviews, a few at a time, and yield each with its result."""
    most = 1 if hone.models.is_local else min(AT_ONCE, hone.settings.learning.parallel)
    gate = asyncio.Semaphore(most)

    async def do(job: Job) -> tuple[Job, str]:
        async with gate:
            return job, await work(job)

    tasks = [asyncio.create_task(do(job)) for job in jobs]
    try:
        for each in asyncio.as_completed(tasks):
            yield await each
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
