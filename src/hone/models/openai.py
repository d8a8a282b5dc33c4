"""The OpenAI chat completions format. OpenRouter, Ollama, vLLM, llama.cpp, LM Studio and others use it."""

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
from hone.core.model import Finish, Reply, SpokenPiece, TextBuffer, TextPiece, ThinkingPiece, Usage
from hone.core.prefix import Prefix
from hone.core.transcript import Node, Transcript
from hone.models.cacherules import marks_of
from hone.models.endpoint import Assembly, Endpoint, WireModel, amount, count, refusal
from hone.models.http import Http
from hone.models.providers import Provider

_FINISH = {"length": Finish.LENGTH, "content_filter": Finish.FILTERED, "tool_calls": Finish.CALLS}
_encode = msgspec.json.encode
MARKED = "hone.models.marked_chat:MarkedChat"
"""Loaded for models that cache marked parts."""
NOTHING = ("", "nothing")
RETURN, KEPT = "hone.models.returned:return_to", "hone.models.returned:KeptParts"
"""Loaded for providers that want something back with each reply."""


def _wire(message: Message, endpoint: Endpoint) -> dict[str, Any]:
    result = message.result
    if result:
        return {"role": "tool", "tool_call_id": result.call, "content": result.text}
    if message.role is Role.USER and any(isinstance(part, Image) for part in message.parts):
        return {"role": "user", "content": [_block(part) for part in message.parts if not _is_mute(part)]}
    beside = (part for part in (message.note, message.reminder) if part)
    said = (*map(told, beside), message.text, *map(told, message.attachments))
    wire: dict[str, Any] = {"role": message.role.value, "content": "\n\n".join(filter(None, said))}
    if message.calls:
        wire["content"] = message.text or None
        wire["tool_calls"] = [_call(call) for call in message.calls]
    if message.role is Role.ASSISTANT and endpoint.returns not in NOTHING:
        import_object(RETURN)(endpoint, message, wire)
    return wire


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _is_mute(part: Part) -> bool:
    return isinstance(part, SystemNote | Reminder | Attachment) and not told(part)


