"""Send one POST to a provider: build the request, read the event stream, and turn refusals into our
errors."""

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import cache
from itertools import groupby
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct

from hone.core.clock import Clock
from hone.core.errors import (
    ModelError,
    Overflow,
    Overloaded,
    Overlong,
    Rejected,
    Silent,
    Unauthorised,
    Unreachable,
)
from hone.core.loading import import_object
from hone.core.model import Piece, Remark, Reply, SpokenPiece, TextBuffer
from hone.core.prefix import Prefix
from hone.core.regex import regex
from hone.core.secrets import conceal, redact
from hone.core.transcript import Node, Transcript
from hone.models.http import Http, ReplyWatch, Response

Value = TypeVar("Value")
Counts = TypeVar("Counts", bound=Struct)

EXPLAIN, EXPLAIN_MUTE = "hone.models.oddities:explain", "hone.models.oddities:explain_mute"
"""Loaded with the first response that is neither an answer nor a refusal."""
READ_DATE = "email.utils:parsedate_to_datetime"
"""Loaded with the first Retry-After that is a date."""
_OVERFLOW = regex(
    r"context.?length|context.?window|context size|maximum context|too many (input )?tokens"
    r"|(prompt|input) is too long|request_too_large"
    r"|exceeds? the (model's |available )?(limit|maximum|context)",
    re.IGNORECASE,
)
MARK = "x-hone"
"""The header that marks every answer of `hone serve`."""
_BODY, _EXCERPT = 64 * 1024, 300
"""Bytes of a refusal to read, and characters of it to show."""
_RETURNED = ("reasoning_content", "reasoning_details", "thought_signature")
_MOST, _DEAREST = 2**40, 1e6
_LINE = 64
"""The size that an empty line counts as: about the memory it takes."""


class Endpoint(Struct, frozen=True):
    """`variable` is the environment variable that holds the key, named when it is missing; `origin` marks the
    parts that only this provider gets back, and `returns` says what it wants back."""

    provider: str
    url: str
    headers: Mapping[str, str] = {}
    variable: str = ""
    origin: str = ""
    returns: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """The values to hide, whatever they look like: those of headers, with and without their scheme."""
        values = [value for name, value in self.headers.items() if not name.endswith("-version")]
        return (*values, *(value.partition(" ")[2] for value in values))

    def quote(self, body: str) -> str:
        """Return the provider's own sentence. All text from a provider reaches an error through this
        method."""
        return excerpt(body, self.keys)

    def __repr__(self) -> str:
        return f"Endpoint(provider={self.provider!r}, url={self.url!r}, variable={self.variable!r})"


async def exchange(
    http: Http, clock: Clock, endpoint: Endpoint, body: bytes, watch: ReplyWatch
) -> AsyncGenerator[Sequence[bytes], None]:
    """Yield batches of event data as they arrive, or the whole body if the server does not stream."""
    headers = {"content-type": "application/json", **endpoint.headers}
    async with http.post(endpoint.url, headers, body, watch) as reply:
        response, start, spoken = reply.response, b"", False
        if is_hone(response.headers):
            raise Rejected(explain_hone(endpoint.provider))
        media_type = response.headers.get("content-type", "")
        if response.status != 200 or "html" in media_type:
            text = (await reply.read(_BODY)).decode("utf-8", "replace")
            after = retry_after(response.headers, clock.now())
            raise _odd(endpoint, response, text) or refusal(endpoint, response.status, text, after)
        if "json" in media_type:
            start = await reply.read(watch.bounds.event + 1)
            watch.hold(len(start))
            if spoken := start.lstrip()[:1] in (b"{", b"["):
                yield (start,)
        else:
            events = Events(watch.hold)
            async for chunk in reply:
                start = start or chunk[:_BODY]
                if datas := events.feed(chunk):
                    spoken = True
                    yield datas
            if datas := events.end():
                spoken = True
                yield datas
            if not watch.has_ended:
                reply.distrust()
        if not spoken:
            raise import_object(EXPLAIN_MUTE)(endpoint, start.decode("utf-8", "replace"))


