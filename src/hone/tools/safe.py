"""The wall around a tool: what it raises becomes a result, and no result shows secrets or hides letters."""

import re
from collections.abc import Callable
from dataclasses import replace

from hone.core.messages import ToolCall
from hone.core.tool import Outcome, Tool, ToolSpec
from hone.core.tool_context import ToolContext
from hone.core.value import dataclass
from hone.core.visible import visible

_FAULTS = (re.error, ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
_FRAMES = 3


@dataclass(frozen=True, slots=True)
class SafeTool:
    tool: Tool
    redact: Callable[[str], str]

    @property
    def spec(self) -> ToolSpec:
        return self.tool.spec

    async def run(self, call: ToolCall, context: ToolContext) -> Outcome:
        try:
            outcome = await self.tool.run(call, context)
        except Exception as error:  # noqa: BLE001  a tool is anybody's code; the model can read what went wrong
            outcome = Outcome(f"{call.name} failed.\n{_last_lines(error)}", failed=True)
        return self._cleared(outcome)

    def _cleared(self, outcome: Outcome) -> Outcome:
        """A search for secrets that fails withholds the result."""
        try:
            return replace(outcome, text=visible(self.redact(outcome.text)))
        except _FAULTS as error:
            reason = f"it could not be searched for secrets ({type(error).__name__})"
        return Outcome(f"The call was made, but its result is withheld: {reason}.", failed=True)


def _last_lines(error: Exception) -> str:
    import traceback

    return "".join(traceback.format_exception(error, limit=-_FRAMES)).strip()
