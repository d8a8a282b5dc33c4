"""A bench to run the loop on: tools that do as told, a desk that remembers, and the check of a history."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from hone.core.agent import Agent, Limits
from hone.core.clock import Clock, ManualClock
from hone.core.events import Event
from hone.core.messages import Message, Role, ToolCall, user
from hone.core.model import Model, Usage
from hone.core.permit import USER, Effect, Permit
from hone.core.prefix import Prefix
from hone.core.tool import Outcome, Tool, ToolKind, ToolSpec
from hone.core.tool_context import ToolContext
from hone.core.transcript import Node, Transcript
from hone.core.trust import Trust
from hone.core.turn import Origin, Turn
from hone.loop import RunContext, run
from hone.models.scripted import Scripted, lines
from tests.allowed import FREE
from tests.given import NOON

PREFIX = Prefix("openai/scripted", "You are a test.")
Act = Callable[[ToolCall], Awaitable[Outcome]]


async def fine(call: ToolCall) -> Outcome:
    return Outcome(f"{call.name} did {call.arguments}")


@dataclass(frozen=True)
class Puppet:
    """A tool that does what its `act` says."""

    name: str
    effects: frozenset[Effect] = frozenset()
    readonly: bool = False
    kind: ToolKind = ToolKind.OTHER
    act: Act = fine
    network_flag: str = ""

    @property
    def spec(self) -> ToolSpec:
        parameters = '{"properties":{},"type":"object"}'
        schema = f'{{"description":"d","name":"{self.name}","parameters":{parameters}}}'
        return ToolSpec(self.name, schema, self.effects, self.readonly, self.kind, self.network_flag)

    async def run(self, call: ToolCall, context: ToolContext) -> Outcome:
        return await self.act(call)


@dataclass
class Memory:
    """What a desk was given."""

    nodes: list[Node] = field(default_factory=list)
    usage: list[Usage] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    async def keep(self, nodes: Sequence[Node], usage: Usage | None) -> None:
        await asyncio.sleep(0)
        self.nodes += nodes
        if usage:
            self.usage.append(usage)

    def context(self, clock: Clock | None = None) -> RunContext:
        return RunContext(self.keep, self.events.append, clock or ManualClock())


def agent(model: Model, tools: Iterable[Tool] = (), permit: Permit = USER, calls: int = 90) -> Agent:
    toolbox = {tool.spec.name: tool for tool in tools}
    return Agent(PREFIX, model, toolbox, permit, Limits(calls=calls))


def context(transcript: Transcript | None = None) -> ToolContext:
    said = asked() if transcript is None else transcript
    return ToolContext(agent(Scripted(lines("hi"))), said, lambda _: None, FREE)


def asked(text: str = "do it") -> Transcript:
    return Transcript(PREFIX.digest).then(user(text), Trust.OWNER, NOON)


async def take_turn(who: Agent, memory: Memory, start: Transcript | None = None) -> Turn:
    return await run(who, start or asked(), Origin.USER, memory.context())


def said(nodes: Iterable[Node]) -> list[str]:
    return [node.message.text or node.message.parts[0].text for node in nodes]  # type: ignore[union-attr]


def faults(messages: Sequence[Message]) -> list[str]:
    """What makes a history one that a provider would refuse, or that does not end with the assistant."""
    wrong: list[str] = []
    open_calls: list[str] = []
    seen: set[str] = set()
    for number, message in enumerate(messages):
        result = message.result
        if result:
            if result.call not in open_calls:
                wrong.append(f"{number}: a result without its call")
            else:
                open_calls.remove(result.call)
            continue
        if open_calls:
            wrong.append(f"{number}: calls without a result: {open_calls}")
        open_calls = [call.id for call in message.calls]
        if len(set(open_calls) | seen) != len(open_calls) + len(seen):
            wrong.append(f"{number}: a call id is used twice")
        seen.update(open_calls)
        if not message.parts:
            wrong.append(f"{number}: an empty message")
    if open_calls:
        wrong.append(f"at the end: calls without a result: {open_calls}")
    if messages and messages[-1].role is not Role.ASSISTANT:
        wrong.append("at the end: the last word is not the assistant's")
    return wrong
