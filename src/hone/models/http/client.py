"""A small HTTP/1.1 client for streamed answers: reused connections, deadlines, errors in plain sentences."""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from copy import copy
from functools import lru_cache, partial
from typing import Self, TypeAlias
from weakref import WeakKeyDictionary

from hone.core.clock import Clock
from hone.core.errors import Rejected, Unreachable
from hone.core.regex import regex
from hone.models.http.bounds import REMOTE, ReplyBounds, ReplyWatch
from hone.models.http.connection import (
    Admit,
    Dial,
    HeldConnection,
    HttpConnection,
    Resolve,
    connect,
    dial,
    resolve,
)
from hone.models.http.framing import Garbled, Head, Response, ResponseStart, body_of
from hone.models.http.route import Proxies, Route, ServerAddress, locate, read_proxies

__all__ = ["Exchange", "Http", "Response"]

_ONE_WRITE = 64 * 1024
# Servers and proxies forget idle connections after a minute or more, some without notice.
_FRESH = 55.0
_NAME = regex(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = regex(r"[\t\x20-\x7e\x80-\xff]*")
_OURS = frozenset({"accept-encoding", "connection", "content-length", "host", "transfer-encoding"})

Keeper: TypeAlias = AsyncGenerator[None, None]


class Exchange:
    """An answer that is arriving: the head is here, and iteration yields the body."""

    def __init__(self, connection: HttpConnection, head: Head, rest: bytes, watch: ReplyWatch) -> None:
        self.response = head.response
        self._connection = connection
        self._persistent = head.persistent
        self._body = body_of(head.response)
        self._rest = rest
        self._watch = watch

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        body = self._body
        while not body.done:
            data, self._rest = self._rest or await self._connection.read(self._watch), b""
            try:
                payload = b"".join(body.feed(data) if data else body.end())
            except Garbled as garbled:
                raise Unreachable(f"{self._connection.name} {garbled}.") from None
            if payload:
                return payload
        raise StopAsyncIteration

    async def read(self, limit: int | None = None) -> bytes:
        """Return what is left of the body, at most its first `limit` bytes."""
        parts: list[bytes] = []
        size = 0
        while limit is None or size < limit:
            part = await anext(self, b"")
            if not part:
                break
            parts.append(part)
            size += len(part)
        return b"".join(parts)[:limit]

    def distrust(self) -> None:
        """Never use the connection again: the next bytes may still belong to this answer."""
        self._persistent = False

    @property
    def complete(self) -> bool:
        """Whether the body was read to its end and the connection can take another request."""
        body = self._body
        at_end = body.done and not body.surplus and not self._rest
        return at_end and self._persistent and self._connection.quiet


class Pool:
    """The idle connections of one event loop."""

    def __init__(self) -> None:
        self._idle: dict[Route, list[HttpConnection]] = {}
        self._closed = False

    def take(self, route: Route, now: float) -> HttpConnection | None:
        waiting = self._idle.get(route)
        while waiting:
            connection = waiting.pop()
            if connection.quiet and now - connection.rested < _FRESH:
                return connection
            connection.abandon()
        return None

    def put(self, route: Route, connection: HttpConnection) -> None:
        if self._closed:
            connection.abandon()
            return
        connection.rest()
        waiting = self._idle.setdefault(route, [])
        waiting.append(connection)
        while connection.rested - waiting[0].rested >= _FRESH:  # left over from many turns at once
            waiting.pop(0).abandon()

    def close(self) -> None:
        self._closed = True
        for connection in [each for waiting in self._idle.values() for each in waiting]:
            connection.abandon()
        self._idle.clear()


async def _keep(pool: Pool) -> Keeper:
    """Close the pool when an event loop ends: it closes its generators, which is the last chance to close our
    sockets."""
    try:
        yield
    finally:
        pool.close()


class Http:
    """Sends requests over connections that it keeps for later ones. It returns redirects and never follows
    them.

    `admit` is asked about each socket's address and port before it is opened. With it, a proxy of the
    environment is not used, since the proxy would choose the address.
    """

    def __init__(
        self,
        clock: Clock,
        bounds: ReplyBounds = REMOTE,
        *,
        certificates: str = "",
        admit: Admit | None = None,
        resolve: Resolve = resolve,
        dial: Dial = dial,
    ) -> None:
        self.bounds = bounds
        self._clock = clock
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[Pool, Keeper]] = WeakKeyDictionary()
        self._line = HeldConnection(resolve, dial, admit, certificates)
        proxies = read_proxies(os.environ) if admit is None else Proxies()
        subject = "The address of the model server" if admit is None else "The address"
        self._locate = lru_cache(maxsize=64)(partial(locate, proxies=proxies, subject=subject))

    def within(self, bounds: ReplyBounds) -> "Http":
        """Return a client with other bounds that shares the connections of this one."""
        other = copy(self)
        other.bounds = bounds
        return other

    def post(
        self, url: str, headers: Mapping[str, str], body: bytes, watch: ReplyWatch | None = None
    ) -> AbstractAsyncContextManager[Exchange]:
        """Send a POST. A caller that can tell content from other bytes passes a watch, and updates it."""
        return self._exchange("POST", url, headers, body, watch)

    def get(self, url: str, headers: Mapping[str, str]) -> AbstractAsyncContextManager[Exchange]:
        return self._exchange("GET", url, headers, b"", None)

    def delete(self, url: str, headers: Mapping[str, str]) -> AbstractAsyncContextManager[Exchange]:
        return self._exchange("DELETE", url, headers, b"", None)

    async def close(self) -> None:
        """Close the idle connections of this event loop. A later request opens a new one."""
        _, keeper = self._pools.pop(asyncio.get_running_loop(), (None, None))
        if keeper is not None:
            await keeper.aclose()
            await asyncio.sleep(0)

    @asynccontextmanager
    async def _exchange(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, watch: ReplyWatch | None
    ) -> AsyncIterator[Exchange]:
        place = self._locate(url)
        request = encode(method, place, headers, body)
        pool = await self._pool()
        exchange: Exchange | None = None
        connection = pool.take(place.route, self._clock.monotonic())
        used = connection is not None
        if connection is None:
            connection = await connect(place.route, self._clock, self.bounds, self._line)
        watch = watch or ReplyWatch(self.bounds, place.route.authority)
        try:
            try:
                exchange = await self._ask(connection, request, watch)
            except Unreachable:
                if not used or connection.heard:
                    raise
                connection.abandon()
                connection = await connect(place.route, self._clock, self.bounds, self._line)
                exchange = await self._ask(connection, request, watch)
            yield exchange
        finally:
            if exchange is not None and exchange.complete:
                pool.put(place.route, connection)
            else:
                connection.abandon()

    async def _ask(self, connection: HttpConnection, request: list[bytes], watch: ReplyWatch) -> Exchange:
        connection.send(*request)
        watch.send()
        opening = ResponseStart()
        try:
            while True:
                data = await connection.read(watch)
                if not data:
                    opening.end()
                head = opening.feed(data)
                if head is not None:
                    return Exchange(connection, head, opening.rest, watch)
        except Garbled as garbled:
            raise Unreachable(f"{connection.name} {garbled}.") from None

    async def _pool(self) -> Pool:
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            pool = Pool()
            self._pools[loop] = pool, _keep(pool)
            await anext(self._pools[loop][1])
        return self._pools[loop][0]


def encode(method: str, place: ServerAddress, headers: Mapping[str, str], body: bytes) -> list[bytes]:
    """Return the bytes of a request; a small one is a single write."""
    length = "" if method == "GET" else f"Content-Length: {len(body)}\r\n"
    lines = [f"{method} {place.lines}Accept-Encoding: identity\r\n{length}"]
    lines += [_header(name, value.strip()) for name, value in headers.items()]
    if not any(name.lower() == "user-agent" for name in headers):
        lines.append("User-Agent: hone\r\n")
    lines.append("\r\n")
    head = "".join(lines).encode("latin-1")
    return [head + body] if len(body) <= _ONE_WRITE else [head, body]


def _header(name: str, value: str) -> str:
    """Return a header line. An error never repeats the value, which may be a key."""
    if not _NAME.fullmatch(name) or name.lower() in _OURS:
        raise Rejected(f"The header {name!r} cannot be set.")
    if not _VALUE.fullmatch(value):
        raise Rejected(f"The header {name} contains a line break or another character that cannot be sent.")
    return f"{name}: {value}\r\n"
