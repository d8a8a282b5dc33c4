"""Streamable HTTP: each message is a POST, and its answer one JSON document or a stream of events."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urljoin, urlsplit

import msgspec

from hone.core.clock import Clock
from hone.core.errors import HoneError, ModelError, Refused
from hone.features.mcp.client.events import EventReader, find_mirrored, routing_headers
from hone.features.mcp.client.tokens import Challenge
from hone.features.mcp.client.wire import MODERN, UNAUTHORIZED
from hone.models.http import Exchange, Http, ReplyBounds
from hone.models.http.addresses import public_only
from hone.rpc.channels import MOST
from hone.rpc.messages import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    Call,
    ConnectionLost,
    Id,
    MalformedMessage,
    RpcError,
    RpcReply,
    decode,
    encode_fault,
)

HELD = 64
"""How many messages may wait to be read before servers have to wait."""
HOPS, TRIES = 3, 3
RETRY = 1.0
"""Seconds before an interrupted stream is continued."""
_BOUNDS = ReplyBounds(
    first_byte=3_600.0, first_content=3_600.0, reply=90_000.0, size=MOST // 2, settable=False
)
_SHORT = 15.0
"""Seconds for a message that has no answer."""
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


def client_for(url: str, hosts: tuple[str, ...], clock: Clock) -> Http:
    """Return a client that opens no socket to a private address, unless the owner named the host or it is
    this machine by name."""
    host = urlsplit(url).hostname or ""
    is_named = host in _LOCAL or host in hosts
    return Http(clock, _BOUNDS, admit=(lambda *_: None) if is_named else public_only)


Authorize = Callable[[Challenge], Awaitable[str]]
"""Returns a new Authorization for a server that requires one. Raises HoneError."""


class HttpChannel:
    """`headers` go with every request, and to no other origin."""

    def __init__(
        self,
        http: Http,
        url: str,
        headers: Mapping[str, str],
        clock: Clock,
        authorize: Authorize | None = None,
    ) -> None:
        self._authorize = authorize
        self._http = http
        self._url = url
        self._headers = dict(headers)
        self._clock = clock
        self._queue: asyncio.Queue[bytes | ConnectionLost] = asyncio.Queue(HELD)
        self._tasks: dict[object, asyncio.Task[None]] = {}
        self._session = ""
        self._version = ""
        self._known: dict[str, Mapping[tuple[str, ...], str]] = {}
        self._handshake: Id | None = None

    errors = ""

    def know(self, tools: Mapping[str, Mapping[str, Any]]) -> None:
        """Remember the schemas of the tools: some arguments are repeated in headers."""
        self._known = {name: find_mirrored(schema) for name, schema in tools.items()}

    async def send(self, message: bytes) -> None:
        said = decode(message)
        if isinstance(said, Call) and said.id is not None:
            if said.method == "initialize":
                self._handshake = said.id
            self._tasks[said.id] = asyncio.create_task(self._ask(message, said, said.id))
        elif isinstance(said, Call) and said.method == "notifications/cancelled":
            await self._cancel(message, said)
        else:
            await self._tell(message)
            if isinstance(said, Call) and said.method == "notifications/initialized":
                self._tasks["stream"] = asyncio.create_task(self._stream())

    async def receive(self) -> bytes:
        found = await self._queue.get()
        if isinstance(found, ConnectionLost):
            raise found
        return found

    async def close(self) -> None:
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._session:
            with suppress(HoneError, TimeoutError):
                async with self._clock.timeout(_SHORT), self._http.delete(self._url, self._own_headers()):
                    pass
        await self._http.close()

    async def _cancel(self, message: bytes, said: Call) -> None:
        """Cancel a request: without a handshake by closing the stream, with one by a message."""
        params = msgspec.json.decode(said.params)
        id = params.get("requestId") if isinstance(params, dict) else None
        if task := self._tasks.get(id):
            task.cancel()
        if self._version:
            await self._tell(message)

    async def _tell(self, message: bytes) -> None:
        try:
            async with self._clock.timeout(_SHORT), self._post(message, {}) as exchange:
                await exchange.read(MOST)
        except (ModelError, TimeoutError) as error:
            raise ConnectionLost(f"The server cannot be reached: {error}") from error

    async def _ask(self, message: bytes, call: Call, id: Id) -> None:
        try:
            try:
                await self._exchange(message, call, id)
            except RpcError as error:
                if not isinstance(error.data, Challenge) or self._authorize is None:
                    raise
                self._headers["Authorization"] = await self._authorize(error.data)
                await self._exchange(message, call, id)
        except RpcError as error:
            await self._queue.put(encode_fault(id, error))
        except (HoneError, ValueError) as error:
            code = UNAUTHORIZED if isinstance(error, Refused) else INTERNAL_ERROR
            await self._queue.put(encode_fault(id, RpcError(code, str(error))))
        finally:
            if self._tasks.get(id) is asyncio.current_task():
                del self._tasks[id]

    async def _exchange(self, message: bytes, call: Call, id: Id) -> None:
        async with self._post(message, routing_headers(call, self._known)) as exchange:
            await self._take(exchange, id)

    async def _take(self, exchange: Exchange, id: Id) -> None:
        response = exchange.response
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status >= 300:
            await self._refuse(exchange, kind, id)
        elif response.status == 202 or kind not in ("application/json", "text/event-stream"):
            raise RpcError(INTERNAL_ERROR, "The server accepted the request and sent no answer.")
        else:
            if id == self._handshake:
                self._session = response.headers.get("mcp-session-id", "")
            if kind == "application/json":
                await self._pass_on(await _read(exchange), id)
            else:
                await self._follow(exchange, id)

    async def _refuse(self, exchange: Exchange, kind: str, id: Id) -> None:
        """Raise the error for a status. The body may contain a better reason."""
        status, headers = exchange.response.status, exchange.response.headers
        if status in (401, 403):
            challenge = Challenge(status, headers.get("www-authenticate", ""))
            raise RpcError(UNAUTHORIZED, f"The server wants to know who asks (status {status}).", challenge)
        if kind == "application/json" and status < 500:
            with suppress(MalformedMessage):
                reply = decode(await _read(exchange))
                if isinstance(reply, RpcReply) and reply.fault:
                    raise RpcError(reply.fault.code, reply.fault.message, reply.fault.data)
        if status == 404 and self._session:
            await self._queue.put(ConnectionLost("The server has ended the session."))
        where = f" to {headers['location'][:200]}, which is not followed" if "location" in headers else ""
        code = METHOD_NOT_FOUND if status in (404, 405) else INTERNAL_ERROR
        raise RpcError(code, f"The server answered with status {status}{where}.")

    async def _follow(self, exchange: Exchange, id: Id) -> None:
        """Pass on events until the answer has arrived. Continue an interrupted stream if possible."""
        events, place = EventReader(MOST), ""
        place, done = await self._drain(exchange, events, place, id)
        for _ in range(TRIES):
            if done:
                return
            if not place:
                break
            await self._clock.sleep(RETRY if events.retry is None else events.retry)
            with suppress(ModelError):
                async with self._get(place) as again:
                    if again.response.status == 200:
                        place, done = await self._drain(again, EventReader(MOST), place, id)
        if not done:
            raise RpcError(INTERNAL_ERROR, "The server closed the stream before it had answered.")

    async def _drain(
        self, exchange: Exchange, events: EventReader, place: str, id: Id | None
    ) -> tuple[str, bool]:
        """Return the position of the stream, and whether it contained the answer to `id`."""
        try:
            async for chunk in exchange:
                for event in events.feed(chunk):
                    place = event.id or place
                    if event.data and await self._pass_on(event.data, id):
                        exchange.distrust()
                        return place, True
        except ModelError:
            if not place:
                raise
        return place, False

    async def _pass_on(self, message: bytes, id: Id | None) -> bool:
        """Queue a message, and tell whether it answers `id`. Noise is passed on: the peer counts it."""
        done = False
        with suppress(MalformedMessage):
            said = decode(message)
            done = isinstance(said, RpcReply) and said.id == id and id is not None
            if done and id == self._handshake and isinstance(said, RpcReply) and said.result:
                found = msgspec.json.decode(said.result)
                self._version = str(found.get("protocolVersion", "")) if isinstance(found, dict) else ""
        await self._queue.put(message)
        return done

    async def _stream(self) -> None:
        """Listen to the server's own messages, if it offers them."""
        place, tries = "", 0
        while tries < TRIES:
            events = EventReader(MOST)
            with suppress(ModelError, ConnectionLost):
                async with self._get(place) as exchange:
                    kind = exchange.response.headers.get("content-type", "")
                    if exchange.response.status != 200 or "event-stream" not in kind:
                        return
                    place, _ = await self._drain(exchange, events, place, None)
            tries += 1
            await self._clock.sleep(RETRY if events.retry is None else events.retry)

    @asynccontextmanager
    async def _post(self, message: bytes, headers: Mapping[str, str]) -> AsyncIterator[Exchange]:
        """Send a POST. Follow redirects within the same origin that keep the method."""
        url = self._url
        sent = {**self._own_headers(), "Content-Type": "application/json", **headers}
        for _ in range(HOPS):
            async with self._http.post(url, sent, message) as exchange:
                location = exchange.response.headers.get("location", "")
                following = urljoin(url, location)
                if exchange.response.status not in (307, 308) or not _is_same(url, following):
                    yield exchange
                    return
            url = following
        raise RpcError(INTERNAL_ERROR, "The server redirects without end.")

    def _get(self, place: str) -> Any:
        last = {"Last-Event-ID": place} if place else {}
        return self._http.get(self._url, {**self._own_headers(), "Accept": "text/event-stream", **last})

    def _own_headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json, text/event-stream", **self._headers}
        if self._session:
            headers["Mcp-Session-Id"] = self._session
        if self._version and self._version != MODERN:
            headers["MCP-Protocol-Version"] = self._version
        return headers


def _is_same(one: str, other: str) -> bool:
    first, second = urlsplit(one), urlsplit(other)
    return (first.scheme, first.hostname, first.port) == (second.scheme, second.hostname, second.port)


async def _read(exchange: Exchange) -> bytes:
    body = await exchange.read(MOST + 1)
    if len(body) > MOST:
        raise RpcError(INTERNAL_ERROR, f"The server sent more than {MOST:,} bytes.")
    return body
