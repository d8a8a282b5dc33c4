"""One socket to a server: opened directly or through a proxy, read with a deadline, closed immediately."""

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import cache
from threading import Thread
from typing import cast

from msgspec import Struct

from hone.core.clock import Clock
from hone.core.errors import Rejected, Silent, Unreachable
from hone.models.http.bounds import REMOTE, ReplyBounds, ReplyWatch
from hone.models.http.framing import Garbled, ResponseStart
from hone.models.http.route import Proxy, Route, spell

_BUFFER = 256 * 1024
_PATIENCE = 2.0


class HttpConnection(asyncio.Protocol):
    """Bytes that have arrived and were not read yet. `heard`: something arrived since the last request was
    sent.

    This is a protocol and not a StreamReader, which does not tell whether bytes are waiting. An idle
    connection that receives anything, even only its end, must not be used again.
    """

    def __init__(self, name: str, clock: Clock, certificates: str = "") -> None:
        self.name = name
        self.heard = False
        self.resting = False
        self.rested = 0.0
        self._clock = clock
        self._certificates = certificates
        self._transport: asyncio.Transport | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self._over = False
        self._broken = False
        self._waiter: asyncio.Future[None] | None = None

    @property
    def quiet(self) -> bool:
        """Whether the connection is open, with nothing to read."""
        return not self._over and not self._parts

    def send(self, *parts: bytes) -> None:
        """Write everything without waiting: an answer may arrive before the end of the request."""
        self.heard = self.resting = False
        if self._transport is not None:
            for part in parts:
                self._transport.write(part)

    async def read(self, watch: ReplyWatch) -> bytes:
        """Return the next bytes, b"" at the end. Raises what the watch says if they come too late."""
        while not self._parts and not self._over:
            unsent, begun, left = self._unsent(), self._clock.monotonic(), watch.left()
            if left <= 0:
                raise watch.overdue()
            try:
                async with self._clock.timeout(left):
                    await self.wait()
            except TimeoutError:
                if self._unsent() >= unsent:
                    raise watch.overdue() from None
            watch.wait(self._clock.monotonic() - begun)
            if self._unsent() < unsent:
                watch.send()
        data = self.take()
        watch.read(len(data))
        return data

    async def wait(self) -> None:
        """Wait until there is something to read."""
        if not self._parts and not self._over:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None

    def take(self) -> bytes:
        if self._broken and not self._parts:
            raise Unreachable(f"The connection to {self.name} broke off before the answer was complete.")
        data = b"".join(self._parts)
        self._parts.clear()
        if self._size > _BUFFER and self._transport is not None:
            self._transport.resume_reading()
        self._size = 0
        return data

    def rest(self) -> None:
        self.resting, self.rested = True, self._clock.monotonic()

    def abandon(self) -> None:
        """Close without TLS's closing handshake, which could take half a minute."""
        self._over = True
        if self._transport is not None:
            self._transport.abort()

    async def secure(self, host: str) -> None:
        """Add TLS to a connection. Earlier bytes must be gone, or they would look like decrypted ones."""
        if self._transport is None or not self.quiet:
            raise Unreachable(f"{self.name} closed the connection or spoke before it was secure.")
        loop = asyncio.get_running_loop()
        context = trust(self._certificates)
        self._transport = await loop.start_tls(self._transport, self, context, server_hostname=host)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self.resting:
            self.abandon()
            return
        self.heard = True
        self._parts.append(data)
        self._size += len(data)
        if self._size > _BUFFER and self._transport is not None:
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._over = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._over = True
        self._broken = exc is not None
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _unsent(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()


look_up = socket.getaddrinfo


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a name from the system's resolver.

    The thread is a daemon and not part of the loop's pool: a loop that ends waits for its pool, and a name
    server that does not answer would delay the user's Ctrl-C by half a minute.
    """
    if host == "localhost":
        return ["127.0.0.1", "::1"]
    loop = asyncio.get_running_loop()
    found: asyncio.Future[list[str]] = loop.create_future()

    def settle(addresses: list[str] | None, error: Exception | None) -> None:
        if found.done():
            return
        if error is not None:
            found.set_exception(error)
        else:
            found.set_result(addresses or [])

    def ask() -> None:
        addresses: list[str] | None = None
        failure: Exception | None = None
        try:
            infos = look_up(host, port, type=socket.SOCK_STREAM)
            addresses = [str(address[0]) for *_, address in infos]
        except (OSError, UnicodeError) as error:
            failure = error
        with suppress(RuntimeError):  # the loop has ended by now
            loop.call_soon_threadsafe(settle, addresses, failure)

    Thread(target=ask, name="hone-resolver", daemon=True).start()
    return await found


async def dial(connection: HttpConnection, address: str, port: int) -> None:
    await asyncio.get_running_loop().create_connection(lambda: connection, address, port)


Admit = Callable[[str, int], str | None]
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
Dial = Callable[[HttpConnection, str, int], Awaitable[None]]


class HeldConnection(Struct, frozen=True):
    """Turns a host into a socket. `admit` is asked about the exact address and port that `dial` gets next; it
    returns a clause that says why not."""

    resolve: Resolve = resolve
    dial: Dial = dial
    admit: Admit | None = None
    certificates: str = ""
    """A file with certificates to trust besides the system's."""


DIRECT = HeldConnection()


async def connect(
    route: Route, clock: Clock, bounds: ReplyBounds = REMOTE, line: HeldConnection = DIRECT
) -> HttpConnection:
    connection = HttpConnection(route.authority, clock, line.certificates)
    within = bounds.connect
    hop: Route | Proxy = route.proxy or route
    ready = False
    try:
        async with clock.timeout(within):
            await _reach(connection, hop, clock, within, line)
            if hop.secure:
                await connection.secure(hop.host)
            if route.proxy is not None and route.secure:
                await _tunnel(connection, route, route.proxy)
                hop = route
                await connection.secure(route.host)
        ready = True
    except TimeoutError:
        hint = " To wait longer, raise connect of [bounds] in hone.toml." if bounds.settable else ""
        raise Silent(f"{_label(hop)} did not take the connection within {within:g} seconds.{hint}") from None
    except OSError as error:
        raise Unreachable(_explain(error, hop)) from error
    finally:
        if not ready:
            connection.abandon()
    return connection


async def _reach(
    connection: HttpConnection, hop: Route | Proxy, clock: Clock, within: float, line: HeldConnection
) -> None:
    """Try one address after the other: asyncio's own race between them loses a socket if it is cancelled."""
    addresses = await _addresses(hop, line)
    for left, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
        _check(line, hop, address)
        try:
            async with clock.timeout(_PATIENCE if left > 1 else within):
                await line.dial(connection, address, hop.port)
                return
        except OSError:
            if left == 1:
                raise


async def _addresses(hop: Route | Proxy, line: HeldConnection) -> Sequence[str]:
    if ":" in hop.host or hop.host.replace(".", "").isdigit():
        return [hop.host]
    found = await line.resolve(hop.host, hop.port)
    if not found:
        raise socket.gaierror(socket.EAI_NONAME, "no address")
    return found


def _check(line: HeldConnection, hop: Route | Proxy, address: str) -> None:
    fault = None if line.admit is None else line.admit(address, hop.port)
    if fault is not None:
        raise Rejected(f"No connection is made to {spell(hop.host, hop.port)}: {fault}.")


@cache
def trust(certificates: str = "") -> ssl.SSLContext:
    """Load the system's certificates, or those of SSL_CERT_FILE, and those of a file named in the settings.
    Only https:// pays for it: 25 ms, once."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    if certificates:
        try:
            context.load_verify_locations(certificates)
        except OSError as error:
            raise Rejected(
                f"{certificates}, which `certificates` in hone.toml names, cannot be used: {error}."
            ) from error
    return context


async def _tunnel(connection: HttpConnection, route: Route, proxy: Proxy) -> None:
    credentials = f"Proxy-Authorization: {proxy.credentials}\r\n" if proxy.credentials else ""
    place = spell(route.host, route.port)
    connection.send(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{credentials}\r\n".encode())
    opening = ResponseStart()
    try:
        while True:
            await connection.wait()
            data = connection.take()
            if not data:
                opening.end()
            head = opening.feed(data)
            if head is not None:
                break
    except Garbled as garbled:
        raise Unreachable(f"{_label(proxy)} {garbled}.") from None
    if head.response.status == 407:
        raise Rejected(f"{_label(proxy)} wants a user name and a password that it accepts (407).")
    if head.response.status >= 300 or opening.rest:
        raise Unreachable(f"{_label(proxy)} does not open the way to {place} ({head.response.status}).")


def _label(hop: Route | Proxy) -> str:
    return hop.authority if isinstance(hop, Route) else f"The proxy {spell(hop.host, hop.port)}"


def _explain(error: OSError, hop: Route | Proxy) -> str:
    name = _label(hop)
    match error:
        case ssl.SSLCertVerificationError():
            return f"{name} shows a certificate that cannot be trusted: {error.verify_message}."
        case ssl.SSLError():
            return f"{name} does not speak TLS as Hone does ({error.reason})."
        case socket.gaierror():
            return f"No address is known for {hop.host}."
        case ConnectionResetError() | ConnectionAbortedError() | BrokenPipeError():
            return f"{name} broke the connection off before it was ready."
    if error.errno is None or isinstance(error, ConnectionRefusedError):
        role = ", where the environment says a proxy is" if isinstance(hop, Proxy) else ""
        return f"Nothing answers at {spell(hop.host, hop.port)}{role}."
    return f"{name} cannot be reached: {os.strerror(error.errno)}."
