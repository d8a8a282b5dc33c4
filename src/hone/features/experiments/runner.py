"""Run a task with and without a lesson, pair by pair, each run from the same initial state."""

from collections.abc import Callable, Sequence
from pathlib import Path

from hone.app import Hone
from hone.core.errors import ModelError, Refused
from hone.core.messages import Role, assistant, user
from hone.core.model import Usage, total
from hone.core.ports import Header, Spending
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.core.value import replace
from hone.features.experiments.scratch_home import alter, gather
from hone.features.experiments.sequential import judge
from hone.features.experiments.store import Studies
from hone.features.experiments.subjects import Subject
from hone.features.experiments.trial import TaskTrial, TrialRoom
from hone.features.experiments.values import (
    EARLY,
    Arm,
    EffectVerdict,
    Lesson,
    LessonKind,
    Run,
    Study,
    Task,
    order,
)
from hone.features.experiments.working import working
from hone.features.templates.classes import succeeded
from hone.learning.budget import spent
from hone.runtime.session import new_id

Tell = Callable[[int], None]
"""Hears how many runs are done."""


def quiet(_: int) -> None:
    """Ignore progress, for callers that only want the result."""


class ExperimentRunner:
    """Runs experiments on what the owner's Hone knows. `most`: how many runs at a time; 0: all. `charged`:
    they count toward the day's budget, and stop when it is spent."""

    def __init__(self, owner: Hone, most: int = 0, *, charged: bool = False) -> None:
        self.studies = Studies(owner.documents, owner.home)
        self._owner = owner
        self._clock = owner.clock
        self._most = most
        self._charged = charged

    async def run(
        self,
        task: Task,
        subject: Subject,
        model: str,
        pairs: int,
        tell: Tell = quiet,
        *,
        early: bool = True,
    ) -> Study:
        """Do the remaining runs, until the pairs decide (`early`) or all are done. Each run is stored before
        the next. Raises ModelError if the provider gave no answer: that is no failure of the task, and the
        run is not counted."""
        if task.begun and subject.lesson.kind is LessonKind.TEMPLATE:
            raise Refused("A template begins a new session, and this task continues one. Record another.")
        name = (await self._owner.session(model)).agent.prefix.model
        new = Study(task.name, subject.lesson, name, self._clock.now(), pairs)
        async with working(self._owner, task.name) as root:
            study = self.studies.study(new)
            done = {run.place for run in study.runs if run.pair <= pairs}
            tell(len(done))
            left = [(pair, arm) for pair in range(1, pairs + 1) for arm in order(pair)]
            left = [each for each in left if each not in done][: self._most or None]
            room = TrialRoom(self._owner, task, root, model)
            for at in left:
                if early and judge(study).verdict is not EffectVerdict.UNDECIDED:
                    break
                if self._charged and await spent(self._owner.sessions, self._owner.bounds, self._clock.now()):
                    break
                await self._prepare(room, task, subject, at[1])
                run = await self._try(room, study, at)
                study = self.studies.append(study, run)
                done.add(run.place)
                tell(len(done))
        return study

    async def _prepare(self, room: TrialRoom, task: Task, subject: Subject, arm: Arm) -> None:
        """Make a home for an arm, to be copied for each of its runs."""
        if not room.has(arm):
            contents = await gather(self._owner, Path(task.folder), room.work)
            contents = replace(contents, template=subject.template)
            await room.prepare(arm, alter(contents, subject.lesson, arm, subject.entry))

    async def _try(self, room: TrialRoom, study: Study, at: tuple[int, Arm]) -> Run:
        try:
            trial = await room.run(at[1], _template(study.lesson, at[1]))
        except ModelError as error:
            raise ModelError(f"{error} Every run so far is kept; the same command continues.") from error
        run = measured(*at, trial)
        if self._charged:
            await charge(self._owner, study, run, total(trial.turn.usage))
        return run


async def charge(hone: Hone, study: Study, run: Run, usage: Usage) -> None:
    """Record a run's cost where reviews and the curator record theirs: one budget covers all."""
    now = hone.clock.now()
    prefix = Prefix(study.model, "")
    header = Header(new_id(), now, f"trial of {study.lesson}", Origin.CURATOR)
    ended = "succeeded" if run.success else "failed"
    of = "A held-out task" if run.task else f"The task {study.task}"
    said = Transcript(prefix.digest).then(
        user(f"{of}, {run.arm} {study.lesson}: pair {run.pair}."), Trust.AGENT, now
    )
    whole = said.then(assistant(f"The run {ended}."), Trust.AGENT, now)
    await hone.sessions.start(header, prefix, said.nodes)
    spending = Spending(now, study.model, Origin.CURATOR, usage)
    await hone.sessions.append(header.id, whole.nodes[1:], spending)


def _template(lesson: Lesson, arm: Arm) -> str:
    return lesson.name if lesson.kind is LessonKind.TEMPLATE and arm is Arm.WITH else ""


def measured(pair: int, arm: Arm, trial: TaskTrial) -> Run:
    """Return the figures of a run. A turn is one reply of the model; an error is a call that failed."""
    turn, start = trial.turn, trial.start
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
        pair,
        arm,
        trial.success,
        replies,
        errors,
        early,
        number,
        when,
        len(tools),
        tokens,
        trial.seconds,
        _cost(turn.usage),
    )


def _cost(usage: Sequence[Usage]) -> float | None:
    known = [each.cost for each in usage if each.cost is not None]
    return sum(known) if len(known) == len(usage) and usage else None
