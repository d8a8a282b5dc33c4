"""Messages and their parts, and the one canonical form in which they are hashed and stored."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Image:
    media_type: str
    data: str
    """Base64, as it goes over the wire."""


@dataclass(frozen=True, slots=True)
class Thinking:
    """The model's reasoning. `signature` is the provider's seal; `sealed` is reasoning it shows to nobody."""

    text: str
    signature: str = ""
    sealed: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """`arguments` is the text of one JSON object, in the bytes the model chose."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    call: str
    text: str
    failed: bool = False


Part = Text | Image | Thinking | ToolCall | ToolResult

_PARTS: Mapping[str, type[Part]] = {
    "text": Text,
    "image": Image,
    "thinking": Thinking,
    "call": ToolCall,
    "result": ToolResult,
}
_KINDS = {part: kind for kind, part in _PARTS.items()}


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def result(self) -> ToolResult | None:
        return next((part for part in self.parts if isinstance(part, ToolResult)), None)


def user(*parts: str | Part) -> Message:
    return Message(Role.USER, _parts(parts))


def assistant(*parts: str | Part) -> Message:
    return Message(Role.ASSISTANT, _parts(parts))


def answer(call: ToolCall, text: str, *, failed: bool = False) -> Message:
    return Message(Role.TOOL, (ToolResult(call.id, text, failed),))


def _parts(parts: Sequence[str | Part]) -> tuple[Part, ...]:
    return tuple(Text(part) if isinstance(part, str) else part for part in parts)


def sound(text: str) -> str:
    """The same text without lone surrogates, which no file, hash or provider could take."""
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def canonical(value: Any) -> str:
    """JSON with one spelling per value: sorted keys, no white space, letters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def encode(message: Message) -> bytes:
    parts = [
        {"kind": _KINDS[type(part)]} | {name: getattr(part, name) for name in part.__slots__}
        for part in message.parts
    ]
    return canonical({"role": message.role, "parts": parts}).encode()


def decode(data: bytes) -> Message:
    raw = json.loads(data)
    parts = [_PARTS[part.pop("kind")](**part) for part in raw["parts"]]
    return Message(Role(raw["role"]), tuple(parts))
