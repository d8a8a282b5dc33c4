"""The Anthropic Messages format, with cache marks at the ends of requests."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import msgspec

from hone.core.clock import Clock
from hone.core.errors import ModelError, Overloaded, Rejected
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
    ToolResult,
    told,
)
from hone.core.model import Finish, Reply, SpokenPiece, TextBuffer, TextPiece, ThinkingPiece, Usage
from hone.core.prefix import Prefix
from hone.core.transcript import Node, Transcript
from hone.models.cacherules import CONTROLLED, CacheMarks, mark_ends, marks_of
from hone.models.endpoint import Assembly, CountedBuffer, Endpoint, WireModel, count, refusal
from hone.models.http import Http
from hone.models.providers import Provider

_FINISH = {
    "tool_use": Finish.CALLS,
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "refusal": Finish.FILTERED,
}
_THOUGHTS = {"thinking", "redacted_thinking"}
_PASSING = {"overloaded_error", "api_error", "rate_limit_error", "timeout_error"}
_MAX_TOKENS = 16_000
_encode = msgspec.json.encode


def _translate(sampling: dict[str, Any]) -> dict[str, Any]:
    """Move the schema of an answer to its place in this format."""
    asked = sampling.pop("response_format", None)
    form = asked.get("json_schema") if isinstance(asked, dict) else None
    if not isinstance(form, dict):
        return sampling
    output = {"format": {"type": "json_schema", "schema": form.get("schema")}}
    return sampling | {"output_config": {**sampling.get("output_config", {}), **output}}


def _tool(text: str) -> dict[str, Any]:
    schema = msgspec.json.decode(text)
    return {
        "name": schema["name"],
        "description": schema["description"],
        "input_schema": schema["parameters"],
    }


def _blocks(message: Message, origin: str) -> list[dict[str, Any]]:
    own = (part for part in message.parts if not isinstance(part, Thinking) or part.origin in ("", origin))
    blocks = [block for part in own for block in _block(part)]
    while blocks and blocks[-1]["type"] in _THOUGHTS:
        blocks.pop()  # the provider treats a reply that ends with reasoning as unfinished
    return blocks or [{"type": "text", "text": "(empty)"}]


def _block(part: Part) -> Iterator[dict[str, Any]]:
    """Yield a content block, or nothing for what the provider refuses: white space alone, and reasoning that
    it did not sign."""
    match part:
        case Text(text) if text.strip():
            yield {"type": "text", "text": text}
        case SystemNote(text) | Reminder(text) | Attachment(text) if text.strip():
            yield {"type": "text", "text": told(part)}
        case Image(media_type, data):
            source = {"type": "base64", "media_type": media_type, "data": data}
            yield {"type": "image", "source": source}
        case Thinking(_, _, sealed) if sealed:
            yield {"type": "redacted_thinking", "data": sealed}
        case Thinking(text, signature) if signature:
            yield {"type": "thinking", "thinking": text, "signature": signature}
        case ToolCall(identity, name, arguments):
            yield {"type": "tool_use", "id": identity, "name": name, "input": msgspec.Raw(arguments.encode())}
        case ToolResult(call, text, failed):
            result = {"type": "tool_result", "tool_use_id": call, "content": text or "(no output)"}
            yield result | {"is_error": True} if failed else result


class _Block(msgspec.Struct):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    id: str = ""
    name: str = ""
    input: msgspec.Raw = msgspec.Raw()


class _Delta(msgspec.Struct):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    stop_reason: str | None = None


class _Written(msgspec.Struct):
    ephemeral_1h_input_tokens: int | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_creation: _Written | None = None


class _Start(msgspec.Struct):
    usage: Any = None


class _Event(msgspec.Struct):
    """Any kind of event; fields of other kinds are empty. A reply that was not streamed is one, too."""

    type: str = ""
    index: int = 0
    message: _Start | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None
    usage: Any = None
    error: Any = None
    content: list[_Block] | None = None
    stop_reason: str | None = None


_decode = msgspec.json.Decoder(_Event).decode


class AnthropicAssembly(Assembly):
    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        self._blocks: dict[int, _Block] = {}
        self._grown: defaultdict[tuple[int, str], TextBuffer] = defaultdict(
            partial(CountedBuffer, self._size)
        )
        self._usage = _Usage()

    def feed(self, data: bytes) -> Iterator[SpokenPiece]:
        event = self._decoded(_decode, data, "an event")
        self.is_over = self.is_over or event.type == "message_stop"
        if event.error:
            raise self._failure(data)
        for usage in (event.message and event.message.usage, event.usage):
            if usage:
                self._take_usage(self._read_usage(_Usage, usage))
        for index, block in enumerate(event.content or ()):
            yield from self._begin(index, block)
        if event.content_block:
            yield from self._begin(event.index, event.content_block)
        self._stop = event.stop_reason or (event.delta and event.delta.stop_reason) or self._stop
        if event.delta and event.index in self._blocks:
            yield from self._extend(event.index, event.delta)

    def _failure(self, event: bytes) -> ModelError:
        text = event.decode("utf-8", "replace")
        if any(kind in text for kind in _PASSING):
            return Overloaded(f"{self._endpoint.provider} broke off: {self._endpoint.quote(text)}.")
        return refusal(self._endpoint, 400, text)

    def _take_usage(self, usage: _Usage) -> None:
        for name in _Usage.__struct_fields__:
            value = getattr(usage, name)
            if value is not None:
                setattr(self._usage, name, value)

    def _begin(self, index: int, block: _Block) -> Iterator[SpokenPiece]:
        self._blocks[index] = block
        self._open(block.text, block.thinking, block.signature, block.data, block.id, block.name)
        self.content += len(bytes(block.input)) if bytes(block.input) != b"{}" else 0
        if block.type == "text" and block.text:
            yield TextPiece(block.text)

    def _extend(self, index: int, delta: _Delta) -> Iterator[SpokenPiece]:
        for name in ("text", "thinking", "signature", "partial_json"):
            if text := getattr(delta, name):
                self._grown[index, name].append(text)
        if delta.text:
            yield TextPiece(delta.text)
        if delta.thinking:
            yield ThinkingPiece(delta.thinking)

    def reply(self) -> Reply:
        if self._stop is None:
            raise self._cut_off()
        finish = _FINISH.get(self._stop, Finish.DONE)
        parts = tuple(part for index in sorted(self._blocks) for part in self._part(index))
        if finish is Finish.FILTERED and not parts:
            raise Rejected(f"{self._endpoint.provider} declined to answer.")
        return Reply(Message(Role.ASSISTANT, parts), finish, self._total(), self._extended())

    def _part(self, index: int) -> Iterator[Part]:
        block = self._blocks[index]
        grown = {name: str(pieces) for (at, name), pieces in self._grown.items() if at == index}
        match block.type:
            case "text":
                yield Text(block.text + grown.get("text", ""))
            case "thinking":
                signature = block.signature + grown.get("signature", "")
                thought = block.thinking + grown.get("thinking", "")
                yield Thinking(thought, signature, origin=self._endpoint.origin)
            case "redacted_thinking":
                yield Thinking("", sealed=block.data, origin=self._endpoint.origin)
            case "tool_use":
                whole = bytes(block.input).decode("utf-8", "replace")
                yield ToolCall(block.id, block.name, grown.get("partial_json") or whole)

    def _extended(self) -> int:
        written = self._usage.cache_creation
        return count(written.ephemeral_1h_input_tokens) if written else 0

    def _total(self) -> Usage:
        cached = count(self._usage.cache_read_input_tokens)
        written = count(self._usage.cache_creation_input_tokens)
        fresh = count(self._usage.input_tokens)
        return Usage(fresh + cached + written, cached, written, count(self._usage.output_tokens))


class AnthropicMessages(WireModel):
    """`marks` say what to cache, and for how long the system text is cached."""

    assembly = AnthropicAssembly

    def __init__(self, http: Http, clock: Clock, endpoint: Endpoint, marks: CacheMarks = CONTROLLED) -> None:
        super().__init__(http, clock, endpoint)
        self._marks = marks

    def _head(self, prefix: Prefix) -> bytes:
        settings = _translate(prefix.settings)
        fields = {"model": prefix.name, "max_tokens": _MAX_TOKENS, "stream": True, **settings}
        if prefix.tools:
            fields["tools"] = [_tool(tool) for tool in prefix.tools]
        if prefix.system:
            fields["system"] = [{"type": "text", "text": prefix.system}]
        head = _encode(fields)
        if prefix.system:
            head = head[:-3] + self._marks.system + head[-3:]
        return head[:-1] + b',"messages":['

    def _rest(self, transcript: Transcript) -> Iterable[bytes]:
        marker = self._marks.message + b"}"
        yield from mark_ends(
            transcript, self._messages.join, self._fragment, lambda fragment: fragment[:-1] + marker
        )
        yield b"]}]}" if transcript.nodes else b"]}"

    def _fragment(self, node: Node, before: Node | None) -> bytes:
        """Return the content blocks of a message, preceded by what closes the message before: results of one
        reply share a user message, so the next block may still belong to it."""
        blocks = b",".join(map(_encode, _blocks(node.message, self._endpoint.origin)))
        role, last = node.message.role, before and before.message.role
        if role is last is Role.TOOL:
            return b"," + blocks
        speaker = b"assistant" if role is Role.ASSISTANT else b"user"
        return b'%b{"role":"%b","content":[%b' % (b"]}," if before else b"", speaker, blocks)


def connect(provider: Provider, url: str, key: str, http: Http, clock: Clock) -> AnthropicMessages:
    headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
    endpoint = Endpoint(provider.name, f"{url}/v1/messages", headers, provider.key, provider.origin)
    return AnthropicMessages(http, clock, endpoint, marks_of(provider.cache))
