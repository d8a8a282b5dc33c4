"""Messages and their parts, and the canonical form in which they are hashed and stored."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from hone.core.regex import regex
from hone.core.trust import Trust
from hone.core.value import replace


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Text(Struct, frozen=True):
    """`opaque` is JSON that the provider wants back unchanged with this part and that nobody else can read;
    `origin` names the provider. See `hone.core.opaque`."""

    text: str
    opaque: str = ""
    origin: str = ""


class Image(Struct, frozen=True):
    media_type: str
    data: str
    """In base64, as sent over the wire."""


class Thinking(Struct, frozen=True):
    """The model's reasoning. `signature` is the provider's seal; `sealed` is reasoning that the provider
    shows to nobody; `opaque` and `origin` are as in Text. If there is an origin, the text is sent back to it,
    too."""

    text: str
    signature: str = ""
    sealed: str = ""
    opaque: str = ""
    origin: str = ""


class ToolCall(Struct, frozen=True):
    """`arguments` is the text of one JSON object, in the bytes the model chose; `opaque` and `origin` are as
    in Text."""

    id: str
    name: str
    arguments: str
    opaque: str = ""
    origin: str = ""


class ToolResult(Struct, frozen=True):
    call: str
    text: str
    failed: bool = False


class SystemNote(Struct, frozen=True):
    """What Hone itself adds to a user's turn, apart from the user's words. A note without text is not sent.
    It reports changes in what is known, from `since` up to `upto`."""

    text: str
    upto: int = 0
    since: int = 0


class Reminder(Struct, frozen=True):
    """What a memory backend adds to a user's words, apart from a note. `label` names its trust: somebody
    stored this data once."""

    text: str
    label: str = "foreign"

    @property
    def trust(self) -> Trust:
        """Give an unknown label the lowest trust."""
        return _read_label(self.label)


class Attachment(Struct, frozen=True):
    """Text that a user sends with their own words, such as a file or piped input. `name` says where it comes
    from, `label` names its trust."""

    text: str
    name: str
    label: str = "foreign"

    @property
    def trust(self) -> Trust:
        """Give an unknown label the lowest trust."""
        return _read_label(self.label)


def _read_label(label: str) -> Trust:
    return next((each for each in Trust if each.name.lower() == label), Trust.FOREIGN)


Part = Text | Image | Thinking | ToolCall | ToolResult | SystemNote | Reminder | Attachment

_PARTS: Mapping[str, type[Part]] = {
    "text": Text,
    "image": Image,
    "thinking": Thinking,
    "call": ToolCall,
    "result": ToolResult,
    "note": SystemNote,
    "reminder": Reminder,
    "attachment": Attachment,
}
_BESIDE = (SystemNote, Reminder, Attachment)
"""Parts that accompany a user's words."""
_KINDS = {part: kind for kind, part in _PARTS.items()}
_LATER = ("opaque", "origin")
"""Fields that older messages lack."""
_MARKED = (Text, Thinking, ToolCall)
_NAMES = {part: [name for name in part.__struct_fields__ if name not in _LATER] for part in _KINDS}


class Message(Struct, frozen=True):
    """`template` names the template that an example comes from. The example never happened in this
    conversation, so Hone learns nothing from it and no search finds it."""

    role: Role
    parts: tuple[Part, ...]
    template: str = ""

    def __post_init__(self) -> None:
        for place, part in enumerate(self.parts):
            if not isinstance(part, _BESIDE):
                continue
            if isinstance(part, SystemNote) and (place or self.role is not Role.USER):
                raise ValueError("a note is the first part of a user's message")
            if isinstance(part, Reminder) and (place > bool(self.note) or self.role is not Role.USER):
                raise ValueError("a reminder stands before a user's words, after a note")
            if isinstance(part, Attachment) and self.role is not Role.USER:
                raise ValueError("only a user's message has attachments")

    @property
    def text(self) -> str:
        """Return the speaker's own words, without notes, reminders and attachments."""
        return "".join([part.text for part in self.parts if isinstance(part, Text)])

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple([part for part in self.parts if isinstance(part, ToolCall)])

    @property
    def result(self) -> ToolResult | None:
        return next((part for part in self.parts if isinstance(part, ToolResult)), None)

    @property
    def note(self) -> SystemNote | None:
        first = self.parts[0] if self.parts else None
        return first if isinstance(first, SystemNote) else None

    @property
    def reminder(self) -> Reminder | None:
        return next((part for part in self.parts[:2] if isinstance(part, Reminder)), None)

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        return tuple([part for part in self.parts if isinstance(part, Attachment)])


def user(*parts: str | Part) -> Message:
    return Message(Role.USER, _parts(parts))


