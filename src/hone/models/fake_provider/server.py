"""The server of the fake provider: receive a request, decide on the answer, send it."""

import asyncio
import base64
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec import Struct

from hone.core.clock import Clock, SystemClock
from hone.core.model import Reply, Usage
from hone.core.value import replace
from hone.models.cacherules import CacheRule
from hone.models.fake_provider.caching import Billing, is_misordered
from hone.models.fake_provider.disorder import DISORDER
from hone.models.fake_provider.faults import (
    FAULTS,
    Absence,
    Choice,
    Fault,
    Raw,
    Refusal,
    Twist,
    error,
    refuse,
)
from hone.models.fake_provider.intake import Malformed, ParsedRequest, parse
from hone.models.fake_provider.playback import Framing, dump, stream, whole
from hone.models.fake_provider.returning import Returns, Rule
from hone.models.fake_provider.serving import (
    END,
    STREAM,
    Caller,
    HttpRequest,
    Unacceptable,
    chunks,
    opening,
    recut,
)
from hone.models.fake_provider.shapes import Chat, Format
from hone.models.fake_provider.validity import objections
from hone.models.scripted import Script, say, weigh

_ROUTES: dict[str, Format] = {
    "/v1/chat/completions": "openai",
    "/v1/messages": "anthropic",
    "/v1/responses": "responses",
}
_MODEL = {"id": "scripted", "object": "model", "type": "model", "created": 0, "owned_by": "hone"}
_MODELS = dump({"object": "list", "data": [_MODEL], "has_more": False})
_SHOWN = 5


class Outpour(Struct, frozen=True):
    """A response in raw bytes."""

    fault: Raw
    pieces: Iterator[bytes]


class Performance(Struct, frozen=True):
    """A reply that is being sent. If `torn`, the connection ends before the response does."""

    parts: Sequence[bytes]
    streamed: bool
    torn: bool = False


Answer = Performance | Outpour | Refusal | Absence


