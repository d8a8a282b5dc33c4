"""Run one turn: ask the model, perform its calls, and repeat until it answers or the budget is spent.

The loop knows nothing of providers, stores, screens or particular tools. A feature that needs to change it
should wrap a Model or a Tool instead.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from itertools import groupby
from threading import Lock

from msgspec import Struct

from hone.core.agent import Agent
from hone.core.clock import Clock
from hone.core.errors import ModelError, StoreError, Unusable
from hone.core.events import CallEnded, CallStarted, Emit, Notice, Spent, Steered
from hone.core.messages import Message, Role, ToolCall, answer, assistant, sound, user
from hone.core.model import Finish, Remark, Reply, Restart, TextBuffer, TextPiece, Usage
from hone.core.normalize import normalize
from hone.core.permissions import NoPermissions, Permissions
from hone.core.ports import Header
from hone.core.provenance import NETWORK, OUTWARD, has_effect, is_tainted, label
from hone.core.tool import CallGuard, NoGuard, Outcome, ToolKind, changes, is_served, refused
from hone.core.tool_context import UNNAMED, Spawn, ToolContext, childless
from hone.core.transcript import Node, Transcript
from hone.core.trust import Trust
from hone.core.turn import Origin, Stop, Turn
from hone.core.value import replace
from hone.core.visible import visible
from hone.core.waiting import uninterrupted

Fallback = Callable[[ModelError, Transcript], Awaitable[tuple[Agent, Transcript] | None]]
"""Called when the model fails. Returns the agent and transcript to continue with, or None."""

Keep = Callable[[Sequence[Node], Usage | None], Awaitable[None]]
"""Makes nodes durable. The turn waits until it returns."""

Said = tuple[Message, Trust]

STORED = "What was said before is stored."
STUCK = (
    "Your last calls were refused because they repeat what did not help, and you cannot use tools anymore in "
    "this turn. In a few sentences: what is done, what is in your way, and what do you need from the user?"
)

_CUT = {
    Finish.LENGTH: "The answer was cut at the model's output limit.",
    Finish.FILTERED: "The provider's content filter cut the answer short.",
}


class Budget:
    """Limits the model calls of a turn. `consume` takes one if any is left; `refund` gives one back, up to
    `ceiling` calls in total."""

    def __init__(self, calls: int, ceiling: int | None = None) -> None:
        self._left = calls
        self._ceiling = 3 * calls if ceiling is None else ceiling
        self._used = 0
        self._lock = Lock()

    def consume(self) -> bool:
        with self._lock:
            if self._left <= 0 or self._used >= self._ceiling:
                return False
            self._left -= 1
            self._used += 1
            return True

    def refund(self) -> None:
        with self._lock:
            self._left += 1


class Steering:
    """Holds what the owner says while a turn runs. The model reads it with its next step, after the results
    of this one; `withdraw` returns what the model has not read."""

    def __init__(self) -> None:
        self.waiting: tuple[Said, ...] = ()

    def say(self, words: str) -> None:
        self.waiting = (*self.waiting, (user(visible(sound(words))), Trust.OWNER))

    def withdraw(self) -> list[str]:
        waiting, self.waiting = self.waiting, ()
        return [message.text for message, _ in waiting]

    async def reach(self, record: "Record") -> None:
        """Add the waiting words to the conversation. They keep waiting if they could not be stored."""
        said, before = self.waiting, len(record.transcript)
        if not said:
            return
        try:
            await record.add(said)
        finally:
            if len(record.transcript) > before:
                self.waiting = self.waiting[len(said) :]
        record.context.permissions.hear(record.transcript)
        for message, _ in said:
            record.context.emit(Steered(message.text))


class RunContext(Struct, frozen=True):
    """Where a run writes: what it must store, and what a screen may show."""

    keep: Keep
    emit: Emit
    clock: Clock
    fall_back: Fallback | None = None
    permissions: Permissions = NoPermissions()
    spawn: Spawn = childless
    header: Header = UNNAMED
    guard: CallGuard = NoGuard()
    steering: Steering | None = None


async def run(agent: Agent, transcript: Transcript, origin: Origin, context: RunContext) -> Turn:
    """Run one turn. Never raises what a model, a tool or the user's Ctrl-C can cause: the turn tells how it
    ended."""
    record = Record(agent, transcript, Turn(origin), context)
    budget = Budget(agent.limits.calls)
    spare: tuple[Agent, Transcript] | None = (agent, transcript)
    try:
        while spare:
            agent, record.transcript = spare
            try:
                return await converse(agent, record, budget)
            except ModelError as error:
                failure = str(error)
                spare = await context.fall_back(error, record.transcript) if context.fall_back else None
                budget.refund()
        return await record.closed(Stop.FAILED, failure)
    except asyncio.CancelledError:
        return await record.closed(Stop.INTERRUPTED, "interrupted")
    except StoreError as error:
        return record.turn.ended(Stop.FAILED, f"{error} {STORED}")


async def converse(agent: Agent, record: "Record", budget: Budget) -> Turn:
    while budget.consume():
        if await step(agent, record, budget):
            return record.turn.ended(Stop.ANSWERED)
        if reason := record.context.guard.end_step():
            await grace(agent, record, STUCK)
            return record.turn.ended(Stop.STUCK, reason)
        if record.context.steering:
            await record.context.steering.reach(record)
    await grace(agent, record, agent.limits.last_question)
    return record.turn.ended(Stop.BUDGET, f"The budget of {agent.limits.calls} model calls is spent.")


async def step(agent: Agent, record: "Record", budget: Budget) -> bool:
    """Call the model once and perform the calls it asks for. Return True when the model has answered."""
    reply = await ask(agent, record.transcript, record)
    normalized = normalize(reply.message, record.call_ids, len(record.transcript))
    await record.add([(normalized.message, record.agent_trust)], reply.usage)
    if reply.finish in _CUT:
        record.context.emit(Notice(_CUT[reply.finish]))
    calls = normalized.message.calls
    for batch in batches(agent, calls):
        outward = [call.id for call in batch if has_effect(OUTWARD, call, agent.toolbox)]
        record.doubtful = record.tainted or any(has_effect(NETWORK, call, agent.toolbox) for call in batch)
        attempts = [attempt(agent, call, normalized.faults.get(call.id, ""), record) for call in batch]
        await (asyncio.gather(*attempts) if len(batch) > 1 else attempts[0])
        await record.add([record.results[call.id] for call in batch])
        record.tainted = record.tainted or any(record.results[id][1] is Trust.FOREIGN for id in outward)
    if calls and all(kind_of(agent, call) is ToolKind.CODE for call in calls):
        budget.refund()
    return not calls or (agent.limits.until_done and is_done(agent, calls, record))


async def ask(agent: Agent, transcript: Transcript, record: "Record") -> Reply:
    """Stream one reply. Keep the text shown so far in case the reply never ends."""
    record.partial = TextBuffer()
    async with aclosing(agent.model.stream(agent.prefix, transcript)) as pieces:
        async for piece in pieces:
            if isinstance(piece, Reply):
                record.partial = TextBuffer()
                record.context.emit(Spent(piece.usage))
                return piece
            if isinstance(piece, TextPiece):
                record.partial.append(piece.text)
            elif isinstance(piece, Restart):
                record.partial = TextBuffer()
            record.context.emit(Notice(piece.text) if isinstance(piece, Remark) else piece)
    raise Unusable("The model's stream ended without a reply.")


async def grace(agent: Agent, record: "Record", question: str) -> None:
    """Call the model one last time for a summary. Its question is not kept, and calls in it are ignored."""
    reply = await ask(
        agent, record.transcript.then(user(question), Trust.AGENT, record.context.clock.now()), record
    )
    summary = sound(reply.message.text) or "(no summary was given)"
    await record.add([(assistant(summary), record.agent_trust)], reply.usage)


def batches(agent: Agent, calls: Iterable[ToolCall]) -> Iterator[Sequence[ToolCall]]:
    """Yield neighboring read-only calls together, and every other call alone, in order."""
    for together, group in groupby(calls, lambda call: is_readonly(agent, call)):
        if together:
            yield list(group)
        else:
            yield from ([call] for call in group)


async def attempt(agent: Agent, call: ToolCall, fault: str, record: "Record") -> None:
    """Perform one call and note its outcome, so that a finished call is never reported as cut off."""
    clock, emit = record.context.clock, record.context.emit
    emit(CallStarted(call))
    begun = clock.monotonic()
    context = record.context
    tool_context = ToolContext(
        agent, record.transcript, emit, context.permissions, context.spawn, context.header, call
    )
    tool = agent.toolbox.get(call.name)
    act = partial(perform, agent, call, tool_context, fault)
    outcome = await context.guard.watch(call, tool.spec if tool else None, act, fault)
    result = answer(call, sound(outcome.text), failed=outcome.failed)
    record.results[call.id] = (result, label(outcome.trust, record.agent_trust, tainted=record.doubtful))
    emit(CallEnded(call, outcome, clock.monotonic() - begun))


async def perform(agent: Agent, call: ToolCall, tool_context: ToolContext, fault: str = "") -> Outcome:
    if fault:
        return refused(fault)
    tool = agent.toolbox.get(call.name)
    if tool is None:
        gone = " Its server is not set up here." if is_served(call.name) else ""
        return refused(f"there is no tool named {call.name!r}.{gone} {allowed(agent)}")
    try:
        if not agent.may_make(call, tool):
            return refused(f"{call.name} is not permitted here. {allowed(agent)}")
        return await tool.run(call, tool_context)
    except Exception as error:  # noqa: BLE001  the wall: a gate or plugin that raises is a refusal, not a crash
        return refused(f"{call.name} was refused: {type(error).__name__} while Hone checked or ran it")


def allowed(agent: Agent) -> str:
    names = sorted(name for name, tool in agent.toolbox.items() if agent.may_use(tool) and tool.spec.listed)
    return f"Allowed here: {', '.join(names)}." if names else "No tool is allowed here."


def is_readonly(agent: Agent, call: ToolCall) -> bool:
    tool = agent.toolbox.get(call.name)
    return tool is not None and tool.spec.readonly


def is_done(agent: Agent, calls: Sequence[ToolCall], record: "Record") -> bool:
    """Tell whether nothing is left to say: every call succeeded, and none of them was a mere look-up."""
    results = (record.results[call.id][0].result for call in calls)
    return all(result and not result.failed for result in results) and all(
        (tool := agent.toolbox.get(call.name))
        and tool.spec.effects
        and not tool.spec.readonly
        and changes(call)
        for call in calls
    )


def kind_of(agent: Agent, call: ToolCall) -> ToolKind:
    tool = agent.toolbox.get(call.name)
    return tool.spec.kind if tool else ToolKind.OTHER


class Record:
    """Holds what has been said so far in a turn. Nothing counts as said before it is kept.

    `tainted`: a call has reached the network. `doubtful`: that, or a running call may do so.
    """

    def __init__(self, agent: Agent, transcript: Transcript, turn: Turn, context: RunContext) -> None:
        self.transcript = transcript
        self.turn = turn
        self.context = context
        self.partial = TextBuffer()
        self.results: dict[str, Said] = {}
        self.tainted = self.doubtful = is_tainted(transcript, agent.toolbox)
        replies = (message for message in transcript if message.role is Role.ASSISTANT)
        self.call_ids = {call.id for message in replies for call in message.calls}

    @property
    def agent_trust(self) -> Trust:
        """The trust of the model's own words: never better than the worst it has read."""
        return min(Trust.AGENT, self.transcript.trust)

    async def add(self, said: Iterable[Said], usage: Usage | None = None) -> None:
        longer = self.transcript
        for message, trust in said:
            longer = longer.then(message, trust, self.context.clock.now())
        nodes = longer.nodes[len(self.transcript) :]
        await uninterrupted(self._take(longer, nodes, usage))

    async def _take(self, longer: Transcript, nodes: tuple[Node, ...], usage: Usage | None) -> None:
        await self.context.keep(nodes, usage)
        spent = (*self.turn.usage, usage) if usage else self.turn.usage
        self.transcript = longer
        self.call_ids.update(call.id for node in nodes for call in node.message.calls)
        self.turn = replace(self.turn, nodes=(*self.turn.nodes, *nodes), usage=spent)

    async def closed(self, stop: Stop, reason: str) -> Turn:
        """End the turn early, with a history that can be continued."""
        try:
            await self.add(self._closing(reason))
        except StoreError as error:
            reason = f"{reason} {error}"
        except asyncio.CancelledError:
            reason = f"{reason} again while it was being ended"
        return self.turn.ended(stop, reason)

    def _closing(self, reason: str) -> Iterator[Said]:
        for message in self.transcript.closing(reason):
            if message.result:
                yield self.results.get(message.result.call, (message, self.agent_trust))
            elif self.partial:
                yield assistant(f"{sound(str(self.partial))}\n\n(cut short: {reason})"), self.agent_trust
            else:
                yield message, self.agent_trust
