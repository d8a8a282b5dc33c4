"""Run a task with and without a lesson, pair by pair, each run from the same initial state."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from hone.app import Hone
from hone.core.clock import Clock
from hone.core.errors import ModelError, Refused
from hone.core.messages import Role
from hone.core.model import Usage
from hone.core.ports import Header
from hone.core.turn import Stop, Turn
from hone.core.value import replace
from hone.features.experiments.scratch_home import alter, copy_trust, furnish, gather
from hone.features.experiments.sequential import judge
from hone.features.experiments.store import Studies
from hone.features.experiments.subjects import Subject
from hone.features.experiments.values import (
    EARLY,
    Arm,
    Check,
    EffectVerdict,
    Lesson,
    LessonKind,
    Run,
    Study,
    Task,
    order,
)
from hone.features.templates.classes import succeeded
from hone.runtime.session import Session, new_id
from hone.runtime.toolbox_factory import Enclosure
from hone.sandbox.choice import Sandbox
from hone.sandbox.clearing import cleared
from hone.sandbox.process import CANNOT
from hone.sandbox.spec import SandboxUnavailable
from hone.sandbox.workspace import Workspace

PATIENCE = 120.0
"""Seconds for the script of a check."""
LARGEST = 4 * 2**20
"""Bytes of a file that a check looks at."""
_UNSTARTED = (CANNOT, 126, 127)
Tell = Callable[[int], None]
"""Is told how many runs are done."""


def quiet(_: int) -> None:
    """For whoever wants the result only."""


class ExperimentRunner:
    """Runs experiments on what the owner's Hone knows."""

    def __init__(self, owner: Hone) -> None:
        self.studies = Studies(owner.home)
        self._owner = owner
        self._clock = owner.clock

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
        """Do what is not done yet, until the pairs decide (`early`) or all are done. Each run is stored before
        the next. Raises ModelError where the provider gave no answer: that is no failure of the task, and the
        run is not counted."""
        if task.begun and subject.lesson.kind is LessonKind.TEMPLATE:
            raise Refused("A template begins a new session, and this task continues one. Record another.")
        name = (await self._owner.session(model)).agent.prefix.model
        new = Study(task.name, subject.lesson, name, self._clock.now(), pairs)
        with self.studies.busy(task.name), self.studies.scratch(task.name) as root:
            study = self.studies.study(new)
            done = {run.place for run in study.runs if run.pair <= pairs}
            tell(len(done))
            left = [(pair, arm) for pair in range(1, pairs + 1) for arm in order(pair)]
            left = [each for each in left if each not in done]
            place = None
            for at in left:
                if early and judge(study).verdict is not EffectVerdict.UNDECIDED:
                    break
                place = place or await self._prepared(task, subject, root)
                run = await self._try(task, subject, place, model, at)
                study = self.studies.append(study, run)
                done.add(run.place)
                tell(len(done))
        return study

    async def _prepared(self, task: Task, subject: Subject, root: Path) -> "RunPlace":
        """A home for each arm, to be copied for each run."""
        place = RunPlace(
            root, Sandbox(hidden=(self._owner.home, root / "home", root / "kept"), clock=self._clock)
        )
        contents = await gather(self._owner, Path(task.folder), place.work)
        contents = replace(contents, template=subject.template)
        place.work.mkdir()
        for arm in Arm:
            place.kept(arm).mkdir(mode=0o700, parents=True)
            hone = self._open(place.kept(arm), place)
            try:
                await furnish(hone, place.kept(arm), alter(contents, subject.lesson, arm, subject.entry))
            finally:
                await hone.close()
        return place

    async def _try(
        self, task: Task, subject: Subject, place: "RunPlace", model: str, at: tuple[int, Arm]
    ) -> Run:
        place.renew(task.files, at[1])
        hone = self._open(place.home, place)
        begun = self._clock.monotonic()
        try:
            copy_trust(self._owner, Path(task.folder), hone, place.work)
            session = await self._session(task, hone, model, _template(subject.lesson, at[1]), place.work)
            start = self._clock.now()
            turn = await session.send(task.request)
        finally:
            await hone.close()
        if turn.stop is Stop.FAILED:
            raise ModelError(f"{turn.error} Every run so far is kept; the same command continues.")
        seconds = self._clock.monotonic() - begun
        good = await holds(task.check, turn.text, place.work, place.sandbox, self._clock)
        return measured(*at, turn, start, good, seconds)

    def _open(self, home: Path, place: "RunPlace") -> Hone:
        """Return the same agent with other knowledge, elsewhere: its tools stay in their folder, it speaks
        through the owner's connections, and nobody is there to be asked. It never opens the owner's database:
        the home is a new one, and so is the file in it."""
        owner = self._owner
        memory = msgspec.structs.replace(owner.settings.memory, backend="null")
        return Hone(
            home=home,
            model=owner.models,
            folder=Enclosure(place.work, place.sandbox),
            tools=owner.tools.own,
            builtin_tools=owner.tools.wanted,
            system=owner.system,
            settings=msgspec.structs.replace(owner.settings, memory=memory, database=""),
            clock=owner.clock,
            learning="off",
        )

    async def _session(self, task: Task, hone: Hone, model: str, template: str, work: Path) -> Session:
        """A new one, or one that goes on where the task begins."""
        session = await hone.session(model, template)
        if not task.begun:
            return session
        prefix = session.agent.prefix
        said = task.transcript().rooted(prefix.digest)
        header = Header(new_id(), self._clock.now(), folder=str(work))
        await hone.sessions.start(header, prefix, said.nodes)
        return await hone.resume(header.id, model)


