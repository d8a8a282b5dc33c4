"""The Protocol of a tool: a declared spec and one method. A failed tool returns a value, not an exception."""

import json
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from hone.core.messages import ToolCall
from hone.core.permit import Effect
from hone.core.trust import Trust

if TYPE_CHECKING:
    from hone.core.tool_context import ToolContext


LOOKS = ("list", "info", "query", "retrieve")
"""Actions that only look something up, for tools that have any."""


class ToolKind(StrEnum):
    """The kind of work that a tool does."""

    CODE = "code"
    FILE = "file"
    RESEARCH = "research"
    OTHER = "other"


class Outcome(Struct, frozen=True):
    """`text` is what the model reads, `trust` the best label it may get. It is `withheld` for a folder if it
    is foreign only because the owner has not trusted that folder."""

    text: str
    failed: bool = False
    trust: Trust = Trust.FOREIGN
    withheld: str = ""


def refused(reason: str) -> Outcome:
    """Return a refusal. Its words are our own, about the model's own call."""
    return Outcome(reason, failed=True, trust=Trust.AGENT)


class ToolSpec(Struct, frozen=True):
    """A tool's declaration. `schema` is canonical JSON: name, description, parameters. `network_flag` names
    the boolean argument that lets a call reach the network. A tool that is not `listed` can be called but is
    not in the prefix."""

    name: str
    schema: str
    effects: frozenset[Effect]
    readonly: bool = False
    kind: ToolKind = ToolKind.OTHER
    network_flag: str = ""
    listed: bool = True

    def effects_of(self, call: ToolCall) -> frozenset[Effect]:
        """Return the effects of one call. A flag that is not clearly off counts as on."""
        if not self.network_flag or _is_off(call.arguments, self.network_flag):
            return self.effects
        return self.effects | {Effect.NETWORK}


def is_served(name: str) -> bool:
    """Tell by its name whether a tool belongs to an external server. Such tools come and go without a new
    prefix; calls to a missing one are refused."""
    return "__" in name or name in ("mcp_find", "mcp_call")


def changes(call: ToolCall) -> bool:
    """Tell by its `action` whether a call does more than look something up."""
    try:
        return bool(json.loads(call.arguments or "{}").get("action") not in LOOKS)
    except (ValueError, AttributeError, RecursionError):
        return False


def _is_off(arguments: str, flag: str) -> bool:
    try:
        values = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return False
    return isinstance(values, dict) and values.get(flag, False) is False


class Tool(Protocol):
    @property
    def spec(self) -> ToolSpec: ...

    async def run(self, call: ToolCall, context: "ToolContext") -> Outcome: ...


Toolbox = Mapping[str, Tool]


class CallGuard(Protocol):
    """Watches the calls of one turn, even those to unknown tools and malformed ones."""

    async def watch(
        self, call: ToolCall, spec: ToolSpec | None, act: Callable[[], Awaitable[Outcome]], fault: str = ""
    ) -> Outcome:
        """Make the call with `act`, or refuse it. `spec` is None for a tool that does not exist; `fault` says
        what is wrong with a malformed call."""
        ...

    def end_step(self) -> str:
        """Return why the turn must end, or nothing. Called when the calls of one reply have ended."""
        ...


class NoGuard:
    """Lets every call pass."""

    async def watch(
        self, call: ToolCall, spec: ToolSpec | None, act: Callable[[], Awaitable[Outcome]], fault: str = ""
    ) -> Outcome:
        return await act()

    def end_step(self) -> str:
        return ""
