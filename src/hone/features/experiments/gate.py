"""The gate: try unproven lessons on held-out tasks, pair by pair, and act on the result.

A lesson stays in effect in the meantime. One that helps is confirmed, one that harms is proposed for removal,
and any other stays as it is. The sequential test decides, so that checking after every pair costs nothing. A
lesson that changes no outcome in the first pairs is left alone: stopping without a verdict is never an error.
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import count

from msgspec import Struct

from hone.app import Hone
from hone.core.documents import GATE
from hone.core.errors import HoneError
from hone.core.events import Emit, Notice
from hone.core.model import Usage, total
from hone.core.value import replace
from hone.core.visible import one_line
from hone.features.experiments.findings import Finding, conclude, find_declined, find_proposal, found
from hone.features.experiments.held_out import (
    TaskPool,
    UnprovenLesson,
    find_candidates,
    find_task,
    folder_of,
    name_task,
)
from hone.features.experiments.runner import charge, measured
from hone.features.experiments.scratch_home import alter, gather
from hone.features.experiments.trial import TrialRoom
from hone.features.experiments.values import (
    HELD_OUT,
    PAIRS,
    Arm,
    EffectVerdict,
    LessonKind,
    Run,
    Study,
    Task,
    order,
)
from hone.features.experiments.working import trials_of, working
from hone.learning.budget import spent, tomorrow

FEWEST = 3
"""The fewest held-out tasks for a trial: an effect on one task proves nothing about others."""
FUTILE = 8
"""Pairs after which a lesson is left alone if none of them differed."""


class GateItem(Struct, frozen=True):
    """The progress of one lesson. `ready`: a pair can be run."""

    candidate: UnprovenLesson
    name: str
    tasks: tuple[Task, ...]
    finding: Finding | None
    state: str
    ready: bool = False
    due: bool = False
    """Whether it is decided but was not acted on yet."""

    @property
    def label(self) -> str:
        lesson = self.candidate.subject.lesson
        if lesson.kind is LessonKind.ENTRY:
            return f'entry "{one_line(self.candidate.subject.entry, 60)}"'
        return f"skill {lesson.name}"


class Gate:
    def __init__(self, hone: Hone) -> None:
        self._hone = hone
        self._clock = hone.clock
        self.trials = trials_of(hone)

    async def tend(self, emit: Emit) -> None:
        """Run one pair if one is due, and ask to be called again if there is more."""
        if len(TaskPool(self._hone).held_out) < FEWEST:
            return
        try:
            said = await self.step()
        except (HoneError, OSError):  # the next one tries again
            return
        for line in said or ():
            emit(Notice(line))
        if said is not None and self._hone.background.is_attended:
            self._hone.background.notify()

    async def survey(self) -> list[GateItem]:
        """Return all lessons that have to prove themselves, with their progress."""
        pool, mode = TaskPool(self._hone), self._hone.settings.learning.gate
        candidates = await find_candidates(self._hone, mode)
        model = await self._hone.model() if candidates else ""
        return [await self._look(each, pool, model) for each in candidates]

    async def _look(self, candidate: UnprovenLesson, pool: TaskPool, model: str) -> GateItem:
        declined = await find_declined(self._hone.keeper, candidate.subject)
        name = f"{HELD_OUT}-{len(declined) + 1}" if declined else HELD_OUT
        tasks = await pool.choose(candidate, declined[0][1] if declined else None)
        study = self._find_study(candidate, name, model)
        finding = found(study, briefly=True) if study else None
        item = GateItem(candidate, name, tuple(tasks), finding, "")
        if finding and finding.verdict is not EffectVerdict.UNDECIDED:
            return await self._look_at_decided(item, finding)
        if finding and (finding.is_over or is_futile(finding)):
            return replace(item, state=f"unconfirmed: {_count(finding)}")
        if len(tasks) < FEWEST:
            of = "recorded since you kept it" if declined else "that it was not learned from"
            number = "1 held-out task" if len(tasks) == 1 else f"{len(tasks)} held-out tasks"
            return replace(item, state=f"unconfirmed: {number} {of}, {FEWEST} are needed at least")
        return replace(item, state=_count(finding) if finding else "not tried yet", ready=True)

    async def _look_at_decided(self, item: GateItem, finding: Finding) -> GateItem:
        waiting = await find_proposal(self._hone.keeper, item.candidate.subject, finding)
        if waiting:
            return replace(
                item, state=f"harms: hone approve {waiting} removes it, hone reject {waiting} keeps it"
            )
        return replace(item, state=f"{finding.verdict}: {_count(finding)}", due=True)

    def _find_study(self, candidate: UnprovenLesson, name: str, model: str) -> Study | None:
        lesson = candidate.subject.lesson
        known = self.trials.studies(name)
        return next((each for each in known if (each.lesson, each.model) == (lesson, model)), None)

    async def step(self) -> Sequence[str] | None:
        """Do one thing: draw a conclusion, or run a pair. Return what to report, or None if there is nothing
        to do or no budget for it. Raises ModelError, Refused or StoreError."""
        items = await self.survey()
        for item in items:
            if item.due and item.finding:
                return await self._conclude(item, item.finding)
        ready = sorted((each for each in items if each.ready), key=lambda each: each.finding is None)
        if not ready or await self.over_budget():
            return None
        study = await self._run_pair(ready[0])
        finding = found(study, briefly=True)
        is_decided = finding.verdict is not EffectVerdict.UNDECIDED
        return await self._conclude(ready[0], finding) if is_decided else []

    async def next(self) -> datetime | None:
        """Return when a step is possible; None if nothing is in sight."""
        if len(TaskPool(self._hone).held_out) < FEWEST:
            return None
        now, items = self._clock.now(), await self.survey()
        if any(item.due for item in items):
            return now
        if not any(item.ready for item in items):
            return None
        return tomorrow(now) if await self.over_budget() else now

    async def over_budget(self) -> str:
        """Return why nothing more may be spent today; empty if it may."""
        return await spent(self._hone.sessions, self._hone.bounds, self._clock.now())

    async def _conclude(self, item: GateItem, finding: Finding) -> list[str]:
        said = await conclude(self._hone, self.trials, item.candidate.subject, finding)
        return [f"{item.label}: {_count(finding)}. {' '.join(said)}"]

    async def _run_pair(self, item: GateItem) -> Study:
        """Run what is missing of the first incomplete pair. Each run is stored before the next."""
        lesson, model = item.candidate.subject.lesson, await self._hone.model()
        new = Study(item.name, lesson, model, self._clock.now(), PAIRS)
        async with working(self._hone, item.name, GATE) as root:
            study = self.trials.study(new)
            pair, task = _choose_task(item.tasks, study)
            room = TrialRoom(self._hone, task, root)
            known = await gather(self._hone, folder_of(task), room.work)
            for arm in order(pair):
                if any(run.place == (pair, arm) for run in study.runs):
                    continue
                if await self.over_budget():
                    break
                await room.prepare(arm, alter(known, lesson, arm, item.candidate.subject.entry))
                run, usage = await self._try(room, pair, arm, task)
                await charge(self._hone, study, run, usage)
                study = self.trials.append(study, run)
        return study

    async def _try(self, room: TrialRoom, pair: int, arm: Arm, task: Task) -> tuple[Run, Usage]:
        trial = await room.run(arm)
        return replace(measured(pair, arm, trial), task=name_task(task)), total(trial.turn.usage)


def _choose_task(tasks: Sequence[Task], study: Study) -> tuple[int, Task]:
    """Return the first incomplete pair, and its task. Tasks take turns, and both runs of a pair have the same
    one: half a pair whose task was deleted stays as it is."""
    done = {one.pair for one, _ in study.paired}
    begun = {run.pair: find_task(tasks, run.task) for run in study.runs if run.pair not in done}
    for pair in count(1):
        task = begun.get(pair, tasks[(pair - 1) % len(tasks)])
        if pair not in done and task:
            return pair, task
    raise AssertionError("there is always another pair")


def is_futile(finding: Finding) -> bool:
    """Tell whether the lesson has changed no outcome, after enough pairs to leave it alone."""
    decision = finding.decision
    return decision.pairs >= FUTILE and not (decision.wins or decision.losses)


def _count(finding: Finding) -> str:
    decision = finding.decision
    pairs = "1 pair" if decision.pairs == 1 else f"{decision.pairs} pairs"
    return f"of {pairs}, {decision.wins} succeeded only with it, {decision.losses} only without it"
