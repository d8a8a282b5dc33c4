"""A proxy for one server in the sandbox: it reaches the hosts that the owner declared for it, and no others.

The server runs in a network that contains only this proxy. The proxy decides whether a host may be reached,
by its name and by the exact address of the connection.
"""

import asyncio
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from hone.core.clock import Clock
from hone.core.errors import HoneError, Refused
from hone.core.hosts import LOCAL, HostRule, parse_host
from hone.core.visible import one_line
from hone.models.http.addresses import public_only
from hone.models.http.connection import resolve
from hone.models.http.route import Proxies, Route, ServerAddress, locate, spell
from hone.sandbox.gateway import PORT

CONNECTIONS = 64
"""The most connections that a server may have at once."""
HEAD = 65_536
"""The most bytes of a request's head."""
CHUNK = 65_536
WITHIN = 15.0
"""Seconds for the head of a request, and for a connection."""
NAMED = 20
"""How many refused hosts are remembered."""
_DROPPED = ("host", "connection", "keep-alive", "proxy-")
_STATUS = {400: "Bad Request", 403: "Forbidden", 502: "Bad Gateway", 503: "Service Unavailable"}
_ITSELF = "localhost,127.0.0.1,::1"

Deny = Callable[[str], str]
"""Returns why the owner's rules close a host; empty if they do not. Raises HoneError."""


class _Fault(Exception):
    """A request is answered with a status and a sentence."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def describe_proxy(hosts: Sequence[str]) -> Mapping[str, str]:
    """Return the variables that point a program to the proxy. Local connections bypass it, unless this
    machine is among the hosts."""
    url = f"http://127.0.0.1:{PORT}"
    is_local = any(
        rule.name == LOCAL or rule.covers("127.0.0.1", rule.port) for rule in map(parse_host, hosts)
    )
    values = {
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), url),
        "NO_PROXY": "" if is_local else _ITSELF,
    }
    lower = {name.lower(): value for name, value in values.items()}
    return {**values, **lower, "NODE_USE_ENV_PROXY": "1"}


class HostProxy:
    """Answers at a listener until it is closed. `refused` lists the hosts that were requested in vain."""

    def __init__(self, hosts: Sequence[str], deny: Deny, clock: Clock) -> None:
        self._rules = [*map(parse_host, hosts)]
        self._deny = deny
        self._clock = clock
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.refused: dict[str, str] = {}

    async def serve(self, listener: socket.socket) -> None:
        self._server = await asyncio.start_server(self._accept, sock=listener, limit=HEAD)

    async def close(self) -> None:
        if self._server:
            self._server.close()
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._answer(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._forward(reader, writer)
        except _Fault as fault:
            _refuse(writer, fault)
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            pass  # one of the two has disconnected
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) > CONNECTIONS:
            raise _Fault(503, f"A server has at most {CONNECTIONS} connections at once.")
        async with self._clock.timeout(WITHIN):
            method, address, rest = await _read_head(reader)
        theirs, ours = await self._connect(address.route)
        try:
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                ours.write(f"{method} {address.lines}{rest}Connection: close\r\n\r\n".encode("latin-1"))
            sending = asyncio.create_task(_pump(reader, ours))
            try:
                await _pump(theirs, writer)
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
        finally:
            ours.close()

    async def _connect(self, route: Route) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to a checked address: a name is resolved only once. Raises _Fault."""
        host, port = route.host.rstrip("."), route.port
        rule = next((each for each in self._rules if each.names(host, port)), None)
        if rule is None:
            raise self._note(host, port, "it is not among the hosts of this server")
        try:
            if no := self._deny(host):
                raise self._note(host, port, no)
            async with self._clock.timeout(WITHIN):
                return await self._dial(rule, host, port)
        except (HoneError, OSError, TimeoutError) as error:
            raise _Fault(
                502, f"{spell(host, port)} cannot be reached: {one_line(str(error), 200)}."
            ) from error

    async def _dial(
        self, rule: HostRule, host: str, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        is_address = ":" in host or host.replace(".", "").isdigit()
        failure: OSError = OSError("the name has no address")
        for address in [host] if is_address else await resolve(host, port):
            if fault := self._find_fault(rule, address, port):
                raise self._note(host, port, fault)
            try:
                return await asyncio.open_connection(address, port)
            except OSError as error:
                failure = error
        raise failure

    def _find_fault(self, rule: HostRule, address: str, port: int) -> str | None:
        """Return why an address is closed. A port that the owner wrote down needs no other reason."""
        if any(each.covers(address, port) for each in self._rules):
            return None
        return public_only(address, 443 if rule.port else port)

    def _note(self, host: str, port: int, why: str) -> _Fault:
        place = one_line(spell(host, port), 100)
        sentence = f"Hone made no connection to {place}: {why.rstrip('.')}."
        if len(self.refused) < NAMED:
            self.refused[place] = sentence
        return _Fault(403, sentence)


async def _read_head(reader: asyncio.StreamReader) -> tuple[str, ServerAddress, str]:
    """Return the method, the server, and the headers to pass on. Raises _Fault."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *headers = head[:-4].split("\r\n")
        method, target, _ = first.split(" ")
        if method == "CONNECT":
            return method, locate(f"http://{_check_port(target)}/", Proxies()), ""
        if not target.startswith("http://"):
            raise _Fault(400, "Only http:// is passed on; for https:// ask with CONNECT.")
        return method, locate(target, Proxies(), "The address"), "".join(_keep(headers))
    except asyncio.LimitOverrunError:
        raise _Fault(400, f"The head of a request has at most {HEAD:,} bytes.") from None
    except (ValueError, HoneError) as error:
        raise _Fault(400, f"This request cannot be read: {one_line(str(error), 200)}") from None


def _check_port(target: str) -> str:
    if not target.rpartition(":")[2].isdigit() or any(each in target for each in "/?#@\\"):
        raise Refused("CONNECT needs a host and a port.")
    return target


def _keep(headers: Sequence[str]) -> Iterator[str]:
    """Yield what concerns the server behind the proxy. The host is the checked one."""
    for line in headers:
        if not line.lower().startswith(_DROPPED) and "\n" not in line and "\r" not in line:
            yield f"{line}\r\n"


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


def _refuse(writer: asyncio.StreamWriter, fault: _Fault) -> None:
    body = f"{fault}\n".encode(errors="replace")
    head = f"HTTP/1.1 {fault.status} {_STATUS[fault.status]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
