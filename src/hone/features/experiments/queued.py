"""Run a queued experiment, a pair at a time. Each run is stored before the next, and none is repeated."""

from pathlib import Path

from msgspec import Struct, convert, to_builtins

from hone.app import Hone
from hone.core.errors import Refused
from hone.core.queued import CommandStep, QueuedCommand
from hone.features.experiments.findings import conclude, found
from hone.features.experiments.part import KIND
from hone.features.experiments.runner import ExperimentRunner
from hone.features.experiments.subjects import Subject, find
from hone.features.experiments.values import EffectVerdict, LessonKind, Study, Task
from hone.learning.budget import spent, tomorrow
from hone.runtime.queued import CommandQueue

STEP = 2
"""Runs of a step: a pair, on one machine."""


class QueuedExperiment(Struct, frozen=True):
    """What was requested. `lesson` is the owner's name for it, `digest` that of its content at that time."""

    task: str
    kind: LessonKind
    lesson: str
    digest: str
    model: str
    pairs: int
    early: bool


async def queue(hone: Hone, task: Task, subject: Subject, wanted: QueuedExperiment) -> QueuedCommand:
    """Queue an experiment. Raises Refused for one that cannot run."""
    if task.begun and subject.lesson.kind is LessonKind.TEMPLATE:
        raise Refused("A template begins a new session, and this task continues one. Record another.")
    title = f"experiment {task.name}, {subject.lesson}"
    return CommandQueue(hone.documents, hone.clock).add(KIND, title, to_builtins(wanted))


async def do_step(hone: Hone, command: QueuedCommand) -> CommandStep:
    """Run a pair. Raises HoneError."""
    wanted = convert(command.arguments, QueuedExperiment)
    runner = ExperimentRunner(hone, STEP, charged=True)
    task = runner.studies.task(wanted.task)
    subject = await find(hone, Path(task.folder), wanted.kind, wanted.lesson)
    if subject.lesson.digest != wanted.digest:
        raise Refused("The lesson has changed since it was queued. Queue the experiment once more.")
    study = await runner.run(task, subject, wanted.model, wanted.pairs, early=wanted.early)
    finding = found(study)
    is_decided = wanted.early and finding.verdict is not EffectVerdict.UNDECIDED
    if not is_decided and not study.whole:
        return await _continue(hone, study)
    lines = await conclude(hone, runner.studies, subject, finding)
    gist = finding.gist.partition(": ")[2]
    return CommandStep(" ".join((f"{finding.verdict}, {gist}.", *lines)))


async def _continue(hone: Hone, study: Study) -> CommandStep:
    """Return the progress. If the day's budget is spent, it continues tomorrow."""
    now = hone.clock.now()
    said = f"{len(study.runs)} of at most {2 * study.pairs} runs are done."
    reason = await spent(hone.sessions, hone.bounds, now)
    return CommandStep(f"{said} {reason}".strip(), tomorrow(now) if reason else now)
