"""A cap on what a tool's result may weigh in the history: the rest goes to a file.

Goes around `Contained`, never inside it: the file must not hold what the history may not.
"""

import asyncio
import re
from dataclasses import replace
from pathlib import Path

from hone.core.messages import ToolCall, digest, sound
from hone.core.tool import Outcome, Tool, ToolSpec
from hone.core.tool_context import ToolContext
from hone.core.value import dataclass
from hone.files.atomic import write


@dataclass(frozen=True, slots=True)
class Capped:
    tool: Tool
    folder: Path
    limit: int = 20_000
    """In characters, the note about what was left out included."""

    @property
    def spec(self) -> ToolSpec:
        return self.tool.spec

    async def run(self, call: ToolCall, context: ToolContext) -> Outcome:
        outcome = await self.tool.run(call, context)
        if len(outcome.text) <= self.limit:
            return outcome
        where = await asyncio.to_thread(self._spill, outcome.text)
        return replace(outcome, text=cut(outcome.text, where, self.limit))

    def _spill(self, text: str) -> str:
        try:
            return f"whole result in {keep(self.folder, self.spec.name, text)}"
        except OSError as error:
            return f"the rest could not be kept ({error.strerror})"


def keep(folder: Path, name: str, text: str) -> Path:
    """Writes the text to a file that only its owner can read, once per content."""
    data = sound(text).encode()
    path = folder / f"{re.sub(r'[^A-Za-z0-9_-]', '_', name)[:64]}-{digest(data)[:16]}.txt"
    write(path, data, durable=False)
    return path


def cut(text: str, where: str, limit: int) -> str:
    """Head and tail of the text with a note between them, together within the limit."""
    room = max(0, limit - len(_note(len(text), where)))
    head, tail = room - room // 2, room // 2
    note = _note(len(text) - room, where)
    return f"{text[:head]}{note}{text[len(text) - tail :]}"[:limit]


def _note(count: int, where: str) -> str:
    return f"\n… {count:,} characters left out; {where} …\n"
