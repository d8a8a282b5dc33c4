"""The task list. It is stored in the history: the last successful call defines the list."""

from typing import Annotated, Literal

import msgspec
from msgspec import Struct

from hone.core.messages import ToolCall
from hone.core.tool import Outcome, ToolKind
from hone.core.tool_context import ToolContext
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.tools.define import tool

NAME = "todo"
MARKS = {"open": " ", "doing": "~", "done": "x"}


class TodoItem(Struct, frozen=True):
    text: str
    state: Literal["open", "doing", "done"] = "open"


Written = dict[str, tuple[TodoItem, ...] | None]


def todos(transcript: Transcript) -> tuple[TodoItem, ...]:
    """Return the list as of the last result in the transcript."""
    items: tuple[TodoItem, ...] = ()
    pending: dict[str, ToolCall] = {}
    for message in transcript:
        if message.template:
            continue
        pending.update((call.id, call) for call in message.calls)
        result = message.result
        call = pending.pop(result.call, None) if result else None
        if result and call and call.name == NAME and not result.failed:
            written = read_items(call.arguments)
            items = items if written is None else written
    return items


@tool(effects=frozenset(), kind=ToolKind.OTHER)
def todo(
    context: ToolContext, items: Annotated[list[TodoItem] | None, "the whole new list"] = None
) -> Outcome:
    """Plan work with several steps. With items, replace the task list; without, read it."""
    listed = todos(context.transcript) if items is None else items
    rows = [f"[{MARKS[item.state]}] {' '.join(item.text.split())}" for item in listed]
    return Outcome("\n".join(rows) or "The list is empty.", trust=Trust.AGENT)


def read_items(arguments: str) -> tuple[TodoItem, ...] | None:
    """Return the list that a call wrote; None if the call only read."""
    try:
        written = msgspec.json.decode(arguments.strip() or "{}", type=Written, strict=False)
    except (ValueError, RecursionError):
        return None
    return written.get("items")
