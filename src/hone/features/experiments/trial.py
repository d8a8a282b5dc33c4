"""Run a task of an experiment, each time from the same start, where it cannot touch the owner's data."""

import shutil
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from hone.app import Hone
from hone.core.clock import Clock
from hone.core.errors import ModelError, Refused
from hone.core.ports import Header
from hone.core.tool import Tool
from hone.core.turn import Stop, Turn
from hone.features.experiments.scratch_home import HomeContents, copy_trust, furnish
from hone.features.experiments.values import Check, Task
from hone.runtime.session import Session, new_id
from hone.runtime.toolbox_factory import Enclosure
from hone.sandbox.caches import cleared
from hone.sandbox.choice import Sandbox
from hone.sandbox.process import CANNOT
from hone.sandbox.spec import SandboxUnavailable
from hone.sandbox.workspace import Workspace
from hone.settings import Settings

PATIENCE = 120.0
"""Seconds for the script of a check."""
LARGEST = 4 * 2**20
"""The most bytes of a file that a check reads."""
_UNSTARTED = (CANNOT, 126, 127)


class TaskTrial(Struct, frozen=True):
    """One run of a task: its turn, when it began, whether the check held, and how long it took."""

    turn: Turn
    start: datetime
    success: bool
    seconds: float


class TrialRoom:
    """Runs one task for the owner's Hone, in folders below `root`. Each run has the same paths and fresh
    contents. The initial homes are made once, by name."""

    def __init__(self, owner: Hone, task: Task, root: Path, model: str = "") -> None:
        self._owner = owner
        self._task = task
        self._model = model
        self._clock = owner.clock
        self._home, self.work, self._kept = root / "home", root / "work", root / "kept"
        self._sandbox = Sandbox(hidden=(owner.home, self._home, self._kept), clock=owner.clock)

    def has(self, name: str) -> bool:
        return (self._kept / name).exists()

    async def prepare(self, name: str, contents: HomeContents) -> None:
        """Make the initial home for runs of this name."""
        home = self._kept / name
        self.work.mkdir(exist_ok=True)
        home.mkdir(mode=0o700, parents=True)
        hone = self._open(home)
        try:
            await furnish(hone, home, contents)
        finally:
            await hone.close()

    async def run(self, name: str, template: str = "") -> TaskTrial:
        """Run the task. Raises ModelError if the provider gave no answer, which is no failure of the task."""
        task = self._task
        self._renew(name)
        hone = self._open(self._home)
        begun = self._clock.monotonic()
        try:
            copy_trust(self._owner, Path(task.folder), hone, self.work)
            session = await self._session(hone, template)
            start = self._clock.now()
            turn = await session.send(task.request)
        finally:
            await hone.close()
        if turn.stop is Stop.FAILED:
            raise ModelError(turn.error)
        seconds = self._clock.monotonic() - begun
        good = await holds(task.check, turn.text, self.work, self._sandbox, self._clock)
        return TaskTrial(turn, start, good, seconds)

    def _open(self, home: Path) -> Hone:
        """Return the same agent with other knowledge, elsewhere: its tools stay in their folder, it uses the
        owner's connections, and nobody is there to be asked. It never opens the owner's database: the home is
        new, and so is the file in it."""
        owned = self._owner.settings
        memory = msgspec.structs.replace(owned.memory, backend="null")
        learning = msgspec.structs.replace(owned.learning, checks="off")
        settings = msgspec.structs.replace(owned, learning=learning, memory=memory, database="")
        place = Enclosure(self.work, self._sandbox)
        return open_beside(self._owner, home, place, settings, self._owner.tools.own)

    async def _session(self, hone: Hone, template: str) -> Session:
        """Begin a new session, or one that continues where the task begins."""
        session = await hone.session(self._model, template)
        if not self._task.begun:
            return session
        prefix = session.agent.prefix
        said = self._task.transcript().rooted(prefix.digest)
        header = Header(new_id(), self._clock.now(), folder=str(self.work))
        await hone.sessions.start(header, prefix, said.nodes)
        return await hone.resume(header.id, self._model)

    def _renew(self, name: str) -> None:
        for folder in (self._home, self.work):
            if folder.exists():
                cleared(folder)
        shutil.copytree(self._kept / name, self._home)
        lay(self.work, self._task.files)


def open_beside(
    owner: Hone, home: Path, place: Enclosure, settings: Settings, tools: Sequence[Tool] = ()
) -> Hone:
    """Return the owner's agent with another home, in a place that its tools cannot leave. It uses the owner's
    connections, learns nothing, and nobody is there to be asked."""
    return Hone(
        home=home,
        model=owner.models,
        folder=place,
        tools=tools,
        builtin_tools=owner.tools.wanted,
        system=owner.system,
        settings=settings,
        clock=owner.clock,
        learning="off",
    )


def lay(folder: Path, files: Mapping[str, str]) -> None:
    """Make a folder with these files."""
    folder.mkdir()
    for path, text in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")


async def holds(check: Check, answer: str, folder: Path, sandbox: Sandbox, clock: Clock) -> bool:
    """Tell whether a run did what was asked, by the owner's check, which the run cannot reach. Raises Refused
    if a script cannot run at all, which says nothing about its subject."""
    if check.text and check.text.casefold() not in answer.casefold():
        return False
    if not all(_has(folder, path, words) for path, words in check.files):
        return False
    return not check.script or await _passes(check.script, answer, folder, sandbox, clock)


def _has(folder: Path, path: str, words: str) -> bool:
    """Tell whether a file of the folder contains the words. A link that leads out of it does not count."""
    try:
        real = (folder / path).resolve(strict=True)
        if not real.is_relative_to(folder.resolve()) or not real.is_file():
            return False
        with open(real, "rb") as file:
            return words in file.read(LARGEST).decode("utf-8", "replace")
    except (OSError, RuntimeError, ValueError):
        return False


async def _passes(script: str, answer: str, folder: Path, sandbox: Sandbox, clock: Clock) -> bool:
    """Tell whether the script passes, in a separate sandbox, since it may run what the agent wrote. Its first
    argument is a file with the answer."""
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
