"""A shell with somebody to ask, for tests: what was asked is noted, what is answered is given."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from hone.core.clock import Clock
from hone.core.permit import EVERYTHING, Permit
from hone.core.tool import Outcome
from hone.core.tool_context import Answer, Question, Scene
from hone.core.trust import Trust
from hone.runtime.danger import danger
from hone.sandbox.choice import NONE, Choice, Sandbox, unconfined
from hone.sandbox.spec import ALL, Cell, Claim, Mode
from hone.tools.doubts import Network
from hone.tools.shell import Shell, shell_tools
from tests.rig import scene
from tests.tools.calls import called


class Given(Sandbox):
    """A sandbox whose choice is made beforehand, so that a test can tell what a tool makes of it."""

    def __init__(self, mode: Mode = NONE, held: frozenset[Claim] = frozenset()) -> None:
        super().__init__(modes=[])
        self.given = Choice(mode, held)

    async def choose(self, cell: Cell) -> Choice:
        return self.given


def pretended() -> Sandbox:
    """Holds everything, as far as a tool can tell."""
    return Given(Mode("pretended", ALL, unconfined), ALL)


@dataclass
class Owner:
    """Answers, and remembers what was asked."""

    answer: Answer = Answer.NO
    asked: list[Question] = field(default_factory=list)

    async def ask(self, question: Question) -> Answer:
        self.asked.append(question)
        return self.answer


@dataclass
class Session:
    shell: Shell
    scene: Scene

    async def call(self, name: str, **arguments: object) -> Outcome:
        tools = {tool.surface.name: tool for tool in self.shell.tools}
        return await tools[name].run(called(tools[name], **arguments), self.scene)

    async def terminal(self, command: str, **arguments: object) -> Outcome:
        return await self.call("terminal", command=command, **arguments)


def session(
    folder: Path,
    sandbox: Sandbox | None = None,
    owner: Owner | None = None,
    *,
    permit: Permit = EVERYTHING,
    network: Network = "ask",
    ground: Trust = Trust.LOCAL,
    clock: Clock | None = None,
) -> Session:
    shell = shell_tools(
        folder,
        sandbox or pretended(),
        lambda command: danger(command, str(folder)),
        network=network,
        ground=ground,
        clock=clock,
    )
    seen = scene()
    return Session(shell, replace(seen, agent=replace(seen.agent, permit=permit), ask=(owner or Owner()).ask))


def play(session: Session, script: Callable[[Session], Awaitable[None]]) -> None:
    """Runs the script and closes the shell."""

    async def whole() -> None:
        try:
            await script(session)
        finally:
            await session.shell.close()

    asyncio.run(whole())
