"""Write a server's output as text for the model. All of it is the server's."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from hone.core.messages import sound

MOST = 2_000_000
"""The most characters of one result to read; a later step caps what the model gets."""


def render_result(result: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the text of a tool's result, and whether the server says that the call failed."""
    content = result.get("content")
    blocks = [*map(render_block, content)] if isinstance(content, list) else []
    structured = result.get("structuredContent")
    if not any(blocks) and structured is not None:
        blocks = [json.dumps(structured, ensure_ascii=False)]
    text = "\n".join(filter(None, blocks))[:MOST]
    return sound(text) or "(The server returned nothing.)", result.get("isError") is True


def render_block(block: object) -> str:
    """Return a piece of content as text; binary data is named and left out."""
    if not isinstance(block, Mapping):
        return ""
    match block.get("type"):
        case "text":
            return str(block.get("text", ""))
        case "image" | "audio" as kind:
            size = len(str(block.get("data", ""))) * 3 // 4
            return f"[{kind}, {str(block.get('mimeType'))[:60]}, about {size:,} bytes, not shown]"
        case "resource_link":
            return f"[link to {str(block.get('name', ''))[:200]}: {str(block.get('uri', ''))[:500]}]"
        case "resource":
            return "\n".join(render_resource(block.get("resource")))
    return f"[content of type {str(block.get('type'))[:40]!r}, not shown]"


def render_resource(resource: object) -> Iterator[str]:
    """Yield the lines of a resource: its address, and its text."""
    if isinstance(resource, Mapping):
        yield f"[{str(resource.get('uri', ''))[:500]}]"
        if isinstance(text := resource.get("text"), str):
            yield text[:MOST]
        elif isinstance(data := resource.get("blob"), str):
            yield f"[{str(resource.get('mimeType'))[:60]}, about {len(data) * 3 // 4:,} bytes, not shown]"


def render_prompt(result: Mapping[str, Any]) -> str:
    """Return the messages of a prompt as one text."""
    messages = result.get("messages")
    said = []
    for each in messages if isinstance(messages, list) else ():
        if isinstance(each, Mapping):
            who = "" if each.get("role") == "user" else f"{str(each.get('role'))[:20]}: "
            said.append(who + render_block(each.get("content")))
    return sound("\n\n".join(filter(None, said)))[:MOST]
