"""The OpenAI Responses format. The server stores nothing: everything in a reply is sent back, encrypted
reasoning included."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from hone.core.clock import Clock
from hone.core.errors import ModelError, Rejected
from hone.core.loading import import_object
from hone.core.messages import (
    Attachment,
    Image,
    Message,
    Part,
    Reminder,
    Role,
    SystemNote,
    Text,
    Thinking,
    ToolCall,
    told,
)
from hone.core.model import Finish, Reply, SpokenPiece, TextPiece, ThinkingPiece, Usage
from hone.core.opaque import find_returned
from hone.core.prefix import Prefix
from hone.core.regex import regex
from hone.core.transcript import Node, Transcript
from hone.models.cacherules import marks_of
from hone.models.dialects import can_reason
from hone.models.endpoint import Assembly, Endpoint, WireModel, count, refusal
from hone.models.http import Http
from hone.models.providers import Provider

MARKED = "hone.models.marked_responses:MarkedResponses"
"""Loaded for models that cache marked parts."""
ENCRYPTED = "reasoning.encrypted_content"
NOTHING = "nothing"
"""Sent back to a server that does not accept reasoning."""
_FINISH = {"max_output_tokens": Finish.LENGTH, "content_filter": Finish.FILTERED}
_RENAMED = {"max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens"}
_TOO_MANY = ("rate_limit_exceeded", "insufficient_quota")
_ABOUT_REQUEST = regex(r"invalid|image|policy|context_length|not_found|unsupported")
"""Error codes for which a retry does not help."""
_SAID = ("response.output_text.delta", "response.refusal.delta")
_THOUGHT = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
_ENDS = ("response.completed", "response.incomplete", "response.failed")
_encode = msgspec.json.encode


def translate(sampling: dict[str, Any]) -> dict[str, Any]:
    """Rename settings for chat completions to this format's names."""
    made: dict[str, Any] = {}
    for name, value in sampling.items():
        match name:
            case "reasoning_effort":
                made["reasoning"] = {**made.get("reasoning", {}), "effort": value}
            case "verbosity":
                made["text"] = {**made.get("text", {}), "verbosity": value}
            case "response_format":
                made["text"] = {**made.get("text", {}), "format": _form(value)}
            case _:
                made[_RENAMED.get(name, name)] = value
    return made


def _form(asked: Any) -> Any:
    """Move an answer's schema: here it is a sibling of its type, not one level below."""
    if isinstance(asked, dict) and isinstance(asked.get("json_schema"), dict):
        return {"type": asked.get("type"), **asked["json_schema"]}
    return asked


def _items(message: Message, origin: str) -> list[dict[str, Any] | msgspec.Raw]:
    result = message.result
    if result:
        return [{"type": "function_call_output", "call_id": result.call, "output": result.text}]
    if message.role is Role.USER:
        return [{"type": "message", "role": "user", "content": _content(message)}]
    items = [item for part in message.parts for item in _output(part, origin)]
    while items and isinstance(items[-1], msgspec.Raw):
        items.pop()  # the server refuses reasoning that nothing follows
    return items


def _content(message: Message) -> str | list[dict[str, Any]]:
    beside = [told(part) for part in (message.note, message.reminder) if part]
    said = "\n\n".join(filter(None, (*beside, message.text, *map(told, message.attachments))))
    pictures = [part for part in message.parts if isinstance(part, Image)]
    if not pictures:
        return said
    blocks: list[dict[str, Any]] = []
    for part in message.parts:
        match part:
            case SystemNote() | Reminder() | Attachment() if text := told(part):
                blocks.append({"type": "input_text", "text": text})
            case Text(text) if text:
                blocks.append({"type": "input_text", "text": text})
            case Image(media_type, data):
                url = f"data:{media_type};base64,{data}"
                blocks.append({"type": "input_image", "detail": "auto", "image_url": url})
    return blocks


def _output(part: Part, origin: str) -> Iterator[dict[str, Any] | msgspec.Raw]:
    match part:
        case Text(text) if text:
            said = {"type": "message", "role": "assistant", "content": text}
            phase = find_returned(part, origin)
            yield {**said, "phase": phase} if phase else said
        case Thinking() if (item := find_returned(part, origin)) and _is_reasoning(item):
            yield item
        case ToolCall(identity, name, arguments):
            yield {"type": "function_call", "call_id": identity, "name": name, "arguments": arguments}


