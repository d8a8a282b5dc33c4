"""Runs a task with a lesson and without it, pair by pair, each time as if it were the first."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from hone.app import Hone
from hone.core.clock import Clock
from hone.core.errors import ModelError, Refused
from hone.core.messages import Role
from hone.core.model import Usage
from hone.core.ports import Header
from hone.core.transcript import Transcript
from hone.core.turn import Stop, Turn
from hone.core.value import dataclass
from hone.features.experiments.checks import holds
from hone.features.experiments.scratch_home import altered, furnish, gathered, trusted
from hone.features.experiments.store import Studies
from hone.features.experiments.subjects import Subject
from hone.features.experiments.values import EARLY, Arm, Lesson, LessonKind, Run, Study, Task, order
from hone.features.templates.classes import succeeded
from hone.runtime.session import Session, new_id
from hone.sandbox.choice import Sandbox
from hone.sandbox.workspace import cleared

Open = Callable[[Path, Path, Sandbox], Hone]
"""The owner's agent with another home, another folder, and this sandbox."""


@dataclass(frozen=True, slots=True)
class Progress:
    """So many runs of so many are done; `run` is the one that has just ended."""

    done: int
    total: int
    run: Run | None = None


Tell = Callable[[Progress], None]


def quiet(_: Progress) -> None:
    """For whoever wants the result only."""


@dataclass(frozen=True, slots=True)
class ExperimentRunner:
    """Where experiments are made: `owner` is whose knowledge is tried, `open` gives the agent for a run."""

    owner: Hone
    home: Path
    studies: Studies
    open: Open
    clock: Clock

    async def run(self, task: Task, subject: Subject, model: str, pairs: int, tell: Tell = quiet) -> Study:
        """Does what is not done yet, and stores each run before the next. Raises ModelError where the
        provider gave no answer: that is no failure of the task, and the run is not counted."""
        if task.begun and subject.lesson.kind is LessonKind.TEMPLATE:
            raise Refused("A template begins a new session, and this task goes on with one. Record another.")
        name = (await self.owner.session(model)).agent.prefix.model
        new = Study(task.name, subject.lesson, name, self.clock.now(), pairs)
        with self.studies.busy(task.name), self.studies.scratch(task.name) as root:
            study = self.studies.study(new)
            done = {run.place for run in study.runs if run.pair <= pairs}
            tell(Progress(len(done), 2 * pairs))
            place = await self._prepared(task, subject, root) if len(done) < 2 * pairs else None
            for pair in range(1, pairs + 1):
                for arm in order(pair):
                    if place is None or (pair, arm) in done:
                        continue
                    run = await self._try(task, subject, place, model, (pair, arm))
                    study = self.studies.append(study, run)
                    done.add(run.place)
                    tell(Progress(len(done), 2 * pairs, run))
        return study

    async def _prepared(self, task: Task, subject: Subject, root: Path) -> "RunPlace":
        """A home for each arm, to be copied for each run."""
        place = RunPlace(root, Sandbox(hidden=(self.home, root / "home", root / "kept"), clock=self.clock))
        stock = await gathered(self.owner, Path(task.folder), place.work)
        stock = replace(stock, template=subject.template)
        place.work.mkdir()
        for arm in Arm:
            place.kept(arm).mkdir(mode=0o700, parents=True)
            house = self.open(place.kept(arm), place.work, place.sandbox)
            try:
                await furnish(house, place.kept(arm), altered(stock, subject.lesson, arm, subject.entry))
            finally:
                await house.close()
        return place

    async def _try(
        self, task: Task, subject: Subject, place: "RunPlace", model: str, at: tuple[int, Arm]
    ) -> Run:
        place.renew(task.files, at[1])
        house = self.open(place.home, place.work, place.sandbox)
        begun = self.clock.monotonic()
        try:
            trusted(self.owner, Path(task.folder), house, place.work)
            session = await self._session(task, house, model, _template(subject.lesson, at[1]), place.work)
            start = self.clock.now()
            turn = await session.send(task.request)
        finally:
            await house.close()
        if turn.stop is Stop.FAILED:
            raise ModelError(f"{turn.error} Every run so far is kept; the same command goes on.")
        seconds = self.clock.monotonic() - begun
        good = await holds(task.check, turn.text, place.work, place.sandbox, self.clock)
        return measured(*at, turn, start, good, seconds)

    async def _session(self, task: Task, house: Hone, model: str, template: str, work: Path) -> Session:
        """A new one, or one that goes on where the task begins."""
        session = await house.session(model, template)
        if not task.begun:
            return session
        prefix = session.agent.prefix
        said = Transcript("", task.begun).rooted(prefix.digest)
        header = Header(new_id(), self.clock.now(), folder=str(work))
        await house.sessions.start(header, prefix, said.nodes)
        return await house.resume(header.id, model)


@dataclass(frozen=True, slots=True)
class RunPlace:
    """The folders of one experiment: in each run the same paths, and new contents."""

    root: Path
    sandbox: Sandbox

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def work(self) -> Path:
        return self.root / "work"

    def kept(self, arm: Arm) -> Path:
        return self.root / "kept" / arm

    def renew(self, files: Sequence[tuple[str, str]], arm: Arm) -> None:
        for folder in (self.home, self.work):
            if folder.exists():
                cleared(folder)
        shutil.copytree(self.kept(arm), self.home)
        self.work.mkdir()
        for path, text in files:
            place = self.work / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, "utf-8")


def _template(lesson: Lesson, arm: Arm) -> str:
    return lesson.name if lesson.kind is LessonKind.TEMPLATE and arm is Arm.WITH else ""


def measured(pair: int, arm: Arm, turn: Turn, start: datetime, good: bool, seconds: float) -> Run:
    """The figures of a run. A turn is one reply of the model; an error is a call that failed."""
    replies, errors, early = 0, 0, 0
    first: tuple[int, float] | None = None
    tools: set[str] = set()
    for node in turn.nodes:
        replies += node.message.role is Role.ASSISTANT
        tools.update(call.name for call in node.message.calls)
        result = node.message.result
        if result is None:
            continue
        failed = not succeeded(result)
        errors += failed
        early += failed and replies <= EARLY
        if not failed and first is None:
            first = (replies, (node.at - start).total_seconds())
    number, when = first or (None, None)
    tokens = sum(each.input + each.output for each in turn.usage)
    return Run(
        pair, arm, good, replies, errors, early, number, when, len(tools), tokens, seconds, _cost(turn.usage)
    )


def _cost(usage: Sequence[Usage]) -> float | None:
    known = [each.cost for each in usage if each.cost is not None]
    return sum(known) if len(known) == len(usage) and usage else None
