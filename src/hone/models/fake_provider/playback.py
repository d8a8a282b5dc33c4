"""Encode replies and refusals in every format: as a stream of events or as one JSON body."""

import json
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import Any

import msgspec
from msgspec import Struct

from hone.core.messages import Part, Text, Thinking, ToolCall, digest
from hone.core.model import Finish, Reply, Usage
from hone.core.value import replace
from hone.models.fake_provider.response_playback import make_events, make_response
from hone.models.fake_provider.shapes import Format
from hone.models.scripted import words

_STEP = 12
"""Characters of a call's arguments in one event."""
_FINISH = {
    Finish.DONE: ("stop", "end_turn"),
    Finish.CALLS: ("tool_calls", "tool_use"),
    Finish.LENGTH: ("length", "max_tokens"),
    Finish.FILTERED: ("content_filter", "refusal"),
}
"""How a reply ends, in the words of OpenAI and of Anthropic."""


class Beat(Enum):
    """What an event carries. Kinds of content that a test can cut in the middle are distinct."""

    FRAME = auto()
    THINKING = auto()
    TEXT = auto()
    CALL = auto()


Event = tuple[Beat, bytes]


class Framing(Struct, frozen=True):
    """What surrounds a reply. `counted` asks OpenAI's format for the usage."""

    model: str
    counted: bool = True