@dataclass(slots=True, kw_only=True)
class FakeProvider:
    """Settings may be changed between requests. What a script or a fault function raises is raised again when
    the stage closes; the caller only sees the connection break off.

    latency   seconds before the first byte of an answer
    gate      an event that answers wait for
    pace      seconds between the pieces of a stream
    recall    how many requests the cache remembers
    returns   what chat completions want back with each reply: see `returning`
    key       the API key that callers must have
    fault     a name of FAULTS for all model calls, or a function from their number, counted from 0
    chunk     bytes of a stream that are sent together; 0 sends each event as one chunk, and all at once
    cut_at    only so many bytes of a reply are sent, then the connection ends
    raw       sent as the stream in place of what the script says
    record    a file that gets each body as a line of JSON, before it is answered
    keep      whether `requests` grows
    sleep     how time passes between pieces
    clock     by which the cache forgets
    rule      how the cache works; else as the provider documents it for the model
    """

    script: Script = field(kw_only=False)
    latency: float = 0.0
    gate: asyncio.Event | None = None
    pace: float = 0.0
    recall: int = 64
    port: int = 0
    returns: Rule = ""
    key: str | None = None
    fault: str | Choice | None = None
    chunk: int = 0
    cut_at: int | None = None
    raw: bytes | None = None
    record: Path | None = None
    keep: bool = True
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    clock: Clock = field(default_factory=SystemClock)
    rule: CacheRule | None = None
    requests: list[HttpRequest] = field(default_factory=list, init=False)
    invalid: list[str] = field(default_factory=list, init=False)
    """Errors found in requests, even in those that met a fault."""
    _calls: int = field(default=0, init=False)
    _billing: Billing = field(init=False)
    _returns: Returns = field(init=False)
    _server: asyncio.Server | None = field(default=None, init=False)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set, init=False)
    _errors: list[BaseException] = field(default_factory=list, init=False)
    _file: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if isinstance(self.fault, str) and (
            self.fault not in {*FAULTS, *DISORDER} or self.fault == "refused"
        ):
            raise ValueError(f"the stage cannot play {self.fault!r}; for refused connections see `refusing`")
        self._billing = Billing(self.recall, self.clock, self.rule)
        self._returns = Returns(self.returns)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def bodies(self) -> list[bytes]:
        """Return the bodies of model calls only."""
        return [request.body for request in self.requests if _format(request)]

    async def __aenter__(self) -> Self:
        if self.record is not None:
            self._file = os.open(self.record, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._server = await asyncio.start_server(self._open, "127.0.0.1", self.port, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        await asyncio.sleep(0)
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await asyncio.sleep(0)  # from Python 3.12 on, `gather` does not wait if all have ended already
        await self._server.wait_closed()
        if self._file is not None:
            os.close(self._file)
        if self._errors:
            raise self._errors[0]

    def _open(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(Caller(reader, writer)))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        failure = None if task.cancelled() else task.exception()
        if failure:
            self._errors.append(failure)

    async def _serve(self, caller: Caller) -> None:
        try:
            # Callers may disconnect at any time.
            with suppress(ConnectionError):
                try:
                    while caller.persistent and (request := await caller.hear()):
                        await self._respond(request, caller)
                except Unacceptable as reason:
                    await caller.answer(reason.status, error("openai", reason.status, str(reason)))
                await caller.leave()
        except BaseException:
            caller.abandon()
            raise

    async def _respond(self, request: HttpRequest, caller: Caller) -> None:
        self._note(request)
        format = _format(request)
        if format is None:
            await caller.answer(*_aside(request))
            return
        answer = self._answer(format, request)
        if self.latency:
            await asyncio.sleep(self.latency)
        if self.gate:
            await self.gate.wait()
        match answer:
            case Performance():
                await self._play(answer, caller)
            case Outpour():
                await self._pour(answer, caller)
            case Refusal():
                await caller.answer(answer.status, answer.bodies[format], answer.headers, answer.media_type)
            case Absence("silent"):
                await caller.gone()
            case Absence():
                caller.reset()

    def _note(self, request: HttpRequest) -> None:
        if self.keep:
            self.requests.append(request)
        if self._file is not None:
            try:
                line = {"path": request.path, "body": request.body.decode()}
            except UnicodeDecodeError:
                line = {"path": request.path, "base64": base64.b64encode(request.body).decode()}
            os.write(self._file, dump(line) + b"\n")

    def _answer(self, format: Format, request: HttpRequest) -> Answer:
        number, self._calls = self._calls, self._calls + 1
        if self.key is not None and _key(request) != self.key:
            return refuse(401, "The API key is missing or wrong.")
        try:
            asked = parse(format, request.body)
            wrong = [*objections(asked), *self._returns.check(asked)]
            wrong += ["cache_control: a ttl of 1h must come before 5m"] if is_misordered(request.body) else []
        except Malformed as malformed:
            asked, wrong = None, [str(malformed)]
        self.invalid += wrong
        name = self.fault(number) if callable(self.fault) else self.fault
        fault = _find_fault(name) if name else Twist()
        if not isinstance(fault, Twist | Raw):
            return fault
        if asked is None or wrong:
            return refuse(400, "; ".join(wrong[:_SHOWN]))
        if isinstance(fault, Raw):
            reply, framing = self._reply(asked, request.body, Twist())
            return Outpour(fault, fault.make(format, stream(format, reply, framing)))
        return self._perform(asked, request.body, fault)

    def _perform(self, asked: ParsedRequest, body: bytes, twist: Twist) -> Performance:
        streamed, torn = bool(asked.head.stream) or self.raw is not None, twist.torn
        parts = self._parts(asked, body, twist) if self.raw is None else [self.raw]
        if self.cut_at is not None and self.cut_at < sum(map(len, parts)):
            parts, torn = [b"".join(parts)[: self.cut_at]], True
        return Performance(parts, streamed, torn)

    def _reply(self, asked: ParsedRequest, body: bytes, twist: Twist) -> tuple[Reply, Framing]:
        head = asked.head
        tokens = self._billing.count(asked.format, head.model, body)
        messages = asked.messages
        reply = self._returns.seal(asked.format, twist.alter(say(self.script, messages)), len(messages))
        if reply.usage == Usage():
            usage = Usage(tokens.total, tokens.cached, tokens.written, weigh(reply.message))
            reply = replace(reply, usage=usage, extended=tokens.extended)
        options = head.stream_options if isinstance(head, Chat) else None
        return reply, Framing(head.model, counted=bool(options and options.include_usage))

    def _parts(self, asked: ParsedRequest, body: bytes, twist: Twist) -> list[bytes]:
        head, format = asked.head, asked.format
        reply, framing = self._reply(asked, body, twist)
        if not head.stream:
            data = whole(format, reply, framing)
            return [data[: len(data) // 2] if twist.bend else data]
        events = stream(format, reply, framing)
        return [data for _, data in (twist.bend(format, events) if twist.bend else events)]

    async def _pour(self, outpour: Outpour, caller: Caller) -> None:
        """Send until the end, or until the caller disconnects."""
        fault, caller.persistent = outpour.fault, False
        for piece in outpour.pieces:
            await caller.send(piece)
            await self.sleep(fault.pace)
            if caller.has_left:
                return
        while fault.hangs and not caller.has_left:
            await self.sleep(1.0)

    async def _play(self, performance: Performance, caller: Caller) -> None:
        parts = recut(performance.parts, self.chunk) if self.chunk else performance.parts
        start, end = STREAM, END
        if performance.streamed:
            parts = chunks(parts)
        else:
            size = sum(map(len, parts)) + performance.torn
            start, end = opening(200, size), b""
        if performance.torn:
            caller.persistent, end = False, b""
        if not self.pace and not self.chunk:
            await caller.send(start, *parts, end)
            return
        await caller.send(start)
        for part in parts:
            await caller.send(part)
            await self.sleep(self.pace)
        await caller.send(end)


def _find_fault(name: str) -> Fault:
    return FAULTS[name] if name in FAULTS else DISORDER[name]


def _format(request: HttpRequest) -> Format | None:
    return _ROUTES.get(request.path.partition("?")[0]) if request.method == "POST" else None


def _key(request: HttpRequest) -> str | None:
    headers = request.headers
    return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")


def _aside(request: HttpRequest) -> tuple[int, bytes]:
    """Answer whatever is not a model call."""
    path = request.path.partition("?")[0]
    format: Format = "anthropic" if "anthropic-version" in request.headers else "openai"
    if path == "/v1/models" and request.method == "GET":
        return 200, _MODELS
    if path in (*_ROUTES, "/v1/models"):
        return 405, error(format, 405, f"{request.method} is not possible on {path}.")
    return 404, error(format, 404, f"Nothing is at {path}; this is a scripted model.", "unknown_url")
