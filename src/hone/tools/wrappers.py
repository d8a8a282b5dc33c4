"""Tools that wrap tools: turn errors into results, redact secrets, cap and label results, restrict paths."""

import asyncio
import json
import re
import traceback
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from hone.core.messages import ToolCall, digest, sound
from hone.core.permit import Effect
from hone.core.tool import Outcome, Tool, ToolSpec
from hone.core.tool_context import ToolContext
from hone.core.trust import Trust
from hone.core.value import replace
from hone.core.visible import visible
from hone.files.atomic import write
from hone.tools.files import located

_FAULTS = (re.error, ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
_FRAMES = 3


class Wrapper(Struct, frozen=True):
    """A tool as the model sees it; a subclass says what else happens when it runs."""

    tool: Tool

    @property
    def spec(self) -> ToolSpec:
        return self.tool.spec


class SafeTool(Wrapper, frozen=True):
    """What a tool raises becomes a result, and no result shows secrets or hides letters."""

    redact: Callable[[str], str]

    async def run(self, call: ToolCall, context: ToolContext) -> Outcome:
        try:
            outcome = await self.tool.run(call, context)
        except Exception as error:  # noqa: BLE001  a tool is anybody's code; the model can read what went wrong
            trace = "".join(traceback.format_exception(error, limit=-_FRAMES)).strip()
            outcome = Outcome(f"{call.name} failed.\n{trace}", failed=True)
        return self._cleared(outcome)

    def _cleared(self, outcome: Outcome) -> Outcome:
        """A search for secrets that fails withholds the result."""
        try:
            return replace(outcome, text=visible(self.redact(outcome.text)))
        except _FAULTS as error:
            reason = f"it could not be searched for secrets ({type(error).__name__})"
        return Outcome(f"The call was made, but its result is withheld: {reason}.", failed=True)


class Capped(Wrapper, frozen=True):
    """A cap on what a result may weigh in the history: the rest goes to a file. Goes around SafeTool, never
    inside it: the file must not hold what the history may not."""

    folder: Path
    limit: int = 20_000
    """In characters, the note about what was left out included."""

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


class Labelled(Wrapper, frozen=True):
    """Labels a result with the trust of the path it came from: the call's `path`, or the folder where it has
    none. Where it cannot be told, nothing better than foreign is claimed."""

    folder: Path
    label: Callable[[Path], Trust]

    async def run(self, call: ToolCall, context: ToolContext) -> Outcome:
        outcome = await self.tool.run(call, context)
        place = _path(self.folder, call.arguments)
        return replace(outcome, trust=Trust.FOREIGN if place is None else self.label(place))


class FolderScoped(Wrapper, frozen=True):
    """A tool that takes a `path` and stays below some folders: for whoever works where nobody watches.
    Relative paths start at the first of the folders."""

    folders: tuple[Path, ...]

    async def run(self, call: ToolCall, context: ToolContext) -> Outcome:
        if self._is_inside(call.arguments):
            return await self.tool.run(call, context)
        reason = f"only what lies below {self.folders[0]} can be read and written here."
        return Outcome(f"Not done: {reason}", failed=True, trust=Trust.AGENT)

    def _is_inside(self, arguments: str) -> bool:
        """By where the path really leads, links followed. Where it cannot be told, it is not."""
        real = _path(self.folders[0], arguments, real=True)
        return real is not None and any(real.is_relative_to(each.resolve()) for each in self.folders)


class HomeProtected(Wrapper, frozen=True):
    """A file in the home that changes counts as edited by the owner. So whoever is not the owner must not
    change one: it would be known without a question."""

    folder: Path
    home: Path

    async def run(self, call: ToolCall, context: ToolContext) -> Outcome:
        if Effect.WRITE in self.spec.effects and self._is_inside(call.arguments):
            reason = f"{self.home} is where Hone keeps what it knows; use memory or skill_manage."
            return Outcome(f"Not written: {reason}", failed=True, trust=Trust.AGENT)
        return await self.tool.run(call, context)

    def _is_inside(self, arguments: str) -> bool:
        """By where the path really leads, links followed. Where it cannot be told, it is."""
        real = _path(self.folder, arguments, real=True)
        return real is None or real.is_relative_to(self.home.resolve())


def _path(folder: Path, arguments: str, *, real: bool = False) -> Path | None:
    """The `path` of a call, `real` with links followed; None where it cannot be told."""
    try:
        path = located(folder, json.loads(arguments or "{}").get("path", "."))
        return path.resolve() if real else path
    except (ValueError, TypeError, AttributeError, OSError, RuntimeError):
        return None