def _odd(endpoint: Endpoint, response: Response, text: str) -> ModelError | None:
    """Return the error for a response that is neither an answer nor a provider's refusal."""
    status = response.status
    if status == 511 or status < 400 or response.headers.get("content-encoding"):
        error: ModelError | None = import_object(EXPLAIN)(endpoint, response, text)
        return error
    return None


def is_hone(headers: Mapping[str, str]) -> bool:
    """Tell whether an answer comes from `hone serve`."""
    return MARK in headers


def explain_hone(provider: str) -> str:
    return (
        f"The address of {provider} is Hone's own endpoint (hone serve), which needs a model itself. "
        f"Give {provider} the address of a model server, or choose another model with `hone setup`."
    )


class ContentSize:
    """Counts the characters received. Buffers count here and do not refer to their assembly: objects that
    refer to each other stay in memory until Python's garbage collection."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


class Assembly(ABC):
    """Assembles one reply. `is_over`: its end was seen, so later errors do not affect it. `content`: the
    number of characters received, which must grow with everything that is kept; `opened`: the number of
    blocks and calls; `odd`: a field of the reported usage that cannot be right."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.is_over = False
        self.odd = ""
        self.opened = 0
        self._size = ContentSize()
        self._endpoint = endpoint
        self._stop: str | None = None

    @property
    def content(self) -> int:
        return self._size.value

    @content.setter
    def content(self, size: int) -> None:
        self._size.value = size

    @abstractmethod
    def feed(self, data: bytes) -> Iterable[SpokenPiece]:
        """Return the pieces of one event, in full or as it is read."""
        ...

    @abstractmethod
    def reply(self) -> Reply: ...

    def _collect(self) -> TextBuffer:
        """Return a buffer for one text of the reply. Whatever is appended to it counts as content."""
        return CountedBuffer(self._size)

    def _read_usage(self, kind: type[Counts], given: object) -> Counts:
        usage, odd = convert_usage(kind, given)
        self.odd = odd or self.odd
        return usage

    def _open(self, *texts: str) -> None:
        """Count the beginning of a block or call, and its content. An empty one has no content, but endless
        ones reach the limit as well."""
        self.opened += 1
        self.content += sum(map(len, texts))

    def _decoded(self, decode: Callable[[bytes], Value], data: bytes, what: str) -> Value:
        try:
            return decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            who, why = self._endpoint.provider, self._endpoint.quote(str(error))
            raise Unreachable(f"{who} sent something that is not {what}: {why}.") from error

    def _cut_off(self) -> Unreachable:
        return Unreachable(f"{self._endpoint.provider} broke off in the middle of its answer.")


class CountedBuffer(TextBuffer):
    """A text of a reply that counts toward its content."""

    def __init__(self, size: ContentSize) -> None:
        super().__init__()
        self._size = size

    def append(self, text: str) -> None:
        self._write(text)
        self._size.value += len(text)


def refusal(endpoint: Endpoint, status: int, body: str, after: float | None = None) -> ModelError:
    """Return the error for a status and its body."""
    who, said = endpoint.provider, endpoint.quote(body)
    if status in (401, 403):
        store = f"To store one, use `hone keys set {who}`."
        ask = f" Set {endpoint.variable} to a valid key. {store}" if endpoint.variable else ""
        return Unauthorised(f"{who} refused the key ({status}): {said}.{ask}")
    if status == 404:
        hint = f" Or {_set(who, 'openai')}" if endpoint.url.endswith("/responses") else ""
        return Rejected(
            f"{who} does not know this model or address (404): {said}. Check the model's name.{hint}"
        )
    if _OVERFLOW.search(body) and status in (400, 413, 422, 500):
        return Overflow(
            f"The conversation is longer than the model's window: {said}. "
            "Start a new session, or branch this one at an earlier message."
        )
    if status == 400 and "/v1/responses" in body and not endpoint.url.endswith("/responses"):
        return Rejected(f"{who} has another format for this (400): {said}. Please {_set(who, 'responses')}")
    if status == 429 and "quota" in body:
        return Rejected(f"{who} says the quota is used up: {said}.")
    if status in (408, 409, 425, 429) or status >= 500:
        return Overloaded(f"{who} is not able to answer now ({status}): {said}.", after)
    hint = _wanted(endpoint, body) if status in (400, 422) else ""
    return Rejected(f"{who} refused the request ({status}): {said}.{hint}")


