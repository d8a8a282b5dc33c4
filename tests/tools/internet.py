"""An internet in one process: names and addresses that a test makes up, behind all of them one real server on
loopback. What would have been connected to is written down."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from hone.core.clock import Clock, SystemClock
from hone.core.tool import Outcome, Tool
from hone.models.http import Http
from hone.models.http.addresses import public_only
from hone.models.http.connection import HttpConnection
from hone.tools.web.fetch import LIMITS, PageLimits, web_tools
from tests.models.loopback import Reader, Writer, request, serving
from tests.tools.calls import EMPTY, called

PUBLIC = "93.184.215.14"
DEAD = "93.184.215.15"
"""Public as well, but nobody answers there."""

Pages = Callable[[str, str], bytes]
"""What a host answers when asked for a path, to the byte."""


def page(body: str | bytes, kind: str = "text/html; charset=utf-8", status: int = 200) -> bytes:
    data = body.encode() if isinstance(body, str) else body
    declared = f"Content-Type: {kind}\r\n" if kind else ""
    return f"HTTP/1.1 {status} X\r\n{declared}Content-Length: {len(data)}\r\n\r\n".encode() + data


def moved(location: str, status: int = 302, *, closing: bool = False) -> bytes:
    """A kept connection makes a new lookup needless; a closing one forces it."""
    close = "Connection: close\r\n" if closing else ""
    return f"HTTP/1.1 {status} X\r\nLocation: {location}\r\n{close}Content-Length: 0\r\n\r\n".encode()


@dataclass
class Internet:
    """`names` holds what each lookup of a name gives, one after the other, the last one again and again.
    Where `only` is set, a wish to connect to another address is written down and not granted."""

    port: int
    names: dict[str, list[list[str]]] = field(default_factory=dict)
    dialled: list[tuple[str, int]] = field(default_factory=list)
    only: str = ""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """Knows the spellings of an address that a C library knows, and this machine's own name."""
        name = host.rstrip(".")
        if name in self.names:
            answers = self.names[name]
            return answers.pop(0) if len(answers) > 1 else answers[0]
        if name == "localhost" or name.endswith(".localhost"):
            return ["::1", "127.0.0.1"]
        try:
            return [socket.inet_ntoa(socket.inet_aton(name))]
        except OSError:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known") from None

    async def dial(self, connection: HttpConnection, address: str, port: int) -> None:
        if address == DEAD:
            raise ConnectionRefusedError
        self.dialled.append((address, port))
        if self.only and address != self.only:
            raise ConnectionRefusedError
        await asyncio.get_running_loop().create_connection(lambda: connection, "127.0.0.1", self.port)


@asynccontextmanager
async def internet(
    pages: Pages,
    names: Mapping[str, list[list[str]]] | None = None,
    *,
    clock: Clock | None = None,
    limits: PageLimits = LIMITS,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[tuple[Internet, Tool]]:
    """The made-up internet and a web_fetch that lives in it."""

    async def script(reader: Reader, writer: Writer) -> None:
        while True:
            head = (await request(reader)).decode("latin-1")
            host = head.lower().partition("\r\nhost: ")[2].partition("\r\n")[0]
            writer.write(pages(host, head.split(" ")[1]))
            await writer.drain()

    clock = clock or SystemClock()
    async with serving(script, tls) as site:
        net = Internet(site.port, dict(names or {}))
        http = Http(clock, admit=public_only, resolve=net.resolve, dial=net.dial)
        try:
            yield net, web_tools(http, clock=clock, limits=limits)[0]
        finally:
            await http.close()


async def ask(tool: Tool, **arguments: object) -> Outcome:
    return await tool.run(called(tool, **arguments), EMPTY)
