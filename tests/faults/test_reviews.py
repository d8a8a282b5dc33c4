"""E2: a review is applied exactly once, whenever the process that does it is killed, and by however many."""

import asyncio
import os
import shutil
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median

import pytest
from msgspec import json
from msgspec.structs import replace

from hone import Hone
from hone.core.jobs import Job, State
from hone.core.ledger import Actor, ChangeQuery
from hone.core.skill import DOCUMENT
from hone.models.fake_provider import FakeProvider
from hone.models.fake_provider.shapes import Format
from hone.runtime.task_runner import ignore
from hone.stores.ledger import SqliteLedger
from tests.conftest import Figures, Tier
from tests.faults import review_worker
from tests.faults.beside import DATABASE, ROOT, hear, integrity, rest, tell
from tests.faults.furnish import furnish, provider
from tests.faults.house import FORMATS
from tests.faults.points.reviews import SETTINGS, Learner, astray
from tests.faults.review_worker import Deed, Order, Report

DEEDS: tuple[Deed, ...] = ("talk", "finish")
LEEWAY = 1.25
"""Some runs take longer than those that were timed, and their ends are to be met too."""
AGAIN = 0.25
"""How often the next process is killed too."""


@dataclass(frozen=True)
class Scene:
    """A home with a conversation; of its turns some are reviewed, and others due when the worker says so."""

    home: Path
    folder: Path
    format: Format
    stage: FakeProvider
    learner: Learner
    due: int = 1
    reviewed: int = 0

    @property
    def turns(self) -> int:
        return self.reviewed + self.due

    def open(self) -> Hone:
        return furnish(self.home, self.folder, provider(self.format, self.stage.url), settings=SETTINGS)

    def order(self, deed: Deed) -> Order:
        return Order(deed, str(self.home), str(self.folder), self.format, self.stage.url)


@dataclass
class Tally:
    kills: Counter[str] = field(default_factory=Counter)
    due: int = 0
    tries: int = 0
    wrong: list[str] = field(default_factory=list)

    def count(self, word: str) -> int:
        return sum(each.startswith(word) for each in self.wrong)

    def __str__(self) -> str:
        words = ", ".join(f"{self.count(word)} {word}" for word in ("lost", "doubled", "unsound", "debris"))
        kills = ", ".join(f"{count} {where}" for where, count in self.kills.most_common() if count)
        total = f"{self.kills.total()} kills" + (f" ({kills})" if kills else "")
        return f"{total}, {self.due} reviews due, {words} ({self.tries} begun)"


async def aftermath(context: Scene, tally: Tally, story: str = "") -> None:
    """What the next process makes of it. The story says how it came to this."""
    async with context.open() as hone:
        hone.background.attend(ignore)
        await hone.background.drain()
        jobs = list(reversed(await hone.jobs.jobs()))
        learned = await hone.ledger.entries(ChangeQuery(actor=Actor.REVIEW))
        wrong = [*missing(jobs, context), *await astray(hone, jobs, learned)]
        assert isinstance(hone.ledger, SqliteLedger)
        wrong += [f"unsound: {each}" for each in await hone.ledger.unsound()]
        talk = max(await hone.sessions.list(), key=lambda each: each.messages)
        said = [message.text for message in (await hone.sessions.load(talk.header.id)).transcript]
        if said.count("Done.") != context.turns or talk.messages != 2 * context.turns:
            wrong.append(f"unsound: the conversation is {said}")
    sane = integrity(context.home)
    wrong += [] if sane == "ok" else [f"unsound: {sane}"]
    tally.due += context.due
    tally.tries += context.learner.tries
    tally.wrong += [f"{each} ({story})" for each in wrong + debris(context)]


def missing(jobs: Sequence[Job], context: Scene) -> list[str]:
    found = [f"lost: review {job.id} is {job.state}: {job.error}" for job in jobs if job.state != State.DONE]
    return (
        found if len(jobs) == context.turns else [*found, f"lost: {len(jobs)} of {context.turns} were queued"]
    )


def debris(context: Scene) -> list[str]:
    wanted = {*DATABASE, ".lock", "MEMORY.md", "skills", "locks"}
    wanted |= {f"skills/lesson-{number}" for number in range(1, context.turns + 1)}
    wanted |= {f"skills/lesson-{number}/{DOCUMENT}" for number in range(1, context.turns + 1)}
    lying = {str(path.relative_to(context.home)) for path in context.home.rglob("*")}
    lying |= {path.name for path in context.folder.iterdir()}
    return [f"debris: {sorted(lying - wanted)}"] if lying - wanted else []


@asynccontextmanager
async def workers() -> AsyncIterator[Process]:
    """Who does what is ordered, one after another, each time in a process of its own."""
    command = [sys.executable, "-W", "error", review_worker.__file__]
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, env=environ)
    yield process
    await rest(process)