def _set(provider: str, value: str, key: str = "format") -> str:
    return f'set {key} = "{value}" in [providers.{provider}] of hone.toml, beside its url and key.'


def _wanted(endpoint: Endpoint, body: str) -> str:
    """Say what to set if a provider misses a part that it gave, or rejects it."""
    named = next((each for each in _RETURNED if each in body), "")
    if endpoint.url.endswith("/responses"):
        value = "nothing" if "encrypted" in body else ""
    else:
        value = "nothing" if named and endpoint.returns == named else named
    return f" If this happens again, {_set(endpoint.provider, value, 'returns')}" if value else ""


def excerpt(body: str, keys: Iterable[str] = ()) -> str:
    """Return the provider's own sentence in one line, whatever the shape of its error. Keys and other secrets
    are removed after unpacking and before it is cut."""
    said: object
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        said = re.sub(r"<[^<>]*>", " ", body)
    while isinstance(said, dict):
        said = said.get("error") or said.get("message") or said.get("detail") or "no reason given"
    safe = redact(conceal(str(said)[:_BODY], keys))
    line = "".join(each if each.isprintable() else " " for each in safe)
    return " ".join(line.split())[:_EXCERPT].rstrip(". ") or "no reason given"


def count(tokens: int | None) -> int:
    """Return a number of tokens from a provider; 0 if it is invalid."""
    return tokens if tokens is not None and 0 <= tokens <= _MOST else 0


def amount(dollars: float | None) -> float | None:
    """Return a cost from a provider; None if it is invalid."""
    return dollars if dollars is not None and 0 <= dollars <= _DEAREST else None


_fields_of = cache(msgspec.structs.fields)


def convert_usage(kind: type[Counts], given: object) -> tuple[Counts, str]:
    """Convert what a provider reports about usage, without unreadable fields: a bad bill must not fail an
    answer. The second value names a field that cannot be right, if there is one."""
    if not isinstance(given, dict):
        return kind(), "" if given is None else "usage"
    try:
        usage, odd = msgspec.convert(given, kind, strict=False), ""
    except (msgspec.ValidationError, OverflowError):
        usage, odd = _readable_fields(kind, given)
    for field in _fields_of(kind):
        value = given.get(field.encode_name)
        if isinstance(value, int | float) and not 0 <= value <= _MOST:
            odd = field.name
    return usage, odd


def _readable_fields(kind: type[Counts], given: Mapping[str, object]) -> tuple[Counts, str]:
    known: dict[str, Any] = {}
    odd = ""
    for field in _fields_of(kind):
        try:
            known[field.name] = msgspec.convert(given.get(field.encode_name), field.type, strict=False)
        except (msgspec.ValidationError, OverflowError):
            odd = field.name
    return kind(**known), odd


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds to wait, from a number or a date."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    if value.replace(".", "", 1).isdecimal():
        return float(value)
    try:
        when: datetime = import_object(READ_DATE)(value)
        return max(0.0, (when - now).total_seconds())
    except (ValueError, TypeError):
        return None


