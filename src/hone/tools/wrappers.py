"""Tools that wrap tools: ask for permission, turn errors into results, redact secrets, cap results."""

import asyncio
import re
import traceback
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from hone.core.documents import SPILL, Documents
from hone.core.errors import StoreError
from hone.core.messages import ToolCall, digest, sound
from hone.core.permissions import Action, Request
from hone.core.permit import Effect
from hone.core.tool import Outcome, Tool, ToolSpec, refused
from hone.core.tool_context import ToolContext
from hone.core.trust import Trust
from hone.core.value import replace
from hone.core.visible import path_to_text, visible
from hone.core.work import Reasons, reasons_of_call

_FAULTS = (re.error, ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
_FRAMES = 3
_BRINGING = frozenset({Effect.READ, Effect.EXECUTE, Effect.NETWORK, Effect.SPAWN})
"""Effects that bring other people's words into the conversation."""
_CHANGING = frozenset({Effect.WRITE, Effect.EXECUTE})


class Wrapper(Struct, frozen=True):
    """A tool as the model sees it. A subclass adds what else happens when it runs."""

    tool: Tool

    @property
    def spec(self) -> ToolSpec:
        return self.tool.spec


class Permitted(Wrapper, frozen=True):
    """Asks for permission for a tool that changes something and does not ask on its own."""

    async def run(self, call: ToolCall, context: ToolContext) -> Outcome:
        if self.spec.effects & _CHANGING and not self.spec.readonly:
            question = f"Let {call.name} do this?"
            request = Request(call.name, Action.USE, call.arguments, call.arguments, question)
            no = await context.refusal(request)
            if no:
                return refused(f"{call.name} was not run. {no}")
        return await self.tool.run(call, context)


class Withholding(Wrapper, frozen=True):
    """Reports for each result whether it is foreign only because the owner has not trusted `folder`. Other
    results stay foreign when the owner trusts it later: text from the network, from servers and other
    folders, and the output of commands that can read an untrusted folder."""

    folder: Path

    async def run(self, call: ToolCall, context: ToolContext) -> Outcome:
        reasons = Reasons(self.folder)
        token = reasons_of_call.set(reasons)
        try:
            outcome = await self.tool.run(call, context)
        finally:
            reasons_of_call.reset(token)
        is_withheld = outcome.trust is Trust.FOREIGN and reasons.found and all(reasons.found)
        return replace(outcome, withheld=path_to_text(self.folder)) if is_withheld else outcome


class SafeTool(Wrapper, frozen=True):
    """Turns errors into results, and shows no secrets and no hidden characters."""

    redact: Callable[[str], str]

    async def run(self, call: ToolCall, context: ToolContext) -> Outcome:
        try:
            outcome = await self.tool.run(call, context)
        except Exception as error:  # noqa: BLE001  a tool is anybody's code; the model can read what went wrong
            trace = "".join(traceback.format_exception(error, limit=-_FRAMES)).strip()
            outcome = Outcome(f"{call.name} failed.\n{trace}", failed=True, trust=_label(self.tool))
        return self._cleared(outcome)

    def _cleared(self, outcome: Outcome) -> Outcome:
        """Return a result without secrets. If the search for secrets fails, the result is withheld."""
        try:
            return replace(outcome, text=visible(self.redact(outcome.text)))
        except _FAULTS as error:
            reason = f"it could not be searched for secrets ({type(error).__name__})"
        text = f"The call was made, but its result is withheld: {reason}."
        return Outcome(text, failed=True, trust=_label(self.tool))


def _label(tool: Tool) -> Trust:
    """Return the label of an error: it may quote what the tool has read."""
    effects = tool.spec.effects
    return Trust.AGENT if effects and not effects & _BRINGING else Trust.FOREIGN


class Capped(Wrapper, frozen=True):
    """Limits the size of a result in the history. The rest goes to a document, which tools read as a file of
    the home. It wraps SafeTool, never the reverse: the document must not hold what the history may not."""

    documents: Documents
    home: Path
    limit: int = 20_000
    """In characters, including the note about what was left out."""

    async def run(self, call: ToolCall, context: ToolContext) -> Outcome:
        outcome = await self.tool.run(call, context)
        if len(outcome.text) <= self.limit:
            return outcome
        where = await asyncio.to_thread(self._spill, outcome.text)
        return replace(outcome, text=cut(outcome.text, where, self.limit))

    def _spill(self, text: str) -> str:
        try:
            name = keep(self.documents, self.spec.name, text)
        except StoreError as error:
            return f"the rest could not be saved ({str(error).rstrip('.')})"
        return f"full result in {self.home / SPILL.folder / name}"


def keep(documents: Documents, tool: str, text: str) -> str:
    """Store the text, once per content, and return its name. It is durable when this returns, since the
    conversation names it."""
    data = sound(text).encode()
    name = f"{re.sub(r'[^A-Za-z0-9_-]', '_', tool)[:64]}-{digest(data)[:16]}.txt"
    documents.write(SPILL, name, data)
    return name


def cut(text: str, where: str, limit: int) -> str:
    """Return head and tail of the text with a note between them, together within the limit."""
    room = max(0, limit - len(_note(len(text), where)))
    head, tail = room - room // 2, room // 2
    note = _note(len(text) - room, where)
    return f"{text[:head]}{note}{text[len(text) - tail :]}"[:limit]


def _note(count: int, where: str) -> str:
    return f"\n… {count:,} characters left out; {where} …\n"