async def perform(process: Process, order: Order) -> Report:
    await tell(process, json.encode(order).decode())
    return json.decode(await hear(process), type=Report)


class Range:
    """Scenes for one test, and what came of them."""

    def __init__(self, path: Path, random: Random, workers: Process) -> None:
        self.tally = Tally()
        self.random = random
        self._path, self._workers = path, workers
        self._seconds: dict[Deed, float] = {}
        self._scenes = 0

    async def prepare(self, reviewed: int, due: int) -> Path:
        """A home with one conversation, of which some turns were reviewed and others are due. The second one
        that is due and those after it are branches of it: what is due in one branch is read at once."""
        home = self._path / f"{reviewed}-{due}"
        if not home.exists():
            home.mkdir(mode=0o700)
            async with self._scene(home, due) as context, context.open() as hone:
                session = await hone.session()
                for number in range(reviewed + due):
                    if number > reviewed:
                        session = await hone.resume(await hone.branch(session.id))
                    await session.send("a wish")
                    if number < reviewed:
                        await hone.background.drain()
        return home

    @asynccontextmanager
    async def context(self, deed: Deed) -> AsyncIterator[Scene]:
        """`talk` has one turn more, whose review is then due; to `finish` it was left by another process."""
        reviewed = int(deed == "talk")
        known = await self.prepare(reviewed, due=1 - reviewed)
        async with self.copy(known, due=1, reviewed=reviewed) as context:
            yield context

    @asynccontextmanager
    async def copy(self, known: Path, due: int, reviewed: int = 0) -> AsyncIterator[Scene]:
        self._scenes += 1
        home = self._path / f"home{self._scenes}"
        shutil.copytree(known, home)
        async with self._scene(home, due, reviewed) as context:
            yield context
        shutil.rmtree(home)

    @asynccontextmanager
    async def _scene(self, home: Path, due: int, reviewed: int = 0) -> AsyncIterator[Scene]:
        learner, folder = Learner(), self._path / "folder"
        folder.mkdir(exist_ok=True)
        async with FakeProvider(learner) as stage:
            yield Scene(home, folder, self.random.choice(FORMATS), stage, learner, due, reviewed)
        assert stage.invalid == []

    async def rehearse(self, deed: Deed) -> Report:
        """What happens between the turn's end and the review's when nobody disturbs it."""
        async with self.context(deed) as context:
            report = await perform(self._workers, context.order(deed))
            assert not report.killed
            self._seconds[deed] = report.seconds
            return report

    async def shoot(self, deed: Deed, delay: float) -> bool:
        """Kills after so many seconds, and sometimes the next process too. False if all was over by then."""
        async with self.context(deed) as context:
            report = await perform(self._workers, replace(context.order(deed), delay=delay))
            asked = context.learner.tries
            if self.random.random() < AGAIN:
                later = self.random.uniform(0.0, self._seconds["finish"])
                second = replace(context.order("finish"), delay=later)
                self.tally.kills["of the next process too"] += (await perform(self._workers, second)).killed
            await aftermath(context, self.tally, f"{deed}, after {delay} s")
            self.tally.kills[stage(asked, context.learner.tries)] += report.killed
            return report.killed


def stage(asked: int, after: int) -> str:
    """Where a kill met the review: how often had the model been asked by then, and how often in the end?"""
    if not asked:
        return "before the model was asked"
    return "under way" if after > asked else "when it was applied"


@pytest.mark.timeout(1_800)
async def test_a_review_killed_at_any_moment_is_applied_exactly_once(
    tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    wanted, late = tier.size(short=3, full=200), 0
    async with workers() as process:
        field = Range(tmp_path, tier.random(), process)
        taken = {deed: median([(await field.rehearse(deed)).seconds for _ in range(3)]) for deed in DEEDS}
        while field.tally.kills.total() < wanted:
            deed = field.random.choice(DEEDS)
            late += not await field.shoot(deed, field.random.uniform(0.0, LEEWAY * taken[deed]))
    spans = " and ".join(f"{each * 1000:.0f}" for each in taken.values())
    figures(f"at any moment of some {spans} ms, {late} more came too late: {field.tally}")
    assert not field.tally.wrong, "\n".join(field.tally.wrong)


async def test_of_several_processes_on_one_queue_each_review_is_done_by_one(
    tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    async with workers() as first, workers() as second, workers() as third:
        field = Range(tmp_path, tier.random(), first)
        known = await field.prepare(0, due=6)
        for _ in range(tier.size(short=1, full=10)):
            async with field.copy(known, due=6) as context:
                order = context.order("finish")
                await asyncio.gather(*(perform(each, order) for each in (first, second, third)))
                await aftermath(context, field.tally)
    figures(f"three processes: {field.tally}")
    assert not field.tally.wrong, "\n".join(field.tally.wrong)
    assert field.tally.tries == field.tally.due