def dump(value: Any) -> bytes:
    """Return compact JSON. Half a surrogate pair, which a model can produce, is sent as its escape."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def stream(format: Format, reply: Reply, framing: Framing) -> list[Event]:
    if format == "openai":
        return list(_chunks(reply, framing))
    if format == "responses":
        return list(_response_events(reply, framing))
    return [
        (beat, b"event: %s\ndata: %s\n\n" % (data["type"].encode(), dump(data)))
        for beat, data in _events(reply, framing)
    ]


def whole(format: Format, reply: Reply, framing: Framing) -> bytes:
    if format == "responses":
        return dump(make_response(reply, framing.model))
    return dump(_completion(reply, framing) if format == "openai" else _message(reply, framing))


_BEATS: Mapping[type[Part] | type[None], Beat] = {
    Text: Beat.TEXT,
    ToolCall: Beat.CALL,
    Thinking: Beat.THINKING,
}


def _response_events(reply: Reply, framing: Framing) -> Iterator[Event]:
    for number, (part, data) in enumerate(make_events(reply, framing.model)):
        kind, whole = data["type"].encode(), dump({**data, "sequence_number": number})
        beat = _BEATS.get(type(part), Beat.FRAME) if kind.endswith(b".delta") else Beat.FRAME
        yield beat, b"event: %s\ndata: %s\n\n" % (kind, whole)


def pieces(arguments: str) -> list[str]:
    return [arguments[at : at + _STEP] for at in range(0, len(arguments), _STEP)]


def _chunks(reply: Reply, framing: Framing) -> Iterator[Event]:
    head = dump(_opening("chat.completion.chunk", framing))[:-1]
    tail = b',"usage":null}\n\n' if framing.counted else b"}\n\n"
    for beat, delta in _deltas(reply):
        finish = None if delta else _FINISH[reply.finish][0]
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        yield beat, b'data: %s,"choices":[%s]%s' % (head, dump(choice), tail)
    if framing.counted:
        usage = dump(_openai_usage(reply.usage))
        yield Beat.FRAME, b'data: %s,"choices":[],"usage":%s}\n\n' % (head, usage)
    yield Beat.FRAME, b"data: [DONE]\n\n"


def _deltas(reply: Reply) -> Iterator[tuple[Beat, dict[str, Any]]]:
    yield Beat.FRAME, {"role": "assistant", "content": "", "refusal": None}
    parts = reply.message.parts
    for part in parts:
        if isinstance(part, Thinking):
            yield from ((Beat.THINKING, delta) for delta in _thoughts(part))
    yield from ((Beat.TEXT, {"content": word}) for word in words(reply.message.text))
    for index, call in enumerate(reply.message.calls):
        named = {"name": call.name, "arguments": ""}
        opening = {"index": index, "id": call.id, "type": "function", "function": named} | _extra(call)
        yield Beat.CALL, {"tool_calls": [opening]}
        for piece in pieces(call.arguments):
            yield Beat.CALL, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
    yield Beat.FRAME, {}


def _thoughts(part: Thinking) -> Iterator[dict[str, Any]]:
    """Split reasoning into pieces, as a router does: its text bit by bit, then the rest."""
    if not part.opaque:
        yield from ({"reasoning_content": word} for word in words(part.text))
        return
    for piece in json.loads(part.opaque):
        same = {"type": piece["type"], "index": piece["index"]}
        for word in words(piece.get("text", "")):
            yield {"reasoning": word, "reasoning_details": [{**same, "text": word}]}
        yield {"reasoning_details": [{name: value for name, value in piece.items() if name != "text"}]}


def _extra(call: ToolCall) -> dict[str, Any]:
    return {"extra_content": msgspec.Raw(call.opaque.encode())} if call.opaque else {}


def _completion(reply: Reply, framing: Framing) -> dict[str, Any]:
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        | _extra(call)
        for call in reply.message.calls
    ]
    sealed = [part.opaque for part in reply.message.parts if isinstance(part, Thinking) and part.opaque]
    thoughts = "".join(part.text for part in reply.message.parts if isinstance(part, Thinking))
    message: dict[str, Any] = {"role": "assistant", "content": reply.message.text or None, "refusal": None}
    message |= {"reasoning_content": thoughts} if thoughts and not sealed else {}
    message |= {"reasoning_details": msgspec.Raw(sealed[0].encode())} if sealed else {}
    message |= {"tool_calls": calls} if calls else {}
    finish = _FINISH[reply.finish][0]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    usage = _openai_usage(reply.usage)
    return {**_opening("chat.completion", framing), "choices": [choice], "usage": usage}


def _opening(kind: str, framing: Framing) -> dict[str, Any]:
    """Return the fields of every chunk. The id is constant, so that the same request gets the same bytes."""
    named = {"id": "chatcmpl-scripted-0", "object": kind, "created": 0, "model": framing.model}
    return {**named, "system_fingerprint": "scripted"}


def _openai_usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {
            "cached_tokens": usage.cached,
            "cache_write_tokens": usage.written,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }


def _events(reply: Reply, framing: Framing) -> Iterator[tuple[Beat, dict[str, Any]]]:
    opening = _message(replace(reply, message=replace(reply.message, parts=())), framing)
    opening |= {"stop_reason": None, "usage": opening["usage"] | {"output_tokens": 1}}
    yield Beat.FRAME, {"type": "message_start", "message": opening}
    yield Beat.FRAME, {"type": "ping"}
    for index, part in enumerate(reply.message.parts):
        block, deltas, beat = _block(part)
        yield beat, {"type": "content_block_start", "index": index, "content_block": block}
        for delta in deltas:
            yield beat, {"type": "content_block_delta", "index": index, "delta": delta}
        yield Beat.FRAME, {"type": "content_block_stop", "index": index}
    ending = {"stop_reason": _FINISH[reply.finish][1], "stop_sequence": None}
    yield Beat.FRAME, {"type": "message_delta", "delta": ending, "usage": _anthropic_usage(reply)}
    yield Beat.FRAME, {"type": "message_stop"}


def _block(part: Part) -> tuple[dict[str, Any], list[dict[str, Any]], Beat]:
    """Return how a part begins, and the pieces that follow."""
    match part:
        case Text(text):
            deltas = [{"type": "text_delta", "text": word} for word in words(text)]
            return {"type": "text", "text": ""}, deltas, Beat.TEXT
        case Thinking(sealed=sealed) if sealed:
            return {"type": "redacted_thinking", "data": sealed}, [], Beat.FRAME
        case Thinking(text, signature):
            deltas = [{"type": "thinking_delta", "thinking": word} for word in words(text)]
            deltas.append({"type": "signature_delta", "signature": signature or _seal(text)})
            return {"type": "thinking", "thinking": "", "signature": ""}, deltas, Beat.THINKING
        case ToolCall(identity, name, arguments):
            deltas = [{"type": "input_json_delta", "partial_json": bit} for bit in ("", *pieces(arguments))]
            return {"type": "tool_use", "id": identity, "name": name, "input": {}}, deltas, Beat.CALL
    raise ValueError(f"a model does not say {type(part).__name__}")


def _seal(text: str) -> str:
    """Sign all reasoning, as the provider does, whatever the script says."""
    return f"scripted-{digest(text.encode('utf-8', 'surrogatepass'))[:24]}"


def _message(reply: Reply, framing: Framing) -> dict[str, Any]:
    return {
        "id": "msg_scripted_0",
        "type": "message",
        "role": "assistant",
        "model": framing.model,
        "content": [_whole_block(part) for part in reply.message.parts],
        "stop_reason": _FINISH[reply.finish][1],
        "stop_sequence": None,
        "usage": _anthropic_usage(reply),
    }


def _whole_block(part: Part) -> dict[str, Any]:
    block, deltas, _ = _block(part)
    for delta in deltas:
        kind = delta["type"].removesuffix("_delta")
        if kind in block:
            block[kind] += delta[kind]
    if isinstance(part, ToolCall):
        block["input"] = _object(part.arguments)
    return block


def _object(arguments: str) -> Any:
    """Return arguments as an object. The format can hold arguments that are not JSON only as a string."""
    try:
        return msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return arguments


def _anthropic_usage(reply: Reply) -> dict[str, Any]:
    usage, longer = reply.usage, reply.extended
    return {
        "input_tokens": usage.input - usage.cached - usage.written,
        "cache_creation_input_tokens": usage.written,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.written - longer,
            "ephemeral_1h_input_tokens": longer,
        },
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.output,
    }
