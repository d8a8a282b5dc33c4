"""Ask the owner what a server wants to know during a call. No mode and nobody else answers."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from hone.core.permissions import Answer, Mode, Question
from hone.core.tool_context import ToolContext
from hone.core.visible import one_line, visible
from hone.features.mcp.client.arguments import find_fault

MOST_FIELDS = 10
DECLINED: dict[str, Any] = {"action": "decline"}
CANCELLED: dict[str, Any] = {"action": "cancel"}
_NUMBERS: Mapping[str, Callable[[str], Any]] = {"integer": int, "number": float}

Put = Callable[[Question], Awaitable[Answer]]


async def elicit(params: Mapping[str, Any], server: str, context: ToolContext) -> dict[str, Any]:
    """Return the result of elicitation/create: accepted with values, declined, or dismissed if nobody can be
    asked. The owner's input goes to the server, so each value is asked for by name."""
    if context.permissions.mode is Mode.FULL or not context.agent.permit.attended:
        return CANCELLED
    return await ask_owner(params, server, context.ask)


async def ask_owner(params: Mapping[str, Any], server: str, put: Put) -> dict[str, Any]:
    message = visible(str(params.get("message", "")))[:2_000]
    if params.get("mode") == "url":
        detail = f"{message}\n{visible(str(params.get('url', '')))[:2_000]}"
        answer = await put(
            Question(f"The MCP server {server} wants you to open this address. Agree?", detail, "")
        )
        return {"action": "accept"} if answer.is_yes else DECLINED
    schema = params.get("requestedSchema")
    fields = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(schema, Mapping) or not isinstance(fields, Mapping) or len(fields) > MOST_FIELDS:
        return CANCELLED
    required = schema.get("required")
    names = frozenset(required) if isinstance(required, list) else frozenset()
    question = f"The MCP server {server} asks you something. Answer it?"
    if not (await put(Question(question, f"{message}\n{_list(fields)}".rstrip(), ""))).is_yes:
        return DECLINED
    content: dict[str, Any] = {}
    for name, field in fields.items():
        given, value = await _ask(name, field if isinstance(field, Mapping) else {}, server, put)
        if given:
            content[name] = value
        elif name in names:
            return DECLINED
    if find_fault(content, schema):
        return DECLINED
    return {"action": "accept", "content": content}


def _list(fields: Mapping[str, Any]) -> str:
    return "\n".join(f"- {_title(name, field)}" for name, field in fields.items())


def _title(name: str, field: Any) -> str:
    known = field if isinstance(field, Mapping) else {}
    about = known.get("description") or known.get("title") or ""
    return one_line(f"{name}: {about}" if about else name, 200)


async def _ask(name: str, field: Mapping[str, Any], server: str, put: Put) -> tuple[bool, Any]:
    """Return whether the owner provided a value, and the value. A default needs no typing."""
    if "default" in field:
        return True, field["default"]
    title = _title(name, field)
    if field.get("type") == "boolean":
        answer = await put(Question(f"The MCP server {server} asks: yes or no?", title, ""))
        return True, answer.is_yes
    choices = _choices(field)
    detail = f"{title}\nOne of: {', '.join(choices)}" if choices else title
    typed = await put(Question(f"Tell the MCP server {server} this?", detail, "", wanted=one_line(name, 40)))
    if not typed.is_yes or not typed.reason:
        return False, None
    return _read(typed.reason, field)


def _choices(field: Mapping[str, Any]) -> list[str]:
    values = field.get("enum")
    if not isinstance(values, list):
        named = field.get("oneOf")
        values = (
            [each.get("const") for each in named if isinstance(each, Mapping)]
            if isinstance(named, list)
            else []
        )
    return [one_line(str(each), 60) for each in values[:50]]


def _read(text: str, field: Mapping[str, Any]) -> tuple[bool, Any]:
    """Return the input as a value of the field's type, if it is one."""
    kind = str(field.get("type"))
    try:
        value: Any = _NUMBERS[kind](text) if kind in _NUMBERS else text
    except ValueError:
        return False, None
    return True, [each.strip() for each in text.split(",")] if kind == "array" else value
