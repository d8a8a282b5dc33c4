"""What Hone keeps is changed by its owner and through its own tools: no file tool writes there."""

import json
from pathlib import Path

from hone.core.messages import ToolCall
from hone.core.permit import Effect
from hone.core.tool import Outcome, Tool, ToolSpec
from hone.core.tool_context import ToolContext
from hone.core.trust import Trust
from hone.core.value import dataclass
from hone.tools.files import located


@dataclass(frozen=True, slots=True)
class HomeProtected:
    """A file in the home that changes counts as edited by the owner. So whoever is not the owner must not
    change one: it would be known without a question."""

    tool: Tool
    folder: Path
    home: Path

    @property
    def spec(self) -> ToolSpec:
        return self.tool.spec

    async def run(self, call: ToolCall, context: ToolContext) -> Outcome:
        if Effect.WRITE in self.spec.effects and self._is_inside(call.arguments):
            reason = f"{self.home} is where Hone keeps what it knows; use memory or skill_manage."
            return Outcome(f"Not written: {reason}", failed=True, trust=Trust.AGENT)
        return await self.tool.run(call, context)

    def _is_inside(self, arguments: str) -> bool:
        """By where the path really leads, links followed. Where it cannot be told, it is."""
        try:
            path = json.loads(arguments or "{}").get("path", ".")
            return located(self.folder, path).resolve().is_relative_to(self.home.resolve())
        except (ValueError, TypeError, AttributeError, RecursionError, OSError, RuntimeError):
            return True
