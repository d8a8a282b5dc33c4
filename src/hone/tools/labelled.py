"""A result is worth what the place is worth it came from."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hone.core.messages import ToolCall
from hone.core.tool import Outcome, Tool, ToolSpec
from hone.core.tool_context import ToolContext
from hone.core.trust import Trust
from hone.core.value import dataclass
from hone.tools.files import located


@dataclass(frozen=True, slots=True)
class Labelled:
    """The place is the call's `path`, or the folder where it has none."""

    tool: Tool
    folder: Path
    label: Callable[[Path], Trust]

    @property
    def spec(self) -> ToolSpec:
        return self.tool.spec

    async def run(self, call: ToolCall, context: ToolContext) -> Outcome:
        outcome = await self.tool.run(call, context)
        place = self._place(call.arguments)
        return replace(outcome, trust=Trust.FOREIGN if place is None else self.label(place))

    def _place(self, arguments: str) -> Path | None:
        """None where it cannot be told: then nothing better than foreign is claimed."""
        try:
            path = json.loads(arguments or "{}").get("path", ".")
            return located(self.folder, path)
        except (ValueError, TypeError, AttributeError, RecursionError, OSError):
            return None
