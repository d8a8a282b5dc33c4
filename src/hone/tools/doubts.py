"""Collect the reasons not to run a command immediately, and ask for permission with all of them at once."""

from collections.abc import Callable, Iterator

from msgspec import Struct

from hone.core.messages import sound
from hone.core.permissions import Action, Request
from hone.core.permit import Effect
from hone.core.tool_context import ToolContext
from hone.sandbox.choice import SandboxChoice
from hone.sandbox.spec import Claim


class Danger(Struct, frozen=True):
    """`reason` completes "It …"; `pattern` names the commands it is about."""

    reason: str
    pattern: str


Judge = Callable[[str], Danger | None]


class CommandRequest(Struct, frozen=True):
    """A command, or Python code, that a tool is about to run."""

    tool: str
    text: str
    choice: SandboxChoice
    network: bool
    place: str
    """The folder where it starts."""

    async def refusal(self, context: ToolContext, danger: Judge) -> str:
        """Return why it may not run; empty if it may."""
        if self.network and not context.agent.permit.allows(frozenset({Effect.NETWORK})):
            return "The network is not permitted here. Work without it."
        if not self.network and Claim.NETWORK not in self.choice.held:
            return "No sandbox blocks the network here, so call again with network=true."
        doubts = tuple(self._doubts(danger))
        kind = "code" if self.tool == "execute_code" else "command"
        question = f"Run this {kind} in {sound(self.place)}?"
        request = Request(self.tool, Action.RUN, self.text, self.text, question, doubts, self.network)
        return await context.refusal(request)

    def _doubts(self, danger: Judge) -> Iterator[str]:
        found = None if self.tool == "execute_code" else danger(self.text)
        if found:
            yield f"It {found.reason}."
        missing = sorted(self.choice.missing(network=self.network))
        if missing:
            reach = ", ".join(missing)
            yield f"The sandbox in force ({self.choice.mode.name}) does not keep it from {reach}."