class RunPlace(Struct, frozen=True):
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

    def renew(self, files: Mapping[str, str], arm: Arm) -> None:
        for folder in (self.home, self.work):
            if folder.exists():
                cleared(folder)
        shutil.copytree(self.kept(arm), self.home)
        self.work.mkdir()
        for path, text in files.items():
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


async def holds(check: Check, answer: str, folder: Path, sandbox: Sandbox, clock: Clock) -> bool:
    """Whether a run did what was asked, by the owner's check, which the run cannot reach. Raises Refused if a
    script cannot be run at all, which says nothing about what it should check."""
    if check.text and check.text.casefold() not in answer.casefold():
        return False
    if not all(_has(folder, path, words) for path, words in check.files):
        return False
    return not check.script or await _passes(check.script, answer, folder, sandbox, clock)


def _has(folder: Path, path: str, words: str) -> bool:
    """A link that leads out of the folder is no file of it."""
    try:
        real = (folder / path).resolve(strict=True)
        if not real.is_relative_to(folder.resolve()) or not real.is_file():
            return False
        with open(real, "rb") as file:
            return words in file.read(LARGEST).decode("utf-8", "replace")
    except (OSError, RuntimeError, ValueError):
        return False


async def _passes(script: str, answer: str, folder: Path, sandbox: Sandbox, clock: Clock) -> bool:
    """In a cell of its own: it may run what the agent wrote. Its first argument is a file with the answer."""
    workspace = Workspace(folder, sandbox, clock)
    try:
        choice = await workspace.choice()
        if choice.missing(network=False):
            raise Refused("The check is a script, and no sandbox holds here; see hone doctor.")
        for name, text in (("check", script), ("answer", answer)):
            (workspace.scratch() / name).write_text(text, "utf-8")
        (workspace.scratch() / "check").chmod(0o700)
        tmp = workspace.launch([], choice).tmp
        interpreter = () if script.startswith("#!") else ("/bin/sh",)
        launch = workspace.launch([*interpreter, f"{tmp}/check", f"{tmp}/answer"], choice)
        ended = await workspace.run(launch, "output", PATIENCE)
    except (OSError, ValueError, SandboxUnavailable) as error:
        raise Refused(f"The check could not be run: {error}.") from error
    finally:
        await workspace.close()
    if ended.code in _UNSTARTED and not ended.timed_out:
        raise Refused(f"The check could not be run (exit code {ended.code}): {ended.output.strip()[-300:]}")
    return ended.code == 0 and not ended.timed_out
