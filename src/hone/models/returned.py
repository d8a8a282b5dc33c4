"""Take what a provider wants back from a chat completion, and put it into the next request.

Providers differ. Some want the reasoning back as text, some as a list of its pieces, some a signature on each
call. `Endpoint.returns` says which; everything goes back to its own origin only.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from hone.core.messages import Message, Thinking, ToolCall
from hone.core.opaque import find_returned
from hone.core.value import replace
from hone.models.endpoint import Endpoint

_GROWING = ("text", "summary")
_WEIGHED = (*_GROWING, "data", "signature")
"""Fields that arrive in pieces. All others arrive whole."""


def return_to(endpoint: Endpoint, message: Message, wire: dict[str, Any]) -> None:
    """Add to a reply, in its wire form, what goes back with it."""
    put = _PUTS.get(endpoint.returns)
    if put:
        put(wire, message, endpoint.origin)


def _put_text(wire: dict[str, Any], message: Message, origin: str) -> None:
    """Add the text of the reasoning. Every reply must have the field, even one from another model."""
    thoughts = (part for part in message.parts if isinstance(part, Thinking) and part.origin == origin)
    wire["reasoning_content"] = "".join(part.text for part in thoughts)


def _put_details(wire: dict[str, Any], message: Message, origin: str) -> None:
    for part in message.parts:
        raw = find_returned(part, origin) if isinstance(part, Thinking) else None
        if raw:
            wire["reasoning_details"] = raw


def _put_signatures(wire: dict[str, Any], message: Message, origin: str) -> None:
    """Add signatures to the calls. The first call of a reply must be signed; the provider defines a value for
    calls that another model made."""
    for index, call in enumerate(message.calls):
        raw = find_returned(call, origin)
        if raw or not index:
            wire["tool_calls"][index]["extra_content"] = raw or _UNSIGNED


_UNSIGNED = {"google": {"thought_signature": "skip_thought_signature_validator"}}
_PUTS: Mapping[str, Callable[[dict[str, Any], Message, str], None]] = {
    "reasoning_content": _put_text,
    "reasoning_details": _put_details,
    "thought_signature": _put_signatures,
}


class KeptParts:
    """The parts of one reply that its provider wants back."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._details: list[dict[str, Any]] = []
        self._signatures: dict[int, str] = {}

    def add_details(self, deltas: Iterable[dict[str, Any]]) -> tuple[int, int]:
        """Add pieces of reasoning; those with one type and index belong together. Return how many of them
        began a new part, and the size of their texts without the JSON around each word."""
        before, size = len(self._details), 0
        for delta in deltas:
            size += sum(len(delta[name]) for name in _WEIGHED if isinstance(delta.get(name), str))
            known = next((piece for piece in self._details if _belongs(delta, piece)), None)
            if known is None:
                self._details.append(dict(delta))
            else:
                _grow(known, delta)
        return len(self._details) - before, size

    def add_extra(self, index: int, extra: msgspec.Raw) -> None:
        """Keep what came with the call of this index, if it holds a signature, byte for byte."""
        try:
            if msgspec.json.decode(extra, type=_Extra).google.thought_signature:
                self._signatures[index] = bytes(extra).decode()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return

    def mark_thinking(self, text: str) -> Thinking | None:
        """Return the reasoning with the parts to send back; None if there is none."""
        origin, returns = self._endpoint.origin, self._endpoint.returns
        if self._details and returns == "reasoning_details":
            return Thinking(text, opaque=msgspec.json.encode(self._details).decode(), origin=origin)
        if not text:
            return None
        return Thinking(text, origin=origin if returns == "reasoning_content" else "")

    def mark_call(self, index: int, call: ToolCall) -> ToolCall:
        opaque = self._signatures.get(index, "")
        if not opaque or self._endpoint.returns != "thought_signature":
            return call
        return replace(call, opaque=opaque, origin=self._endpoint.origin)


class _Google(Struct):
    thought_signature: str


class _Extra(Struct):
    google: _Google


def _belongs(delta: dict[str, Any], piece: dict[str, Any]) -> bool:
    if (delta.get("type"), delta.get("index")) != (piece.get("type"), piece.get("index")):
        return False
    return any(name in delta or name in piece for name in _GROWING) or delta.get("id") == piece.get("id")


def _grow(piece: dict[str, Any], delta: dict[str, Any]) -> None:
    for name, value in delta.items():
        if name in _GROWING and isinstance(value, str) and isinstance(piece.get(name), str):
            piece[name] += value
        elif value is not None:
            piece[name] = value
