"""Encode replies in the Responses format: as the events of a stream or as one response."""

from collections.abc import Iterator
from typing import Any

import msgspec

from hone.core.messages import Part, Text, Thinking, ToolCall
from hone.core.model import Finish, Reply, Usage
from hone.models.scripted import words

_WHY = {Finish.LENGTH: "max_output_tokens", Finish.FILTERED: "content_filter"}
_STEP = 12
"""Characters of a call's arguments in one event."""

Data = dict[str, Any]


def make_response(reply: Reply, model: str, status: str = "") -> Data:
    """Return the whole response; with a status, the one that opens a stream."""
    why = _WHY.get(reply.finish)
    parts = enumerate(reply.message.parts)
    return {
        "id": "resp_scripted_0",
        "object": "response",
        "created_at": 0,
        "status": status or ("incomplete" if why else "completed"),
        "error": None,
        "incomplete_details": {"reason": why} if why and not status else None,
        "instructions": None,
        "metadata": {},
        "model": model,
        "output": [] if status else [make_item(index, part) for index, part in parts],
        "parallel_tool_calls": True,
        "store": False,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None if status else _usage(reply.usage),
    }


def _usage(usage: Usage) -> Data:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.written},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input + usage.output,
    }


def make_item(index: int, part: Part) -> Any:
    match part:
        case Text(text, opaque):
            words = {"type": "output_text", "text": text, "annotations": []}
            item = {"id": f"msg_{index}", "type": "message", "role": "assistant", "status": "completed"}
            phase = {"phase": msgspec.Raw(opaque.encode())} if opaque else {}
            return {**item, "content": [words], **phase}
        case Thinking(opaque=opaque) if opaque:
            return msgspec.Raw(opaque.encode())
        case Thinking(text):
            return {"id": f"rs_{index}", "type": "reasoning", "summary": _summary(text)}
        case ToolCall(identity, name, arguments):
            item = {"id": f"fc_{index}", "type": "function_call", "status": "completed"}
            return {**item, "call_id": identity, "name": name, "arguments": arguments}
    raise ValueError(f"a model does not say {type(part).__name__}")


def _summary(text: str) -> list[Data]:
    return [{"type": "summary_text", "text": text}] if text else []


def make_events(reply: Reply, model: str) -> Iterator[tuple[Part | None, Data]]:
    """Events in their order, each with the part that it is about."""
    opening = make_response(reply, model, "in_progress")
    yield None, {"type": "response.created", "response": opening}
    yield None, {"type": "response.in_progress", "response": opening}
    for index, part in enumerate(reply.message.parts):
        for data in _part_events(index, part):
            yield part, {**data, "output_index": index}
        done = {"type": "response.output_item.done", "item": make_item(index, part)}
        yield part, {**done, "output_index": index}
    whole = make_response(reply, model)
    yield None, {"type": f"response.{whole['status']}", "response": whole}


def _part_events(index: int, part: Part) -> Iterator[Data]:
    match part:
        case Text(text):
            yield from _text_events(f"msg_{index}", index, text)
        case ToolCall(identity, name, arguments):
            opening = {**make_item(index, ToolCall(identity, name, "")), "status": "in_progress"}
            yield {"type": "response.output_item.added", "item": opening}
            place = {"item_id": f"fc_{index}"}
            for at in range(0, len(arguments), _STEP):
                delta = {"delta": arguments[at : at + _STEP]}
                yield {"type": "response.function_call_arguments.delta", **place, **delta}
            done = {"name": name, "arguments": arguments}
            yield {"type": "response.function_call_arguments.done", **place, **done}
        case Thinking(text):
            opening = {"id": f"rs_{index}", "type": "reasoning", "summary": []}
            yield {"type": "response.output_item.added", "item": opening}
            yield from _summary_events(f"rs_{index}", text) if text else ()


def _text_events(identity: str, index: int, text: str) -> Iterator[Data]:
    opening = {**make_item(index, Text("")), "status": "in_progress", "content": []}
    yield {"type": "response.output_item.added", "item": opening}
    place = {"item_id": identity, "content_index": 0}
    empty = {"type": "output_text", "text": "", "annotations": []}
    yield {"type": "response.content_part.added", **place, "part": empty}
    for word in words(text):
        yield {"type": "response.output_text.delta", **place, "delta": word, "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": text, "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": {**empty, "text": text}}


def _summary_events(identity: str, text: str) -> Iterator[Data]:
    place = {"item_id": identity, "summary_index": 0}
    kind = "response.reasoning_summary"
    yield {"type": f"{kind}_part.added", **place, "part": {"type": "summary_text", "text": ""}}
    for word in words(text):
        yield {"type": f"{kind}_text.delta", **place, "delta": word}
    yield {"type": f"{kind}_text.done", **place, "text": text}
    yield {"type": f"{kind}_part.done", **place, "part": {"type": "summary_text", "text": text}}
