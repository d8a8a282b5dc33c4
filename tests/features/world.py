"""A folder, a conversation about it, and what observes both: for tests of checkpoints."""

import subprocess
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from hone.core.clock import ManualClock
from hone.core.events import Event
from hone.core.ids import SessionId
from hone.core.machine_rows import OpenMachineRows
from hone.core.messages import Message, ToolCall, assistant, canonical, user
from hone.core.ports import Header
from hone.core.tool_context import ToolContext
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.features.checkpoints.service import CheckpointService
from hone.files.opening import find_path
from hone.models.scripted import Scripted, lines
from hone.settings.sections import CheckpointSettings
from tests.features.histories import Deed, Tree, do, survey
from tests.given import NOON
from tests.reference.sessions import InMemorySessions
from tests.rig import PREFIX, agent

GIT = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "core.hooksPath=/dev/null"]


class World:
    """A folder, a conversation about it, and what observes both."""

    def __init__(self, root: Path, *, git: bool = False, rows: OpenMachineRows | None = None) -> None:
        self._rows = rows
        self.folder, self.home = root / "work", root / "home"
        self.folder.mkdir()
        self.home.mkdir(mode=0o700)
        if git:
            self._init()
        self.sessions = InMemorySessions()
        self.clock = ManualClock()
        self.service = self.reopen()
        self.events: list[Event] = []
        self.header = Header(SessionId("5e55"), NOON, folder=str(self.folder))
        self.transcript = Transcript(PREFIX.digest)
        self._ids = count()
        self.turn = 0

    def reopen(self) -> CheckpointService:
        kept = (self.home, self.sessions, self.clock, CheckpointSettings())
        self.service = CheckpointService(*kept, self._rows)
        return self.service

    async def say(self) -> None:
        """Begin a turn."""
        await self._add(user(f"words {self.turn}"), Trust.OWNER)
        self.turn += 1

    async def answer(self, text: str) -> None:
        """End a turn."""
        await self._add(assistant(text), Trust.AGENT)

    async def _add(self, message: Message, trust: Trust) -> None:
        longer = self.transcript.then(message, trust, self.clock.now())
        nodes = longer.nodes[len(self.transcript) :]
        if self.transcript.nodes:
            await self.sessions.append(self.header.id, nodes)
        else:
            await self.sessions.start(self.header, PREFIX, nodes)
        self.clock.advance(1)
        self.transcript = longer

    def context(self, name: str, **arguments: object) -> ToolContext:
        call = ToolCall(f"c{next(self._ids)}", name, canonical(arguments))
        said = self.transcript.then(assistant(call), Trust.AGENT, NOON)
        who = agent(Scripted(lines("hi")))
        return ToolContext(who, said, self.events.append, header=self.header, call=call)

    async def write(self, path: str, data: bytes) -> None:
        """As the file tools do it."""
        observer = self.service.observer
        context = self.context("write_file", path=path, content=data.decode("latin-1"))
        with find_path(self.folder, path) as place:
            before = place.read(2**20) if place.exists else None
            await observer.before_write(place.path, before, context)
            place.write(data)
            await observer.after_write(place.path, data, context)

    async def command(self, deeds: Sequence[Deed], **arguments: object) -> None:
        context = self.context("terminal", command="…", **arguments)
        async with self.service.observer.around_command(self.folder, "…", context, network=False):
            for deed in deeds:
                do(self.folder, deed)

    def commit(self) -> None:
        self._git("add", "-A")
        self._git("commit", "-qm", "x", "--allow-empty")

    async def rewind(self, turn: int) -> Tree:
        history = self.service.history
        await history.apply(await history.plan(self.header.id, turn))
        return survey(self.folder)

    async def redo(self) -> Tree:
        history = self.service.history
        await history.apply(await history.plan_redo(self.header.id))
        return survey(self.folder)

    def _init(self) -> None:
        self._git("init", "-q")
        (self.folder / ".gitignore").write_text("*.log\nbuild/\n")
        (self.folder / ".gitattributes").write_text("b.txt ident\nd/e/g filter=upper\n* text=auto\n")
        (self.folder / "d").mkdir()
        (self.folder / "d" / "a").write_text("committed\n")
        (self.folder / "b.txt").write_text("$Id$ b\n")
        self.commit()

    def _git(self, *arguments: str) -> None:
        subprocess.run([*GIT, *arguments], cwd=self.folder, check=True, capture_output=True)