def _block(part: Part) -> dict[str, Any]:
    if isinstance(part, SystemNote | Reminder | Attachment):
        return {"type": "text", "text": told(part)}
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{part.data}"}}
    return {"type": "text", "text": part.text if isinstance(part, Text) else ""}


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _Call(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None
    extra_content: msgspec.Raw = msgspec.Raw()


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None


class _Details(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    cost: float | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: Any = None
    error: Any = None


_decode = msgspec.json.Decoder(_Chunk).decode


class _Growing(msgspec.Struct):
    """A call that is still arriving."""

    id: str = ""
    name: str = ""
    arguments: TextBuffer = msgspec.field(default_factory=TextBuffer)

    def whole(self) -> ToolCall:
        return ToolCall(self.id, self.name, str(self.arguments))


class ChatAssembly(Assembly):
    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        self._text = self._collect()
        self._thinking = self._collect()
        self._kept = import_object(KEPT)(endpoint) if endpoint.returns not in NOTHING else None
        self._calls: dict[int, _Growing] = {}
        self._usage = Usage()

    def feed(self, data: bytes) -> Iterable[SpokenPiece]:
        if data == b"[DONE]":
            self.is_over = True
            return ()
        chunk = self._decoded(_decode, data, "a chat chunk")
        if chunk.error:
            raise self._failure(chunk.error, data)
        if chunk.usage:
            self._usage = _usage(self._read_usage(_Usage, chunk.usage))
        if not chunk.choices:
            return ()
        choice = chunk.choices[0]
        self._stop = choice.finish_reason or self._stop
        delta = choice.delta or choice.message
        return self._take(delta) if delta else ()

    def _failure(self, error: Any, event: bytes) -> ModelError:
        """Return the error of an event. Some servers put the status there that the answer would have had."""
        code = error.get("code") if isinstance(error, dict) else None
        status = code if isinstance(code, int) and 400 <= code < 600 else 503
        return refusal(self._endpoint, status, event.decode("utf-8", "replace"))

    def _take(self, delta: _Delta) -> list[SpokenPiece]:
        pieces: list[SpokenPiece] = []
        thought = delta.reasoning_content or delta.reasoning
        if thought:
            self._thinking.append(thought)
            pieces.append(ThinkingPiece(thought))
        if self._kept and delta.reasoning_details:
            self._take_details(self._kept, delta.reasoning_details)
        said = delta.content or delta.refusal
        if said:
            self._text.append(said)
            pieces.append(TextPiece(said))
        for call in delta.tool_calls or ():
            self._take_call(call)
        return pieces

    def _take_details(self, kept: Any, details: list[dict[str, Any]]) -> None:
        opened, size = kept.add_details(details)
        self.opened += opened
        self.content += size

    def _take_call(self, call: _Call) -> None:
        """Merge a piece of a call. Pieces of one call share an index; servers that omit it send each call
        whole."""
        index = call.index if call.index is not None else len(self._calls)
        function = call.function or _Function()
        arguments = function.arguments or ""
        if isinstance(arguments, dict):
            arguments = _encode(arguments).decode()
        self.content += len(function.name or "")
        if index not in self._calls:
            self._open(call.id or "")
            self._calls[index] = _Growing(arguments=self._collect())
        known = self._calls[index]
        known.id = known.id or call.id or ""
        known.name += function.name or ""
        known.arguments.append(arguments)
        if self._kept and call.extra_content:
            self._kept.add_extra(index, call.extra_content)

    def reply(self) -> Reply:
        if not self.is_over and self._stop is None:
            raise self._cut_off()
        finish = _FINISH.get(self._stop or "", Finish.DONE)
        said = [Text(str(self._text))] if self._text else []
        parts = [*self._reasoned(), *said, *self._called()]
        if finish is Finish.FILTERED and not parts:
            raise Rejected(f"{self._endpoint.provider}'s content filter stopped the answer.")
        return Reply(Message(Role.ASSISTANT, tuple(parts)), finish, self._usage)

    def _reasoned(self) -> list[Part]:
        text = str(self._thinking)
        thinking = self._kept.mark_thinking(text) if self._kept else Thinking(text) if text else None
        return [thinking] if thinking else []

    def _called(self) -> Iterator[Part]:
        for index, call in sorted(self._calls.items()):
            yield self._kept.mark_call(index, call.whole()) if self._kept else call.whole()


def _usage(usage: _Usage) -> Usage:
    details = usage.prompt_tokens_details or _Details()
    return Usage(
        input=count(usage.prompt_tokens),
        cached=count(details.cached_tokens),
        written=count(details.cache_write_tokens),
        output=count(usage.completion_tokens),
        cost=amount(usage.cost),
    )


class OpenAIChat(WireModel):
    """`cache_key` sends the provider's routing hint for prompt caching, if it has one."""

    assembly = ChatAssembly

    def __init__(self, http: Http, clock: Clock, endpoint: Endpoint, *, cache_key: bool = False) -> None:
        super().__init__(http, clock, endpoint)
        self._cache_key = cache_key

    def _head(self, prefix: Prefix) -> bytes:
        options = {"stream_options": {"include_usage": True}}
        fields = {"model": prefix.name, "stream": True, **options, **prefix.settings}
        if self._cache_key:
            fields["prompt_cache_key"] = prefix.digest[:32]
        if prefix.tools:
            raw = (msgspec.Raw(tool.encode()) for tool in prefix.tools)
            fields["tools"] = [{"type": "function", "function": tool} for tool in raw]
        system = {"role": "system", "content": prefix.system}
        return _encode(fields)[:-1] + b',"messages":[' + _encode(system)

    def _rest(self, transcript: Transcript) -> Iterable[bytes]:
        return (self._messages.join(transcript.nodes, self._fragment, transcript.shared), b"]}")

    def _fragment(self, node: Node, _: Node | None) -> bytes:
        return b"," + _encode(_wire(node.message, self._endpoint))


def connect(provider: Provider, url: str, key: str, http: Http, clock: Clock) -> OpenAIChat:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    place, wanted = f"{url}/chat/completions", provider.returns
    endpoint = Endpoint(provider.name, place, headers, provider.key, provider.origin, wanted)
    if provider.cache.marks_parts:
        marked: Callable[..., OpenAIChat] = import_object(MARKED)
        return marked(http, clock, endpoint, marks_of(provider.cache), cache_key=provider.caches_by_key)
    return OpenAIChat(http, clock, endpoint, cache_key=provider.caches_by_key)