def assistant(*parts: str | Part) -> Message:
    return Message(Role.ASSISTANT, _parts(parts))


def answer(call: ToolCall, text: str, *, failed: bool = False) -> Message:
    return Message(Role.TOOL, (ToolResult(call.id, text, failed),))


def _parts(parts: Sequence[str | Part]) -> tuple[Part, ...]:
    return tuple(Text(part) if isinstance(part, str) else part for part in parts)


_NOTE, _MEMORY, _ATTACHED = "hone-note", "hone-memory", "hone-attachment"
_OWN = ("- ", "  ", "#")
"""The first characters of lines that Hone writes into a note. Any other line is indented."""
_LABEL = regex(r"# From memory, label: (\w*)\n")


def framed(name: str, text: str) -> str:
    """Return the text between an opening and a closing line that it cannot imitate."""
    body = re.sub(rf"<(?=\s*/?\s*{name})", "&lt;", text, flags=re.IGNORECASE)
    return f"<{name}>\n{body}\n</{name}>"


def told(part: SystemNote | Reminder | Attachment) -> str:
    """Return a note, a reminder or an attachment as it is sent over every wire; nothing if it has no text."""
    if not part.text.strip():
        return ""
    if isinstance(part, Attachment):
        name, body = " ".join(part.name.split()), part.text.rstrip("\r\n")
        label = part.trust.name.lower()
        return framed(_ATTACHED, _tamed(f"# {name}, label: {label}\n{body}", _NOTE, _MEMORY))
    body = "\n".join(_moved(line.rstrip()) for line in part.text.rstrip().splitlines())
    if isinstance(part, SystemNote):
        return framed(_NOTE, body)
    # Stored text must never look like a word of Hone's own.
    return framed(_MEMORY, f"# From memory, label: {part.trust.name.lower()}\n{_tamed(body, _NOTE)}")


def _moved(line: str) -> str:
    return f"  {line}" if line and not line.startswith(_OWN) else line


def _tamed(body: str, *names: str) -> str:
    return re.sub(rf"<(?=\s*/?\s*(?:{'|'.join(names)}))", "&lt;", body, flags=re.IGNORECASE)


def untold(text: str) -> tuple[SystemNote | None, str]:
    """Reverse `told`: return the note at the beginning of what was sent, and what follows it."""
    body, rest = _unframed(_NOTE, text)
    return (None if body is None else SystemNote(body)), rest


def unreminded(text: str) -> tuple[Reminder | None, str]:
    """Reverse `told` for a reminder."""
    body, rest = _unframed(_MEMORY, text)
    found = _LABEL.match(body) if body else None
    return (Reminder(body[found.end() :], found[1]), rest) if body and found else (None, text)


def _unframed(name: str, text: str) -> tuple[str | None, str]:
    opening, closing = f"<{name}>\n", f"\n</{name}>"
    if not text.startswith(opening) or closing not in text:
        return None, text
    body, _, rest = text.removeprefix(opening).partition(closing)
    return body, rest.removeprefix("\n\n")


def change_text(part: Part, change: Callable[[str], str]) -> Part:
    """Return a part that a user sent with its text changed. A part that is not text stays as it is."""
    return replace(part, text=change(part.text)) if isinstance(part, Text | Attachment) else part


def sound(text: str) -> str:
    """Return the text without lone surrogates, which no file, hash or provider accepts."""
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True)
_encode = msgspec.json.Encoder(order="sorted").encode
"""Writes the same bytes as `_ENCODER` for what messages contain, in an eighth of the time."""


def canonical(value: Any) -> str:
    """Return JSON with one spelling per value: sorted keys, no white space, unescaped letters."""
    return _ENCODER.encode(value)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def encode(message: Message) -> bytes:
    """Return the canonical form of a message, in UTF-8."""
    parts = [_fields(part) for part in message.parts]
    marked = {"template": message.template} if message.template else {}
    return _encode({"role": message.role, "parts": parts, **marked})


def _fields(part: Part) -> dict[str, Any]:
    """Return the fields of a part. Skip unset fields that only some providers use, so that old messages keep
    their digests."""
    values: dict[str, Any] = {name: getattr(part, name) for name in _NAMES[type(part)]}
    values["kind"] = _KINDS[type(part)]
    if isinstance(part, _MARKED) and (part.opaque or part.origin):
        values |= {name: value for name in _LATER if (value := getattr(part, name))}
    return values


def decode(data: bytes) -> Message:
    raw = json.loads(data)
    parts = [_PARTS[part.pop("kind")](**part) for part in raw["parts"]]
    return Message(Role(raw["role"]), tuple(parts), raw.get("template", ""))