def _is_reasoning(raw: msgspec.Raw) -> bool:
    """Tell whether stored reasoning is a reasoning item; any other item could speak as the system."""
    try:
        return _decode_item(raw).type == "reasoning"
    except msgspec.DecodeError:
        return False


class _Words(msgspec.Struct):
    type: str = ""
    text: str = ""
    refusal: str = ""


class _Item(msgspec.Struct):
    """One output item of any kind; fields of other kinds are empty."""

    type: str = ""
    content: list[_Words] | None = None
    summary: list[_Words] | None = None
    encrypted_content: str | None = None
    phase: str | None = None
    call_id: str = ""
    name: str = ""
    arguments: str = ""


class _InputDetails(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _Usage(msgspec.Struct):
    """Token counts. `output_tokens` includes reasoning."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _InputDetails | None = None


class _Why(msgspec.Struct):
    reason: str | None = None


class _Whole(msgspec.Struct):
    status: str | None = None
    error: Any = None
    incomplete_details: _Why | None = None
    output: list[msgspec.Raw] | None = None
    usage: Any = None


class _Event(_Whole):
    """Any kind of event. A reply that was not streamed is one, too."""

    type: str = ""
    object: str = ""
    output_index: int = 0
    summary_index: int = 0
    delta: Any = None
    item: msgspec.Raw = msgspec.Raw()
    response: _Whole | None = None
    code: str | None = None


_decode = msgspec.json.Decoder(_Event).decode
_decode_item = msgspec.json.Decoder(_Item).decode


class ResponsesAssembly(Assembly):
    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        self._items: dict[int, msgspec.Raw] = {}
        self._pieces = 0
        self._end: _Whole | None = None

    def feed(self, data: bytes) -> Iterator[SpokenPiece]:
        if data == b"[DONE]":
            return
        event = self._decoded(_decode, data, "an event")
        if event.type == "error" or (event.error and not event.response):
            raise self._failure(event.code, event.error, data)
        if isinstance(event.delta, str):
            self.content += len(event.delta)
            self._pieces += len(event.delta)
        if event.type in _SAID and isinstance(event.delta, str):
            yield TextPiece(event.delta)
        elif event.type in _THOUGHT and isinstance(event.delta, str):
            yield ThinkingPiece(event.delta)
        elif event.type == "response.reasoning_summary_part.added" and event.summary_index:
            yield ThinkingPiece("\n\n")
        elif event.type == "response.output_item.done":
            self._take(event.output_index, event.item)
        elif event.type in _ENDS or event.object == "response":
            self._finish(event.response or event, data)

    def _take(self, index: int, item: msgspec.Raw) -> None:
        """Add a whole item. It repeats what already arrived in pieces, so that is counted once."""
        self.opened += 1
        self.content += max(0, len(bytes(item)) - self._pieces)
        self._pieces = 0
        self._items[index] = item

    def _finish(self, whole: _Whole, data: bytes) -> None:
        """Handle the last event. It repeats all items; they count if some did not arrive before."""
        if whole.error or whole.status == "failed":
            raise self._failure(None, whole.error, data)
        self._end, self.is_over = whole, True
        if len(whole.output or ()) > len(self._items):
            self._items = dict(enumerate(whole.output or ()))

    def _failure(self, code: str | None, error: Any, event: bytes) -> ModelError:
        inner = error if isinstance(error, dict) else {}
        code = code or str(inner.get("code") or inner.get("type") or "server_error")
        said = str(inner.get("message") or "") or event.decode("utf-8", "replace")
        status = 429 if code in _TOO_MANY else 400 if _ABOUT_REQUEST.search(code) else 503
        return refusal(self._endpoint, status, f"{code}: {said}" if inner else said)

    def reply(self) -> Reply:
        if self._end is None:
            raise self._cut_off()
        parts = tuple(part for _, raw in sorted(self._items.items()) for part in self._part(raw))
        why = self._end.incomplete_details
        calls = any(isinstance(part, ToolCall) for part in parts)
        finish = _FINISH.get(why.reason or "" if why else "", Finish.CALLS if calls else Finish.DONE)
        if finish is Finish.FILTERED and not parts:
            raise Rejected(f"{self._endpoint.provider}'s content filter stopped the answer.")
        return Reply(
            Message(Role.ASSISTANT, parts), finish, _usage(self._read_usage(_Usage, self._end.usage))
        )

    def _part(self, raw: msgspec.Raw) -> Iterator[Part]:
        item = self._decoded(_decode_item, bytes(raw), "an item of a response")
        match item.type:
            case "message":
                phase = _encode(item.phase).decode() if item.phase else ""
                marked = (phase, self._endpoint.origin) if phase else ("", "")
                yield Text("".join(each.text or each.refusal for each in item.content or ()), *marked)
            case "reasoning":
                yield self._reasoned(item, raw)
            case "function_call":
                yield ToolCall(item.call_id, item.name, item.arguments)

    def _reasoned(self, item: _Item, raw: msgspec.Raw) -> Thinking:
        """Keep reasoning with its encrypted content: a server that stores nothing would not recognize it
        without."""
        shown = [each.text for each in item.summary or item.content or ()]
        text = "\n\n".join(filter(None, shown))
        if not item.encrypted_content or self._endpoint.returns == NOTHING:
            return Thinking(text)
        whole = self._decoded(bytes.decode, bytes(raw), "UTF-8")
        return Thinking(text, opaque=whole, origin=self._endpoint.origin)


def _usage(usage: _Usage) -> Usage:
    details = usage.input_tokens_details or _InputDetails()
    return Usage(
        input=count(usage.input_tokens),
        cached=count(details.cached_tokens),
        written=count(details.cache_write_tokens),
        output=count(usage.output_tokens),
    )


class OpenAIResponses(WireModel):
    """`cache_key` sends the provider's routing hint for prompt caching, if it has one."""

    assembly = ResponsesAssembly

    def __init__(self, http: Http, clock: Clock, endpoint: Endpoint, *, cache_key: bool = False) -> None:
        super().__init__(http, clock, endpoint)
        self._cache_key = cache_key

    def _head(self, prefix: Prefix) -> bytes:
        """Return the head of a request. Instructions precede the input, so that a conversation's bytes only
        grow at the end. Tools are strict by default, and their schemas are not written for that."""
        fields: dict[str, Any] = {"model": prefix.name, "stream": True, "store": False}
        if can_reason(prefix.name) and self._endpoint.returns != NOTHING:
            fields["include"] = [ENCRYPTED]
        fields |= translate(prefix.settings)
        if self._cache_key:
            fields["prompt_cache_key"] = prefix.digest[:32]
        if prefix.tools:
            tools = (msgspec.json.decode(tool) for tool in prefix.tools)
            fields["tools"] = [{"type": "function", **tool, "strict": False} for tool in tools]
        if prefix.system:
            fields["instructions"] = prefix.system
        return _encode(fields)[:-1] + b',"input":['

    def _rest(self, transcript: Transcript) -> Iterable[bytes]:
        return (self._messages.join(transcript.nodes, self._fragment, transcript.shared), b"]}")

    def _fragment(self, node: Node, before: Node | None) -> bytes:
        """Return the items of a message. A reply without a word leaves nothing to send."""
        origin = "" if self._endpoint.returns == NOTHING else self._endpoint.origin
        items = b",".join(map(_encode, _items(node.message, origin)))
        return b"," + items if before and items else items


def connect(provider: Provider, url: str, key: str, http: Http, clock: Clock) -> OpenAIResponses:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    place, wanted = f"{url}/responses", provider.returns
    endpoint = Endpoint(provider.name, place, headers, provider.key, provider.origin, wanted)
    if provider.cache.marks_parts:
        marked: Callable[..., OpenAIResponses] = import_object(MARKED)
        return marked(http, clock, endpoint, marks_of(provider.cache), cache_key=provider.caches_by_key)
    return OpenAIResponses(http, clock, endpoint, cache_key=provider.caches_by_key)
