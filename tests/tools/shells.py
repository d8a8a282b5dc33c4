"""A shell with somebody to ask, for tests: what was asked is noted, what is answered is given."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from hone.core.clock import Clock
from hone.core.permissions import Answer, Question
from hone.core.permit import USER, Permit
from hone.core.tool import Outcome
from hone.core.tool_context import ToolContext
from hone.core.trust import Trust
from hone.core.value import replace
from hone.core.work import Work
from hone.runtime.danger import danger
from hone.runtime.permissions.owner import Network
from hone.sandbox.choice import NONE, Sandbox, SandboxChoice, unconfined
from hone.sandbox.spec import ALL, Claim, SandboxMode, SandboxSpec
from hone.tools.shell import Shell, shell_tools
from tests.allowed import Labels, permissions
from tests.rig import context
from tests.tools.calls import called


class Given(Sandbox):
    """A sandbox whose choice is made beforehand, so that a test can tell what a tool makes of it."""

    def __init__(self, mode: SandboxMode = NONE, held: frozenset[Claim] = frozenset()) -> None:
        super().__init__(modes=[])
        self.given = SandboxChoice(mode, held)

    async def choose(self, spec: SandboxSpec) -> SandboxChoice:
        return self.given


def pretended() -> Sandbox:
    """Holds everything, as far as a tool can tell."""
    return Given(SandboxMode("pretended", ALL, unconfined), ALL)


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
    context: ToolContext

    async def call(self, name: str, **arguments: object) -> Outcome:
        tools = {tool.spec.name: tool for tool in self.shell.tools}
        return await tools[name].run(called(tools[name], **arguments), self.context)

    async def terminal(self, command: str, **arguments: object) -> Outcome:
        return await self.call("terminal", command=command, **arguments)


def session(
    folder: Path,
    sandbox: Sandbox | None = None,
    owner: Owner | None = None,
    *,
    permit: Permit = USER,
    network: Network = "ask",
    trust_floor: Trust = Trust.LOCAL,
    clock: Clock | None = None,
) -> Session:
    shell = shell_tools(
        folder,
        sandbox or pretended(),
        lambda command: danger(command, str(folder)),
        Work(Labels(trust_floor)),
        clock=clock,
    )
    seen = context()
    asked = permissions(folder, ask=(owner or Owner()).ask, network=network)
    return Session(shell, replace(seen, agent=replace(seen.agent, permit=permit), permissions=asked))


def play(session: Session, script: Callable[[Session], Awaitable[None]]) -> None:
    """Runs the script and closes the shell."""

    async def whole() -> None:
        try:
            await script(session)
        finally:
            await session.shell.close()

    asyncio.run(whole())
