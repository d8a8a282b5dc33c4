"""An agent: a prefix, a model, tools, a permit and limits."""

from typing import Self

from msgspec import Struct

from hone.core.messages import ToolCall
from hone.core.model import Model
from hone.core.permit import Permit
from hone.core.prefix import Prefix
from hone.core.tool import Tool, Toolbox
from hone.core.value import replace


class Limits(Struct, frozen=True):
    calls: int = 90
    """Model calls a turn."""
    until_done: bool = False
    """End the turn after a reply whose calls all succeeded and were more than look-ups."""
    last_question: str = (
        "The budget of this turn is spent, and you cannot use tools anymore. In a few sentences: "
        "what is done, what is left, and what should happen next?"
    )


class Agent(Struct, frozen=True):
    prefix: Prefix
    model: Model
    toolbox: Toolbox
    permit: Permit
    limits: Limits = Limits()

    def narrowed(self, permit: Permit, limits: Limits | None = None) -> Self:
        """The same agent on the same prefix, with less to do."""
        return replace(self, permit=self.permit & permit, limits=limits or self.limits)

    def may_use(self, tool: Tool) -> bool:
        return self.permit.allows(tool.spec.effects, readonly=tool.spec.readonly)

    def may_make(self, call: ToolCall, tool: Tool) -> bool:
        return self.permit.allows(tool.spec.effects_of(call), readonly=tool.spec.readonly)


def relieve(agent: Agent, spare: Agent | None) -> Agent | None:
    """Return the spare agent with the rights of the one it relieves; None if that one is the spare itself."""
    if spare is None or spare.prefix.model == agent.prefix.model:
        return None
    return replace(spare, permit=agent.permit, limits=agent.limits)
