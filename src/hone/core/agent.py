"""An agent: a prefix, a model, tools, a permit and limits."""

from typing import Self

from msgspec import Struct

from hone.core.messages import ToolCall
from hone.core.model import Model
from hone.core.permit import DELEGATE, Permit
from hone.core.prefix import Prefix
from hone.core.tool import Tool, Toolbox
from hone.core.value import replace


class Limits(Struct, frozen=True):
    calls: int = 90
    """Model calls per turn."""
    until_done: bool = False
    """End the turn after a reply whose calls all succeeded and did more than look something up."""
    last_question: str = (
        "The budget of this turn is spent, and you cannot use tools anymore. In a few sentences: "
        "what is done, what is left, and what should happen next?"
    )


class Helper(Struct, frozen=True):
    """A named helper that the owner set up. `instructions` are added to its task, `tools` are names
    of its parent's tools (None: all of them), `model` is the model it uses (empty: its parent's)."""

    name: str
    description: str
    instructions: str
    tools: frozenset[str] | None = None
    model: str = ""

    @property
    def permit(self) -> Permit:
        """Return its rights, to be narrowed by its parent's."""
        return Permit(DELEGATE.effects, tools=self.tools)


class Agent(Struct, frozen=True):
    prefix: Prefix
    model: Model
    toolbox: Toolbox
    permit: Permit
    limits: Limits = Limits()

    def narrowed(self, permit: Permit, limits: Limits | None = None) -> Self:
        """Return the same agent on the same prefix, with fewer rights."""
        return replace(self, permit=self.permit & permit, limits=limits or self.limits)

    def may_use(self, tool: Tool) -> bool:
        spec = tool.spec
        return self.permit.allows(spec.effects, readonly=spec.readonly, tool=spec.name)

    def may_make(self, call: ToolCall, tool: Tool) -> bool:
        spec = tool.spec
        return self.permit.allows(spec.effects_of(call), readonly=spec.readonly, tool=spec.name)


def relieve(agent: Agent, spare: Agent | None) -> Agent | None:
    """Return the spare agent with the rights of the one it replaces; None if that one is the spare itself."""
    if spare is None or spare.prefix.model == agent.prefix.model:
        return None
    return replace(spare, permit=agent.permit, limits=agent.limits)
