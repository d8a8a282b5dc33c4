"""Note which results are foreign only because the owner has not trusted the folder they come from.

Labels are asked for while a tool runs, so the reasons are collected beside it. What is not noted here stays
foreign when the owner trusts the folder later: text from the network, from servers and hooks, from other
folders, and whatever a command prints that can read an untrusted folder.
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from hone.core.messages import ToolCall, digest, sound
from hone.core.tool import CallGuard, Outcome, ToolSpec
from hone.core.tool_context import ToolContext
from hone.core.trust import Trust
from hone.core.value import replace
from hone.core.visible import path_to_text
from hone.tools.wrappers import Wrapper

Remember = Callable[[ToolCall, Outcome], Awaitable[None]]


@dataclass
class Reasons:
    """Why results of one call are foreign: true for each that only lacks the owner's trust in `folder`.
    `confined` tells whether a command of this call can read nothing that would be foreign all the same."""

    folder: Path
    found: list[bool] = field(default_factory=list)
    confined: bool = False


current: ContextVar[Reasons | None] = ContextVar("current", default=None)


class Withholding(Wrapper, frozen=True):
    """Tells of a result whether it is foreign only because `folder` is not trusted."""

    folder: Path

    async def run(self, call: ToolCall, context: ToolContext) -> Outcome:
        reasons = Reasons(self.folder)
        token = current.set(reasons)
        try:
            outcome = await self.tool.run(call, context)
        finally:
            current.reset(token)
        is_withheld = outcome.trust is Trust.FOREIGN and reasons.found and all(reasons.found)
        return replace(outcome, withheld=path_to_text(self.folder)) if is_withheld else outcome


class RememberingGuard:
    """Remembers of each result why it is foreign. It sees calls that reach no tool, too."""

    def __init__(self, guard: CallGuard, remember: Remember) -> None:
        self._guard = guard
        self._remember = remember

    async def watch(
        self, call: ToolCall, spec: ToolSpec | None, act: Callable[[], Awaitable[Outcome]], fault: str = ""
    ) -> Outcome:
        outcome = await self._guard.watch(call, spec, act, fault)
        await self._remember(call, outcome)
        return outcome

    def end_step(self) -> str:
        return self._guard.end_step()


def key_of(call: str, text: str) -> str:
    """Return by what a result is known again."""
    return digest(f"{call}\n{sound(text)}".encode())
