"""Export a stored conversation as JSON or Markdown. All text passes `clean`, which removes secrets."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec.structs import asdict

from hone.core.ids import SessionId
from hone.core.messages import (
    Attachment,
    Image,
    Part,
    Reminder,
    SystemNote,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    canonical,
)
from hone.core.overview import MessageWindow
from hone.core.ports import Header, StoredSession
from hone.core.regex import regex
from hone.core.transcript import Node

Clean = Callable[[str], str]

_KINDS: dict[type[Part], str] = {
    Text: "text",
    Image: "image",
    Thinking: "thinking",
    ToolCall: "call",
    ToolResult: "result",
    SystemNote: "note",
    Reminder: "reminder",
    Attachment: "attachment",
}
_MARKUP = regex(r"([\\`*_{}\[\]<>()#+\-.!|~&])")


def to_json(stored: StoredSession, clean: Clean) -> str:
    """Return one object: the header and the messages, each with its number and its place in the hash
    chain."""
    return json.dumps(to_data(stored, clean), indent=2) + "\n"


def to_data(stored: StoredSession, clean: Clean) -> dict[str, Any]:
    nodes = stored.transcript.nodes
    window = MessageWindow(stored.header, stored.prefix.model, stored.prefix.digest, len(nodes), 1, nodes)
    return window_to_data(window, clean)


def window_to_data(window: MessageWindow, clean: Clean) -> dict[str, Any]:
    """Return the header, and the messages of the window with their numbers."""
    header = window.header
    return {
        "session": header.id,
        "title": clean(header.title),
        "origin": header.origin.value,
        "created": header.created.isoformat(),
        "folder": clean(header.folder),
        "parent": header.parent,
        "shared": header.shared,
        "model": window.model,
        "prefix": window.prefix,
        "messages": [_message(number, node, clean) for number, node in enumerate(window.nodes, window.first)],
    }


def to_markdown(stored: StoredSession, clean: Clean) -> str:
    """Return Markdown for people. Messages are in fences that they cannot close, so that none looks like
    structure."""
    header = stored.header
    rows = [
        f"# {_escaped(clean(header.title)) or f'Session {header.id}'}",
        "",
        f"- session: {header.id}",
        f"- model: {_escaped(stored.prefix.model)}",
        f"- created: {header.created.isoformat()}",
        f"- folder: {_escaped(clean(header.folder))}",
        *([f"- parent: {header.parent}, first {header.shared} messages shared"] if header.parent else []),
    ]
    for number, node in _numbered(stored):
        source = f"{node.at.isoformat(timespec='seconds')} · {node.trust.name.lower()}"
        if node.message.template:
            source += f" · example from template {_escaped(node.message.template)}"
        rows += ["", f"## {number}. {node.message.role.capitalize()}", "", source]
        for part in node.message.parts:
            rows += ["", *_section(part, clean)]
    return "\n".join(rows) + "\n"


def _numbered(stored: StoredSession) -> Iterator[tuple[int, Node]]:
    return enumerate(stored.transcript.nodes, 1)


def _message(number: int, node: Node, clean: Clean) -> dict[str, Any]:
    return {
        "number": number,
        "role": node.message.role.value,
        "trust": node.trust.name.lower(),
        "at": node.at.isoformat(),
        "hash": node.hash,
        **({"template": node.message.template} if node.message.template else {}),
        "parts": [_part(part, clean) for part in node.message.parts],
    }


def _part(part: Part, clean: Clean) -> dict[str, Any]:
    values = {name: value for name, value in asdict(part).items() if name not in ("opaque", "origin")}
    if isinstance(part, ToolCall):
        values["arguments"] = cleaned(part.arguments, clean)
    elif not isinstance(part, Image):
        values = {name: clean(value) if isinstance(value, str) else value for name, value in values.items()}
    return {"kind": _KINDS[type(part)]} | values


def _section(part: Part, clean: Clean) -> list[str]:
    match part:
        case Text(text):
            return [_fenced(clean(text))]
        case Image(media_type, data):
            return [f"(an image, {_escaped(media_type)}, {len(data) * 3 // 4:,} bytes)"]
        case Thinking(text):
            return ["Thinking:", "", _fenced(clean(text) or "(not shown by the provider)")]
        case ToolCall(_, name, arguments):
            return [f"Calls {_escaped(name)}:", "", _fenced(cleaned(arguments, clean))]
        case ToolResult(_, text, failed):
            return ["Failed:" if failed else "Result:", "", _fenced(clean(text))]
        case SystemNote(text):
            return ["Hone told the model:", "", _fenced(clean(text))] if text else []
        case Reminder(text, label):
            return [f"From memory ({_escaped(label)}):", "", _fenced(clean(text))]
        case Attachment(text, name, label):
            return [f"Attached: {_escaped(clean(name))} ({_escaped(label)}):", "", _fenced(clean(text))]


def cleaned(arguments: str, clean: Clean) -> str:
    """Clean a text, as a whole where keys say what their values are, and value by value where no escapes
    interfere."""
    text = clean(arguments)
    try:
        value = json.loads(text)
        inner = clean_within(value, clean)
    except (ValueError, RecursionError):
        return text
    return text if inner == value else canonical(inner)


def clean_within(value: Any, clean: Clean) -> Any:
    """Clean every text in a JSON value, keys included."""
    match value:
        case str():
            return clean(value)
        case list():
            return [clean_within(each, clean) for each in value]
        case dict():
            return {clean(key): clean_within(each, clean) for key, each in value.items()}
    return value


def _fenced(text: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _escaped(text: str) -> str:
    """Escape words for one line, so that they have no special meaning."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def lineage(headers: Mapping[SessionId, Header], header: Header) -> list[Header]:
    """Return the session, its parent, and so on up. A parent may be gone, and ids can form a cycle."""
    line, seen = [header], {header.id}
    while (parent := headers.get(line[-1].parent or SessionId(""))) and parent.id not in seen:
        seen.add(parent.id)
        line.append(parent)
    return line
