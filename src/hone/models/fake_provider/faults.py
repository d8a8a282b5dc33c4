"""Named faults of a provider, with the bytes and headers that real providers send."""

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from msgspec import Struct

from hone.core.messages import Message, Role, Text, ToolCall
from hone.core.model import Finish, Reply
from hone.core.value import replace
from hone.models.fake_provider.playback import Beat, Event, dump
from hone.models.fake_provider.shapes import Format

_KINDS: Mapping[int, tuple[str, str | None, str]] = {
    400: ("invalid_request_error", None, "invalid_request_error"),
    401: ("invalid_request_error", "invalid_api_key", "authentication_error"),
    403: ("invalid_request_error", "permission_denied", "permission_error"),
    404: ("invalid_request_error", "model_not_found", "not_found_error"),
    405: ("invalid_request_error", "method_not_supported", "invalid_request_error"),
    408: ("timeout", "request_timeout", "timeout_error"),
    413: ("invalid_request_error", "request_too_large", "request_too_large"),
    429: ("requests", "rate_limit_exceeded", "rate_limit_error"),
    500: ("server_error", None, "api_error"),
    503: ("server_error", "service_unavailable", "api_error"),
    529: ("server_error", "overloaded", "overloaded_error"),
}
"""Status → type and code of OpenAI, type of Anthropic."""


Bend = Callable[[Format, list[Event]], list[Event]]


class Refusal(Struct, frozen=True):
    """A status and the body each provider gives with it."""

    status: int
    bodies: Mapping[Format, bytes]
    headers: Mapping[str, str] = {}
    media_type: str = "application/json"


class Absence(Struct, frozen=True):
    """No answer at all. A server cannot refuse a connection, since it would have to run: see `refusing`."""

    how: Literal["refused", "reset", "silent"]


class Twist(Struct, frozen=True):
    """A reply that goes wrong, in its content or on its way. If `torn`, the response has no end."""

    alter: Callable[[Reply], Reply] = lambda reply: reply
    bend: Bend | None = None
    torn: bool = False


Make = Callable[[Format, list[Event]], Iterator[bytes]]
"""Turns the format and the events of a normal reply into the pieces of a response, from its first byte on."""


class Raw(Struct, frozen=True):
    """Raw bytes, with `pace` seconds between the pieces. If it `hangs`, the connection stays open."""

    make: Make
    pace: float = 0.0
    hangs: bool = False


Fault = Refusal | Absence | Twist | Raw
Choice = Callable[[int], str | None]
"""Maps the number of a model call, from 0, to its fault."""


