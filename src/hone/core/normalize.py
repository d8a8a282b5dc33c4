"""Normalize a model's reply, so that every provider accepts the history that contains it."""

import json
import re
from collections.abc import Collection, Mapping

from msgspec import Struct

from hone.core.messages import Message, Part, Text, Thinking, ToolCall, sound
from hone.core.regex import regex
from hone.core.value import replace

_NAME = regex(r"[A-Za-z0-9_-]{1,64}")
_ID = regex(r"[A-Za-z0-9_-]{1,40}")
_ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False)
_EXCERPT = 500
_DEPTH = 100
"""JSON readers give up at 128 levels or more."""


class NormalizedReply(Struct, frozen=True):
    """`faults` says, by call id, why a call cannot be run as the model wrote it."""

    message: Message
    faults: Mapping[str, str]


def normalize(message: Message, taken: Collection[str], number: int) -> NormalizedReply:
    """Make ids unique among `taken`, and names and arguments well-formed. Each correction is a fault."""
    parts: list[Part] = []
    used = set(taken)
    faults: dict[str, str] = {}
    for index, part in enumerate(message.parts):
        if isinstance(part, ToolCall):
            call, fault = _normalize_call(part, used, f"call_{number}_{index}")
            used.add(call.id)
            parts.append(call)
            if fault:
                faults[call.id] = fault
        elif isinstance(part, Text):
            parts += [replace(part, text=sound(part.text))] if part.text else []
        elif isinstance(part, Thinking):
            kept = part.text or part.sealed or part.opaque
            parts += [replace(part, text=sound(part.text))] if kept else []
        else:
            parts.append(part)
    return NormalizedReply(Message(message.role, tuple(parts)), faults)


def _normalize_call(call: ToolCall, used: Collection[str], fallback: str) -> tuple[ToolCall, str]:
    identity = call.id if _ID.fullmatch(call.id) and call.id not in used else fallback
    while identity in used:
        identity += "_"
    name = (
        call.name
        if _NAME.fullmatch(call.name)
        else re.sub(r"[^A-Za-z0-9_-]", "_", call.name)[:64] or "unnamed"
    )
    fault = "" if name == call.name else f"there is no tool named {sound(call.name)[:64]!r}"
    wrong = _unusable(call.arguments)
    if wrong:
        excerpt = sound(call.arguments)[:_EXCERPT]
        fault = fault or f"the arguments are {wrong}; send one JSON object. They were: {excerpt}"
    arguments = "{}" if wrong or not call.arguments.strip() else call.arguments
    return replace(call, id=identity, name=name, arguments=arguments), fault


def _unusable(arguments: str) -> str:
    """Return what is wrong with the text of a call's arguments, or nothing."""
    if not arguments.strip():
        return ""
    try:
        value = json.loads(arguments)
        _ENCODER.encode(value).encode()
    except UnicodeEncodeError:
        return "not valid Unicode"
    except RecursionError:
        return "nested too deeply"
    except ValueError as error:
        return f"not valid JSON ({error})"
    if _is_deep(value):
        return "nested too deeply"
    return "" if isinstance(value, dict) else "JSON, but not an object"


def _is_deep(value: object) -> bool:
    level = [value]
    for _ in range(_DEPTH):
        if not level:
            return False
        lists = [list(each.values()) if isinstance(each, dict) else each for each in level]
        level = [inner for each in lists if isinstance(each, list) for inner in each]
    return bool(level)