class Events:
    """Takes bytes as they arrive, and returns the data of every complete event. `hold` is asked whether this
    many bytes may be kept for an incomplete one."""

    def __init__(self, hold: Callable[[int], None]) -> None:
        self._hold = hold
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        if not self._rest and not self._data and _is_plain(chunk):
            return [each[5:].removeprefix(b" ") for each in chunk[:-2].split(b"\n\n")]
        complete: list[bytes] = []
        *lines, rest = chunk.split(b"\n")
        if lines and self._rest:
            lines[0] = bytes(self._rest) + lines[0]
            self._rest.clear()
        kept = len(self._data)
        for each in lines:
            line = each.rstrip(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                complete.append(b"\n".join(self._data))
                self._data.clear()
                kept = self._size = 0
        if rest or self._data:
            self._rest += rest
            self._size += sum(len(line) + _LINE for line in self._data[kept:])
            self._hold(len(self._rest) + self._size)
        return complete

    def end(self) -> list[bytes]:
        """Return a last event without its blank line, as some servers end."""
        return self.feed(b"\n\n")


def _is_plain(chunk: bytes) -> bool:
    """Tell whether the bytes are whole events of one `data:` line each, as nearly all servers write them."""
    count = chunk.count(b"\n\n")
    return (
        chunk.startswith(b"data:")
        and chunk.endswith(b"\n\n")
        and chunk.count(b"\n\ndata:") == count - 1
        and chunk.count(b"\n") == 2 * count
        and b"\r" not in chunk
    )


def take_events(
    assembly: Assembly, datas: Iterable[bytes], watch: ReplyWatch
) -> tuple[list[SpokenPiece], ModelError | None]:
    """Return the pieces of a batch of events, and the error if one of them ends the reply."""
    pieces: list[SpokenPiece] = []
    try:
        for data in datas:
            pieces.extend(assembly.feed(data))
            watch.progress(assembly.content, assembly.opened)
            if assembly.is_over:
                watch.end()
    except ModelError as error:
        return pieces, error
    return pieces, None


def join_texts(pieces: Iterable[SpokenPiece]) -> Iterator[SpokenPiece]:
    """Merge neighboring texts of one kind, since each piece passes every wrapper and every screen."""
    for kind, group in groupby(pieces, type):
        yield kind("".join([piece.text for piece in group]))


class WireModel(ABC):
    """A model behind an endpoint. A request is a head, up to its first message, and the rest."""

    assembly: type[Assembly]

    def __init__(self, http: Http, clock: Clock, endpoint: Endpoint) -> None:
        self._http = http
        self._clock = clock
        self._endpoint = endpoint
        self._heads: dict[str, bytes] = {}
        self._has_remarked = False
        self._messages = Joined()

    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        body, assembly = self.body(prefix, transcript), self.assembly(self._endpoint)
        watch = ReplyWatch(self._http.bounds, self._endpoint.provider)
        async with aclosing(exchange(self._http, self._clock, self._endpoint, body, watch)) as events:
            try:
                async for datas in events:
                    pieces, failure = take_events(assembly, datas, watch)
                    for piece in join_texts(pieces):
                        yield piece
                    if failure:
                        raise failure
            except (Unreachable, Silent, Overlong):
                if not assembly.is_over:
                    raise
        reply = assembly.reply()
        if assembly.odd and not self._has_remarked:
            self._has_remarked = True
            yield Remark(
                f"{self._endpoint.provider} reports a usage that cannot be right ({assembly.odd}). "
                "Hone counts it as 0, so tokens and cost may be too low."
            )
        yield reply

    def body(self, prefix: Prefix, transcript: Transcript) -> bytes:
        """Return the request body. `messages` is its last key, so a longer conversation starts with the bytes
        of a shorter one."""
        if prefix.digest not in self._heads:
            self._heads[prefix.digest] = self._head(prefix)
        return b"".join((self._heads[prefix.digest], *self._rest(transcript)))

    @abstractmethod
    def _head(self, prefix: Prefix) -> bytes: ...

    @abstractmethod
    def _rest(self, transcript: Transcript) -> Iterable[bytes]: ...

    @abstractmethod
    def _fragment(self, node: Node, before: Node | None, /) -> bytes: ...


class Joined:
    """The bytes of conversations as they were last sent. The bytes before a node never change, since nodes
    form a chain."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Node, bytes] = WeakKeyDictionary()

    def join(
        self, nodes: Sequence[Node], encode: Callable[[Node, Node | None], bytes], shared: int = 0
    ) -> bytes:
        """Return all nodes as bytes. `encode` returns the bytes of a node, always the same. Bytes up to one
        of the first `shared` nodes stay cached, for the parent continues from there; a conversation that
        shares nothing needs only its latest bytes."""
        if not nodes:
            return b""
        start = len(nodes)
        while start and nodes[start - 1] not in self._known:
            start -= 1
        known = self._known[nodes[start - 1]] if start else b""
        new = (
            encode(nodes[index], nodes[index - 1] if index else None) for index in range(start, len(nodes))
        )
        whole = b"".join((known, *new))
        if start > shared:
            del self._known[nodes[start - 1]]
        self._known[nodes[-1]] = whole
        return whole
