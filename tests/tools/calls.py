"""Making a call by hand, and a tool that does what a test wants."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from hone.core.messages import Message, ToolCall
from hone.core.tool import Outcome, Tool, ToolSpec
from hone.core.tool_context import ToolContext
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from tests.rig import context

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EMPTY = context(Transcript("root"))


def conversation(*messages: Message) -> Transcript:
    transcript = EMPTY.transcript
    for message in messages:
        transcript = transcript.then(message, Trust.OWNER, NOW)
    return transcript


def called(tool: Tool, **arguments: object) -> ToolCall:
    return ToolCall("call-1", tool.spec.name, json.dumps(arguments))


def perform(tool: Tool, **arguments: object) -> Outcome:
    return asyncio.run(tool.run(called(tool, **arguments), EMPTY))


def perform_raw(tool: Tool, arguments: str) -> Outcome:
    return asyncio.run(tool.run(ToolCall("call-1", tool.spec.name, arguments), EMPTY))


@dataclass
class Puppet:
    """A tool whose result is what `act` says; it notes the calls that reached it."""

    act: Callable[[ToolCall], Outcome]
    name: str = "puppet"
    readonly: bool = False
    calls: list[ToolCall] = field(default_factory=list)

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, "{}", frozenset(), self.readonly)

    async def run(self, call: ToolCall, context: ToolContext) -> Outcome:
        self.calls.append(call)
        return self.act(call)
