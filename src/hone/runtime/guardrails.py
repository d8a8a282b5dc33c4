"""Guardrails of one turn: warn an agent that repeats itself, refuse its calls, then end the turn.

What counts, for each of the three thresholds (warn, stop):

same_call    failures of one tool with one set of arguments, since that very call last succeeded
same_tool    failures of one tool with any arguments, since that tool last succeeded. Calls of tools that do
             not exist count together, whatever their names, since something new last succeeded
same_result  equal results in a row of one tool with one set of arguments; failures are left out

Each starts again when another call has written something new: a tool that writes has succeeded with
arguments that it did not get before in this turn. So tests after edits are no circle, and polling is none as
long as its results differ, but two calls that take turns are one.

Arguments are compared as JSON values, so spelling and order do not matter. A malformed call is a failure of
its tool. With `warn = 2` the second such result carries a warning, and so does every later one. With
`stop = 5` the sixth such call is not made: its result is a failure that says why and what to do instead. A
refused call does not count; a call that raises counts as a failure. After `end` replies with refused calls,
and nothing new between them, the turn ends. 0 switches a threshold off. Calls that run in parallel are
counted as they end.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from itertools import takewhile

import msgspec
from msgspec import Struct

from hone.core.messages import ToolCall
from hone.core.monitor import Monitors, ToolEnd, ToolStep
from hone.core.permit import Effect
from hone.core.tool import CallGuard, Outcome, ToolSpec, refused
from hone.core.value import replace
from hone.settings.sections import Guardrails

Remember = Callable[[ToolCall, Outcome], Awaitable[None]]

_QUICK = re.compile(r"\b0\.\d s\b")
"""How long a quick command took, which does not count as part of its result."""


class Attempt(Struct, frozen=True):
    """A call that was made. `arguments` are canonical; `writes` is declared by the tool; `unknown`: there is
    no such tool; `new`: it has achieved something new in this turn."""

    tool: str
    arguments: str
    failed: bool
    result: str = ""
    writes: bool = False
    unknown: bool = False
    new: bool = False

    @property
    def call(self) -> tuple[str, str]:
        return self.tool, self.arguments


class CallCounts(Struct, frozen=True):
    same_call: int = 0
    same_tool: int = 0
    same_result: int = 0
    unknown: bool = False


def tally(attempts: Sequence[Attempt], tool: str, arguments: str, *, unknown: bool = False) -> CallCounts:
    """Count how often this call has failed or made no progress so far."""
    since = _since_write(attempts, (tool, arguments))
    same = [each for each in since if each.arguments == arguments and each.tool == tool]
    if unknown:
        return CallCounts(_failures(same), _unknown(attempts), unknown=True)
    of_tool = [each for each in since if each.tool == tool]
    return CallCounts(_failures(same), _failures(of_tool), _repeats(same))


def is_new(attempts: Sequence[Attempt], made: Attempt) -> bool:
    """Tell whether a call has succeeded with a new result. A tool that writes must also have new
    arguments."""
    if made.failed:
        return False
    before = (each for each in attempts if each.call == made.call and not each.failed)
    return all(not made.writes and each.result != made.result for each in before)


def _since_write(attempts: Sequence[Attempt], call: tuple[str, str]) -> Sequence[Attempt]:
    """Return the attempts since the last new write: a test that fails again after an edit is another test."""
    return _since(attempts, lambda each: each.writes and each.new and each.call != call)


def _since(attempts: Sequence[Attempt], event: Callable[[Attempt], bool]) -> Sequence[Attempt]:
    """Return the attempts after the last match; all of them if there was none."""
    for back, each in enumerate(reversed(attempts)):
        if event(each):
            return attempts[len(attempts) - back :]
    return attempts


def _failures(attempts: Sequence[Attempt]) -> int:
    return sum(1 for _ in takewhile(lambda each: each.failed, reversed(attempts)))


def _unknown(attempts: Sequence[Attempt]) -> int:
    """Count the calls of tools that do not exist, since something new last succeeded."""
    return sum(each.unknown for each in _since(attempts, lambda each: each.new))


def _repeats(attempts: Sequence[Attempt]) -> int:
    seen = [each.result for each in attempts if not each.failed]
    return sum(1 for _ in takewhile(lambda result: result == seen[-1], reversed(seen)))


def refusal(counts: CallCounts, thresholds: Guardrails) -> str | None:
    """Return why the next call of this kind is refused; None if it is not."""
    if _reached(counts.same_call, thresholds.same_call[1]):
        return (
            f"Not run: this call has failed {counts.same_call} times with these arguments. "
            "Do not repeat it: read the errors, change the arguments, or try another way."
        )
    if _reached(counts.same_tool, thresholds.same_tool[1]):
        return f"Not run: {_explain_tool(counts)}"
    if _reached(counts.same_result, thresholds.same_result[1]):
        return (
            f"Not run: this call has returned the same result {counts.same_result} times. "
            "Use the result you have, or ask for something else."
        )
    return None


def _explain_tool(counts: CallCounts) -> str:
    if counts.unknown:
        return (
            f"{counts.same_tool} calls have named tools that do not exist. "
            "Use the tools you have, or tell the user what you are missing."
        )
    return (
        f"this tool has failed {counts.same_tool} times in a row in this turn. "
        "Use another tool, or tell the user what is blocking you."
    )


def warning(counts: CallCounts, thresholds: Guardrails, *, failed: bool) -> str | None:
    """Return a warning to go with the result that has just been counted."""
    if failed and _reached(counts.same_call, thresholds.same_call[0]):
        return f"this call has failed {counts.same_call} times this way: change the arguments or the approach"
    if failed and _reached(counts.same_tool, thresholds.same_tool[0]):
        if counts.unknown:
            return f"{counts.same_tool} calls have named tools that do not exist: use the tools you have"
        return f"this tool has failed {counts.same_tool} times in a row: read its errors or use another one"
    if not failed and _reached(counts.same_result, thresholds.same_result[0]):
        return (
            f"this call has returned the same result {counts.same_result} times: there is nothing new to see"
        )
    return None


def _reached(count: int, threshold: int) -> bool:
    return 0 < threshold <= count


class Guard:
    """Watches the calls of one turn, and counts how many replies in a row were refused."""

    def __init__(self, thresholds: Guardrails) -> None:
        self.thresholds = thresholds
        self.attempts: list[Attempt] = []
        self._refusals = 0
        self._refused = self._progressed = False

    async def watch(
        self, call: ToolCall, spec: ToolSpec | None, act: Callable[[], Awaitable[Outcome]], fault: str = ""
    ) -> Outcome:
        arguments, unknown = fault or _value(call.arguments), spec is None
        if reason := refusal(tally(self.attempts, call.name, arguments, unknown=unknown), self.thresholds):
            self._refused = True
            return refused(reason)
        outcome = Outcome("", failed=True)
        try:
            outcome = await act()
        finally:
            self._note(call, spec, arguments, outcome)
        counts = tally(self.attempts, call.name, arguments, unknown=unknown)
        warned = warning(counts, self.thresholds, failed=outcome.failed)
        return replace(outcome, text=f"{outcome.text}\n\n[Warning: {warned}.]") if warned else outcome

    def _note(self, call: ToolCall, spec: ToolSpec | None, arguments: str, outcome: Outcome) -> None:
        writes = spec is not None and Effect.WRITE in spec.effects
        result = _QUICK.sub("", outcome.text)
        made = Attempt(call.name, arguments, outcome.failed, result, writes, spec is None)
        if is_new(self.attempts, made):
            made = replace(made, new=True)
        self._progressed = self._progressed or made.new
        self.attempts.append(made)

    def end_step(self) -> str:
        self._refusals = 0 if self._progressed else self._refusals + self._refused
        self._refused = self._progressed = False
        if not _reached(self._refusals, self.thresholds.end):
            return ""
        return (
            f"The model kept repeating itself after its calls were refused ({self._refusals} replies), so "
            "Hone ended the turn. Tell it how to continue."
        )


class RememberingGuard:
    """Remembers why each result is foreign. It sees calls that reach no tool, too."""

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


class MonitoredGuard:
    """Reports each call to monitors, including those that reach no tool."""

    def __init__(self, guard: CallGuard, monitors: Monitors) -> None:
        self._guard = guard
        self._monitors = monitors

    async def watch(
        self, call: ToolCall, spec: ToolSpec | None, act: Callable[[], Awaitable[Outcome]], fault: str = ""
    ) -> Outcome:
        end, failed = self._monitors.begin(ToolStep(spec.name if spec else "")), True
        try:
            outcome = await self._guard.watch(call, spec, act, fault)
            failed = outcome.failed
            return outcome
        finally:
            end(ToolEnd(failed))

    def end_step(self) -> str:
        return self._guard.end_step()


def _value(arguments: str) -> str:
    """Return one spelling per JSON value. Text that is not JSON stays as it is."""
    try:
        value: object = msgspec.json.decode(arguments.strip() or "{}")
        return msgspec.json.encode(value, order="sorted").decode()
    except (ValueError, RecursionError):
        return arguments
