"""Tool calls as an editor shows them: a title, a kind, the files they touch, and what they change."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from hone.cli.render import describe
from hone.core.messages import ToolCall
from hone.features.acp.editor import Update
from hone.files.opening import find_path
from hone.tools.todo import TodoItem, read_items

KINDS: Mapping[str, str] = {
    "read_file": "read",
    "skill_view": "read",
    "editor_read_file": "read",
    "write_file": "edit",
    "patch": "edit",
    "editor_write_file": "edit",
    "search_files": "search",
    "session_search": "search",
    "web_search": "search",
    "skills_list": "search",
    "terminal": "execute",
    "process": "execute",
    "execute_code": "execute",
    "editor_terminal": "execute",
    "web_fetch": "fetch",
    "todo": "think",
}
WRITING = ("write_file", "patch", "editor_write_file")
STATES = {"open": "pending", "doing": "in_progress", "done": "completed"}
LARGEST = 1_000_000
"""The most bytes of a file to show as a diff."""
SMALL, AROUND = 20_000, 3
"""The most characters of both sides of a diff to send in full, and the lines around the change of a larger
one: some clients read no lines of more than 64 kB."""
LONGEST_INPUT = 10_000
"""The most characters of arguments to pass on unchanged."""


class FileBefore(Struct, frozen=True):
    """A file of the working folder when a call began; `text` is None if there was none."""

    path: Path
    text: str | None


def read_arguments(call: ToolCall) -> Mapping[str, Any]:
    """Return the arguments of a call; none unless they are an object."""
    try:
        found = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def start_call(call: ToolCall, folder: Path, content: tuple[Update, ...] = ()) -> Update:
    """Return the update for the start of a call."""
    return {
        "sessionUpdate": "tool_call",
        "toolCallId": call.id,
        "title": describe(call),
        "kind": KINDS.get(call.name, "other"),
        "status": "in_progress",
        "locations": find_locations(call, folder),
        "content": list(content),
        **_raw_input(call),
    }


def end_call(call: ToolCall, text: str, *, failed: bool, content: tuple[Update, ...] = ()) -> Update:
    """Return the update for the end of a call: its diff, and what the model reads."""
    return {
        "sessionUpdate": "tool_call_update",
        "toolCallId": call.id,
        "status": "failed" if failed else "completed",
        "content": [*content, text_content(text)],
    }


def text_content(text: str) -> Update:
    return {"type": "content", "content": {"type": "text", "text": text}}


def find_locations(call: ToolCall, folder: Path) -> list[Update]:
    """Return the file that a call names, with the line it begins at."""
    arguments = read_arguments(call)
    path, line = arguments.get("path"), arguments.get("offset")
    if KINDS.get(call.name) not in ("read", "edit") or not isinstance(path, str) or "\0" in path:
        return []
    place = {"path": str(folder / os.path.expanduser(path))}
    return [{**place, "line": line} if isinstance(line, int) and line > 0 else place]


def _raw_input(call: ToolCall) -> Update:
    return {"rawInput": read_arguments(call)} if len(call.arguments) <= LONGEST_INPUT else {}


def read_before(call: ToolCall, folder: Path) -> FileBefore | None:
    """Return the file that a call is about to change, if it is a text in the working folder."""
    path = read_arguments(call).get("path")
    if call.name not in WRITING or not isinstance(path, str):
        return None
    try:
        with find_path(folder, path) as place:
            if not place.path.is_relative_to(folder):
                return None
            return FileBefore(place.path, place.read(LARGEST).decode() if place.exists else None)
    except (OSError, ValueError):
        return None


def propose(call: ToolCall, before: FileBefore | None) -> tuple[Update, ...]:
    """Return the diff that a call requests; none if it is unknown here."""
    if before is None:
        return ()
    arguments = read_arguments(call)
    new = arguments.get("content") if call.name != "patch" else _patch(arguments, before.text)
    return (diff(before, new),) if isinstance(new, str) and len(new) <= LARGEST else ()


def _patch(arguments: Mapping[str, Any], text: str | None) -> str | None:
    find, new = arguments.get("find"), arguments.get("replace")
    if not text or not isinstance(find, str) or not isinstance(new, str) or not find or find not in text:
        return None
    return text.replace(find, new, -1 if arguments.get("all") else 1)


def read_change(call: ToolCall, before: FileBefore | None, folder: Path) -> tuple[Update, ...]:
    """Return what a successful call did to its file, as the file is now."""
    after = read_before(call, folder) if before else None
    changed = before and after and after.text is not None and after.text != before.text
    return (diff(before, after.text),) if before and after and changed and after.text is not None else ()


def find_change(call: ToolCall, result: str, folder: Path) -> tuple[Update, ...]:
    """Return what an old call did, as far as its arguments and its result tell."""
    arguments = read_arguments(call)
    path, old, new = arguments.get("path"), arguments.get("find"), arguments.get("replace")
    if call.name == "write_file" and result.startswith("Created"):
        old, new = None, arguments.get("content")
    elif call.name != "patch" or not isinstance(old, str):
        return ()
    if not isinstance(path, str) or not isinstance(new, str):
        return ()
    return (diff(FileBefore(folder / os.path.expanduser(path), old), new),)


def diff(before: FileBefore, new: str) -> Update:
    """Return a change as an editor shows it; of a large file, the lines that differ and a few around them."""
    if before.text is None:
        return {"type": "diff", "path": str(before.path), "newText": new}
    old, new = (before.text, new) if len(before.text) + len(new) <= SMALL else cut_out(before.text, new)
    return {"type": "diff", "path": str(before.path), "oldText": old, "newText": new}


def cut_out(old: str, new: str) -> tuple[str, str]:
    """Return the difference between two texts, in whole lines."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    shortest = min(len(before), len(after))
    head = next((at for at in range(shortest) if before[at] != after[at]), shortest)
    rest = shortest - head
    tail = next((at for at in range(rest) if before[-1 - at] != after[-1 - at]), rest)
    start, end = max(0, head - AROUND), max(0, tail - AROUND)
    return "".join(before[start : len(before) - end]), "".join(after[start : len(after) - end])


def plan_update(call: ToolCall) -> Update | None:
    """Return the plan that a call of the todo tool wrote; None if it only read."""
    items = read_items(call.arguments) if call.name == "todo" else None
    return None if items is None else make_plan(items)


def make_plan(items: tuple[TodoItem, ...]) -> Update:
    entries = [{"content": item.text, "priority": "medium", "status": STATES[item.state]} for item in items]
    return {"sessionUpdate": "plan", "entries": entries}
