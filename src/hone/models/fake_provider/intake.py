"""Parse requests in every format, and convert them to our own messages."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby

import msgspec
from msgspec import Struct

from hone.core.messages import (
    Image,
    Message,
    Part,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    unreminded,
    untold,
)
from hone.models.fake_provider import shapes

_decode_chat = msgspec.json.Decoder(shapes.Chat).decode
_decode_said = msgspec.json.Decoder(shapes.Said).decode
_decode_messages = msgspec.json.Decoder(shapes.Messages).decode
_decode_entry = msgspec.json.Decoder(shapes.Entry).decode
_decode_respond = msgspec.json.Decoder(shapes.Respond).decode
_decode_given = msgspec.json.Decoder(shapes.Given).decode

_LARGE = 64 * 1024
_RULING = ("system", "developer")


class Malformed(Exception):
    """The body is not strict JSON, or not in the provider's format. The text says where."""


class InputItem(Struct, frozen=True, eq=False):
    """One message as sent, and as our own values. It is compared by identity: a conversation is sent again
    with every call, and the same bytes give the same item, unless they are too large to keep."""

    sent: shapes.Said | shapes.Entry | shapes.Given
    system: str
    messages: tuple[Message, ...]
    large: bool


class ParsedRequest(Struct, frozen=True):
    """`head` is the request without its messages."""

    head: shapes.Chat | shapes.Messages | shapes.Respond
    items: tuple[InputItem, ...]

    @property
    def format(self) -> shapes.Format:
        if isinstance(self.head, shapes.Respond):
            return "responses"
        return "openai" if isinstance(self.head, shapes.Chat) else "anthropic"

    @property
    def system(self) -> str:
        own = _plain(self.head.system) if isinstance(self.head, shapes.Messages) else ""
        own = (self.head.instructions or "") if isinstance(self.head, shapes.Respond) else own
        return "\n".join(text for text in (own, *(item.system for item in self.items)) if text)

    @property
    def messages(self) -> tuple[Message, ...]:
        said = (message for item in self.items for message in item.messages)
        return tuple(_merged(said) if isinstance(self.head, shapes.Respond) else said)


_HEADS: Mapping[shapes.Format, Callable[[bytes], shapes.Chat | shapes.Messages | shapes.Respond]] = {
    "openai": _decode_chat,
    "anthropic": _decode_messages,
    "responses": _decode_respond,
}


def parse(format: shapes.Format, body: bytes) -> ParsedRequest:
    try:
        # Raw parts are not decoded, so their characters are checked here.
        body.decode()
        head = _HEADS[format](body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"the body cannot be read: {error}") from error
    items: list[InputItem] = []
    for index, raw in enumerate(head.messages):
        try:
            data = bytes(raw)
            items.append(_item(format, data) if len(data) < _LARGE else _item.__wrapped__(format, data))
        except (msgspec.DecodeError, RecursionError) as error:
            raise Malformed(f"messages[{index}] cannot be read: {error}") from error
    return ParsedRequest(head, tuple(items))


@lru_cache(maxsize=4096)
def _item(format: shapes.Format, raw: bytes) -> InputItem:
    if format == "anthropic":
        entry = _decode_entry(raw)
        return InputItem(entry, "", tuple(_messages(entry)), len(raw) >= _LARGE)
    if format == "responses":
        given: shapes.Given = _decode_given(raw)
        told = given.content if isinstance(given, shapes.MessageItem) else ""
        system = _plain(told) if isinstance(given, shapes.MessageItem) and given.role in _RULING else ""
        return InputItem(given, system, tuple(_given(given, raw)), len(raw) >= _LARGE)
    said: shapes.Said = _decode_said(raw)
    system = _plain(said.content) if isinstance(said, shapes.SystemSaid) else ""
    return InputItem(said, system, tuple(_message(said)), len(raw) >= _LARGE)


def _message(said: shapes.Said) -> Iterator[Message]:
    match said:
        case shapes.UserSaid(str(text)):
            yield Message(Role.USER, _noted([Text(text)]))
        case shapes.UserSaid(list(parts)):
            yield Message(Role.USER, _noted([_part(part) for part in parts]))
        case shapes.AssistantSaid():
            yield Message(Role.ASSISTANT, tuple(_spoken(said)))
        case shapes.ToolSaid(identity, content):
            yield Message(Role.TOOL, (ToolResult(identity, _plain(content)),))


