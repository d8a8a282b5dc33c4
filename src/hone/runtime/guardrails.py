"""Guardrails of one turn: warn an agent that repeats itself, then stop it.

What counts, for each of the three thresholds (warn, stop):

same_call    failures of one tool with one set of arguments, since that very call last succeeded or a file was
             written
same_tool    failures of one tool with any arguments, since that tool last succeeded
same_result  equal results in a row of one read-only tool with one set of arguments, since a file was last
             written; failures are left out

Arguments are compared as JSON values, so spelling and order do not matter. With `warn = 2` the second such
result carries a warning, and so does every later one. With `stop = 5` the sixth such call is not made: its
result is a failure that says why and what to do instead. A refused call does not count; a call that raises
counts as a failure. 0 switches a threshold off. Calls that run in parallel are counted as they end.
"""

import json
from collections.abc import Sequence
from itertools import takewhile

from msgspec import Struct

from hone.core.messages import ToolCall, canonical
from hone.core.permit import Effect
from hone.core.tool import Outcome, Tool, Toolbox, ToolSpec, refused
from hone.core.tool_context import ToolContext
from hone.core.value import replace
from hone.settings import Guardrails


class Attempt(Struct, frozen=True):
    """A call that was made. `arguments` are canonical; `writes` is declared by the tool."""

    tool: str
    arguments: str
    failed: bool
    readonly: bool = False
    result: str = ""
    writes: bool = False


class CallCounts(Struct, frozen=True):
    same_call: int = 0
    same_tool: int = 0
    same_result: int = 0


def tally(attempts: Sequence[Attempt], tool: str, arguments: str) -> CallCounts:
    """How often this call has gone wrong, or nowhere, so far."""
    of_tool = [each for each in attempts if each.tool == tool]
    since = [each for each in _since_write(attempts) if (each.tool, each.arguments) == (tool, arguments)]
    return CallCounts(_failures(since), _failures(of_tool), _repeats(since))


def _since_write(attempts: Sequence[Attempt]) -> Sequence[Attempt]:
    """What was tried as things stand now: a test that fails again after an edit is another test."""
    written = [number for number, each in enumerate(attempts, 1) if each.writes and not each.failed]
    return attempts[written[-1] :] if written else attempts


def _failures(attempts: Sequence[Attempt]) -> int:
    return sum(1 for _ in takewhile(lambda each: each.failed, reversed(attempts)))


def _repeats(attempts: Sequence[Attempt]) -> int:
    seen = [each.result for each in attempts if each.readonly and not each.failed]
    return sum(1 for _ in takewhile(lambda result: result == seen[-1], reversed(seen)))


def refusal(counts: CallCounts, thresholds: Guardrails) -> str | None:
    """Why the next call of this kind is not made; None if it is."""
    if _reached(counts.same_call, thresholds.same_call[1]):
        return (
            f"Not run: this call has failed {counts.same_call} times with these arguments. "
            "Do not repeat it: read the errors, change the arguments, or try another way."
        )
    if _reached(counts.same_tool, thresholds.same_tool[1]):
        return (
            f"Not run: this tool has failed {counts.same_tool} times in a row in this turn. "
            "Use another tool, or tell the user what is blocking you."
        )
    if _reached(counts.same_result, thresholds.same_result[1]):
        return (
            f"Not run: this call has returned the same result {counts.same_result} times. "
            "Use the result you have, or ask for something else."
        )
    return None


def warning(counts: CallCounts, thresholds: Guardrails, *, failed: bool) -> str | None:
    """What is said beside the result that has just come back and is in the counts."""
    if failed and _reached(counts.same_call, thresholds.same_call[0]):
        return f"this call has failed {counts.same_call} times this way: change the arguments or the approach"
    if failed and _reached(counts.same_tool, thresholds.same_tool[0]):
        return f"this tool has failed {counts.same_tool} times in a row: read its errors or use another one"
    if not failed and _reached(counts.same_result, thresholds.same_result[0]):
        return (
            f"this call has returned the same result {counts.same_result} times: there is nothing new to see"
        )
    return None


def _reached(count: int, threshold: int) -> bool:
    return 0 < threshold <= count


class Guard:
    """The attempts of one turn, and the tools that add to them."""

    def __init__(self, thresholds: Guardrails) -> None:
        self.thresholds = thresholds
        self.attempts: list[Attempt] = []

    def around(self, toolbox: Toolbox) -> Toolbox:
        return {name: GuardedTool(tool, self) for name, tool in toolbox.items()}


class GuardedTool(Struct, frozen=True):
    tool: Tool
    guard: Guard

    @property
    def spec(self) -> ToolSpec:
        return self.tool.spec

    async def run(self, call: ToolCall, context: ToolContext) -> Outcome:
        attempts, thresholds = self.guard.attempts, self.guard.thresholds
        arguments = _value(call.arguments)
        if reason := refusal(tally(attempts, call.name, arguments), thresholds):
            return refused(reason)
        outcome = await self._made(call, context, arguments)
        warned = warning(tally(attempts, call.name, arguments), thresholds, failed=outcome.failed)
        return replace(outcome, text=f"{outcome.text}\n\n[Warning: {warned}.]") if warned else outcome

    async def _made(self, call: ToolCall, context: ToolContext, arguments: str) -> Outcome:
        outcome, writes = Outcome("", failed=True), Effect.WRITE in self.spec.effects
        try:
            outcome = await self.tool.run(call, context)
        finally:
            self.guard.attempts.append(
                Attempt(call.name, arguments, outcome.failed, self.spec.readonly, outcome.text, writes)
            )
        return outcome


def _value(arguments: str) -> str:
    """One spelling per JSON value; what is no JSON stands for itself."""
    try:
        return canonical(json.loads(arguments.strip() or "{}"))
    except (ValueError, RecursionError):
        return arguments