def error(format: Format, status: int, message: str, code: str | None = None) -> bytes:
    """Return an error in the provider's format."""
    type_, usual, kind = _KINDS[status]
    if format != "anthropic":
        shape = {"message": message, "type": type_, "param": None, "code": code or usual}
        return dump({"error": shape})
    return dump({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_scripted"})


def refuse(status: int, message: str, other: str = "", **headers: str) -> Refusal:
    """Return a refusal. `other` is Anthropic's wording, if it differs."""
    bodies: dict[Format, bytes] = {
        "openai": error("openai", status, message),
        "anthropic": error("anthropic", status, other or message),
        "responses": error("responses", status, message),
    }
    return Refusal(status, bodies, {name.replace("_", "-"): value for name, value in headers.items()})


def first(count: int, name: str) -> Choice:
    """Fail the first calls, then work."""
    return lambda number: name if number < count else None


@contextmanager
def refusing() -> Iterator[str]:
    """Yield an address where every connection is refused: it is bound, so that nobody else gets it, but
    nothing listens."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{door.getsockname()[1]}"


def _with_text(reply: Reply) -> Reply:
    text = reply.message.text
    long = (
        text if len(text.split()) > 3 else f"{text} Here is a sentence that is long enough to be cut.".strip()
    )
    return Reply(Message(Role.ASSISTANT, (Text(long),)), Finish.DONE, reply.usage)


def _with_call(reply: Reply) -> Reply:
    calls = [call for call in reply.message.calls if len(call.arguments) > 24]
    made = ToolCall("call_cut", "read_file", '{"path":"a/long/way/down/to/README.md"}')
    parts = tuple(part for part in reply.message.parts if not isinstance(part, ToolCall))
    return replace(
        reply, message=Message(Role.ASSISTANT, (*parts, *(calls or [made])[:1])), finish=Finish.CALLS
    )


def _shortened(reply: Reply, finish: Finish) -> Reply:
    text = _with_text(reply).message.text
    half = text[: len(text) // 2].rstrip()
    return replace(reply, message=Message(Role.ASSISTANT, (Text(half),)), finish=finish)


def _cut(beat: Beat, share: float) -> Bend:
    """Stop after this share of the events of this kind."""

    def bend(_: Format, events: list[Event]) -> list[Event]:
        places = [index for index, event in enumerate(events) if event[0] is beat]
        return events[: places[int(len(places) * share)]] if places else events[:1]

    return bend


def _nonsense(format: Format, events: list[Event]) -> list[Event]:
    line = b'data: {"choices":[{"delta":{"content":"half a\n\n'
    if format == "anthropic":
        line = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"del\n\n'
    return [*events[: len(events) // 2], (Beat.FRAME, line), *events[len(events) // 2 :]]


def _interjection(format: Format, events: list[Event]) -> list[Event]:
    """Send an error as an event, as providers do for trouble after the 200."""
    data = error(format, 529, "Overloaded")
    if format == "responses":
        shape = {"type": "error", "code": "server_error", "message": "Overloaded", "param": None}
        data = dump({**shape, "sequence_number": 0})
    line = b"data: %s\n\n" if format == "openai" else b"event: error\ndata: %s\n\n"
    return [*_cut(Beat.TEXT, 0.5)(format, events), (Beat.FRAME, line % data)]


_OVERFLOW: Mapping[Format, bytes] = {
    "openai": error(
        "openai",
        400,
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 204308 "
        "tokens. Please reduce the length of the messages.",
        "context_length_exceeded",
    ),
    "anthropic": error("anthropic", 400, "prompt is too long: 204308 tokens > 200000 maximum"),
    "responses": error(
        "responses",
        400,
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "context_length_exceeded",
    ),
}
_GATEWAY = (
    b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1>"
    b"</center>\r\n<hr><center>cloudflare</center>\r\n</body>\r\n</html>\r\n"
)
_LIMIT = "Rate limit reached for scripted on requests per min (RPM): Limit 3, Used 3, Requested 1."
_BUSY = "The server is overloaded or not ready yet."

FAULTS: Mapping[str, Fault] = {
    "400": refuse(400, "Invalid value for 'temperature'.", "temperature: range: -1..1"),
    "401": refuse(401, "Incorrect API key provided: sk-scripted.", "invalid x-api-key"),
    "403": refuse(
        403, "You are not allowed to sample from this model.", "Your API key may not use this model."
    ),
    "404-model": refuse(
        404, "The model `scripted` does not exist or you do not have access to it.", "model: scripted"
    ),
    "408": refuse(408, "Request timed out."),
    "429-after": refuse(429, _LIMIT, "This request would exceed your rate limit.", retry_after="1"),
    "429-plain": refuse(429, _LIMIT, "This request would exceed your rate limit."),
    "500": refuse(500, "The server had an error while processing your request.", "Internal server error"),
    "502-html": Refusal(
        502, {"openai": _GATEWAY, "anthropic": _GATEWAY, "responses": _GATEWAY}, media_type="text/html"
    ),
    "503": refuse(503, _BUSY, "Service unavailable"),
    "529": refuse(529, _BUSY, "Overloaded"),
    "refused": Absence("refused"),
    "reset": Absence("reset"),
    "half-stream": Twist(_with_text, _cut(Beat.TEXT, 0.5), torn=True),
    "cut-in-call": Twist(_with_call, _cut(Beat.CALL, 0.8)),
    "bad-json": Twist(_with_text, _nonsense),
    "empty": Twist(lambda reply: replace(reply, message=Message(Role.ASSISTANT, ()), finish=Finish.DONE)),
    "overflow": Refusal(400, _OVERFLOW),
    "length": Twist(lambda reply: _shortened(reply, Finish.LENGTH)),
    "filter": Twist(lambda reply: _shortened(reply, Finish.FILTERED)),
    "silent": Absence("silent"),
    "error-event": Twist(_with_text, _interjection),
}
"""The twenty of the plan and silence, and an error that arrives within the stream."""