def _part(part: shapes.TextPart | shapes.ImagePart) -> Part:
    if isinstance(part, shapes.TextPart):
        return Text(part.text)
    return _picture(part.image_url.url)


def _picture(url: str) -> Image:
    head, comma, data = url.partition(";base64,")
    return Image(head.removeprefix("data:"), data) if comma else Image("", url)


def _given(item: shapes.Given, raw: bytes) -> Iterator[Message]:
    """Yield the content of an item. Items of one reply are joined later."""
    match item:
        case shapes.MessageItem("assistant", content):
            yield Message(Role.ASSISTANT, (Text(_plain(content)),))
        case shapes.MessageItem("user", str(text)):
            yield Message(Role.USER, _noted([Text(text)]))
        case shapes.MessageItem("user", list(parts)):
            yield Message(Role.USER, _noted([_seen(part) for part in parts]))
        case shapes.CallItem(identity, name, arguments):
            yield Message(Role.ASSISTANT, (ToolCall(identity, name, arguments),))
        case shapes.ResultItem(identity, output):
            yield Message(Role.TOOL, (ToolResult(identity, _plain(output)),))
        case shapes.ReasoningItem(summary=summary):
            text = "\n\n".join(each.text for each in summary)
            yield Message(Role.ASSISTANT, (Thinking(text, opaque=raw.decode()),))


def _seen(part: shapes.InputText | shapes.InputImage | shapes.OutputText) -> Part:
    return _picture(part.image_url) if isinstance(part, shapes.InputImage) else Text(part.text)


def _merged(messages: Iterable[Message]) -> Iterator[Message]:
    """Join consecutive items of the assistant into one reply."""
    for role, group in groupby(messages, key=lambda message: message.role):
        if role is Role.ASSISTANT:
            yield Message(role, tuple(part for message in group for part in message.parts))
        else:
            yield from group


def _spoken(said: shapes.AssistantSaid) -> Iterator[Part]:
    thought = said.reasoning_content or said.reasoning or ""
    details = bytes(said.reasoning_details).decode()
    if thought or details:
        yield Thinking(thought, opaque=details)
    text = _plain(said.content or "")
    if text:
        yield Text(text)
    for call in said.tool_calls or ():
        extra = bytes(call.extra_content).decode()
        yield ToolCall(call.id, call.function.name, call.function.arguments, extra)


def _messages(entry: shapes.Entry) -> Iterator[Message]:
    """Split a user's message: our format has results as separate messages."""
    parts: list[Part] = []
    for block in entry.blocks:
        if isinstance(block, shapes.ResultBlock):
            text = _plain(block.content)
            yield Message(Role.TOOL, (ToolResult(block.tool_use_id, text, block.is_error),))
        else:
            parts.append(_known(block))
    if parts:
        yield Message(Role(entry.role), _noted(parts) if entry.role == "user" else tuple(parts))


def _noted(parts: list[Part]) -> tuple[Part, ...]:
    """Separate a note and a reminder from the user's words after them."""
    told: list[Part] = []
    for unframe in (untold, unreminded):
        match parts:
            case [Text(text), *others]:
                found, rest = unframe(text)
                if found:
                    told.append(found)
                    parts = [*([Text(rest)] if rest else []), *others]
    return (*told, *parts)


def _known(block: shapes.Spoken) -> Part:
    match block:
        case shapes.TextBlock(text):
            return Text(text)
        case shapes.ImageBlock(source):
            return Image(source.media_type, source.data or source.url)
        case shapes.ThinkingBlock(thinking, signature):
            return Thinking(thinking, signature)
        case shapes.SealedBlock(data):
            return Thinking("", sealed=data)
        case shapes.UseBlock(identity, name, given):
            return ToolCall(identity, name, bytes(given).decode())


_Piece = shapes.TextPart | shapes.TextBlock | shapes.ImageBlock | shapes.InputText | shapes.InputImage
_IMAGES = shapes.ImageBlock | shapes.InputImage


def _plain(content: str | Sequence[_Piece | shapes.OutputText]) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.text for part in content if not isinstance(part, _IMAGES))
