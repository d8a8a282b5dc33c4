"""Conversations in a trusted folder, made by hand: foreign ones write, later ones read."""

import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from hone.core.ids import SessionId
from hone.core.messages import Text, assistant, user
from hone.core.ports import Header
from hone.core.tool import Outcome, Tool
from hone.core.tool_context import ToolContext
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.core.value import replace
from hone.core.work import Work
from hone.files.documents import FileDocuments
from hone.files.watching import file_time
from hone.runtime.danger import danger
from hone.runtime.provenance.observer import Provenance
from hone.runtime.provenance.records import Reach
from hone.runtime.trust import Folders
from hone.sandbox.choice import Sandbox
from hone.tools.files import file_tools
from hone.tools.search import search_tool
from hone.tools.shell import Shell, shell_tools
from tests.allowed import FREE
from tests.given import NOON
from tests.rig import asked, context
from tests.tools.calls import called
from tests.tools.shells import pretended

IDENTITY = ("-c", "user.name=Ana", "-c", "user.email=ana@example.org", "-c", "commit.gpgsign=false")
_numbers = count(1)


@dataclass
class Talk:
    """A conversation with the real tools. What it has seen does not change: a test says what that is."""

    shell: Shell
    tools: dict[str, Tool]
    context: ToolContext

    async def call(self, name: str, **arguments: object) -> Outcome:
        tool = self.tools[name]
        return await tool.run(called(tool, **arguments), self.context)

    async def terminal(self, command: str, **arguments: object) -> Outcome:
        outcome = await self.call("terminal", command=command, **arguments)
        assert "Not run" not in outcome.text, outcome.text
        return outcome


@dataclass
class Place:
    """A home and a trusted folder in it that is a repository with a few files of the owner's."""

    home: Path
    folder: Path
    provenance: Provenance
    sandbox: Sandbox
    reach: Reach

    @property
    def folders(self) -> Folders:
        return Folders.of(FileDocuments(self.home))

    def git(self, *arguments: str, check: bool = True) -> str:
        """The owner's Git, outside Hone."""
        done = subprocess.run(
            ["git", *IDENTITY, *arguments], cwd=self.folder, capture_output=True, text=True, check=check
        )
        return done.stdout

    @asynccontextmanager
    async def talk(self, *, foreign: bool = False) -> AsyncIterator[Talk]:
        work = Work(self.provenance, lambda: (self.provenance,))
        shell = shell_tools(self.folder, self.sandbox, lambda line: danger(line, str(self.folder)), work)
        tools = (*file_tools(self.folder, work), search_tool(self.folder, work), *shell.tools)
        header = Header(SessionId(f"session-{next(_numbers)}"), NOON, folder=str(self.folder))
        seen = replace(context(fetched() if foreign else asked()), permissions=FREE, header=header)
        try:
            yield Talk(shell, {tool.spec.name: tool for tool in tools}, seen)
        finally:
            await shell.close()

    @asynccontextmanager
    async def later(self) -> AsyncIterator[Talk]:
        """A later conversation that has seen nothing foreign, as another process would have it."""
        provenance = Provenance(self.home, Folders.of(FileDocuments(self.home)), lambda _: self.reach)
        other = Place(self.home, self.folder, provenance, self.sandbox, self.reach)
        try:
            async with other.talk() as talk:
                yield talk
        finally:
            other.provenance.close()


def fetched() -> Transcript:
    """A conversation that has read a page."""
    transcript = asked().then(assistant(Text("Let me look.")), Trust.AGENT, NOON)
    return transcript.then(user("a page from elsewhere"), Trust.FOREIGN, NOON)


@asynccontextmanager
async def place(
    home: Path, folder: Path, *, git: bool = True, sandbox: Sandbox | None = None, reach: Reach | None = None
) -> AsyncIterator[Place]:
    home.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    Folders.of(FileDocuments(home)).trust(folder)
    around = reach or Reach()
    provenance = Provenance(home, Folders.of(FileDocuments(home)), lambda _: around)
    made = Place(home, folder, provenance, sandbox or pretended(), around)
    (folder / "main.py").write_text(OWN_CODE)
    (folder / "README.md").write_text("# Recipes\n\nA small collection of recipes that we like to cook.\n")
    if git:
        made.git("init", "-q", "-b", "main")
        made.git("add", ".")
        made.git("commit", "-qm", "The first recipes")
    wait_a_tick()
    try:
        yield made
    finally:
        made.provenance.close()


def wait_a_tick() -> None:
    """Until a change would have a later time than all those before."""
    before = file_time()
    while file_time() == before:
        pass


OWN_CODE = '''from pathlib import Path


def load(path: Path) -> list[str]:
    """Read the recipes, one per line."""
    return path.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    print(load(Path("recipes.txt")))
'''
