"""File tools that stay below some folders: for whoever works where nobody watches."""

import json
from pathlib import Path

from hone.core.messages import ToolCall
from hone.core.tool import Outcome, Tool, ToolSpec
from hone.core.tool_context import ToolContext
from hone.core.trust import Trust
from hone.core.value import dataclass
from hone.tools.files import located


@dataclass(frozen=True, slots=True)
class FolderScoped:
    """A tool that takes a `path`. Relative ones start at the first of the folders."""

    tool: Tool
    folders: tuple[Path, ...]

    @property
    def spec(self) -> ToolSpec:
        return self.tool.spec

    async def run(self, call: ToolCall, context: ToolContext) -> Outcome:
        if self._is_inside(call.arguments):
            return await self.tool.run(call, context)
        reason = f"only what lies below {self.folders[0]} can be read and written here."
        return Outcome(f"Not done: {reason}", failed=True, trust=Trust.AGENT)

    def _is_inside(self, arguments: str) -> bool:
        """By where the path really leads, links followed. Where it cannot be told, it is not."""
        try:
            path = json.loads(arguments or "{}").get("path", ".")
            real = located(self.folders[0], path).resolve()
            return any(real.is_relative_to(folder.resolve()) for folder in self.folders)
        except (ValueError, TypeError, AttributeError, RecursionError, OSError, RuntimeError):
            return False
