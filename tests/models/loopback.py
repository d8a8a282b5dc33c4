"""Servers on loopback that send exactly the bytes a test names, and a client that leaves nothing behind.

The fixtures are taken into a test module by assignment: `quiet = loopback.quiet`.
"""

import asyncio
import gc
import logging
import socket
import ssl
import struct
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from hone.core.clock import SystemClock
from hone.models.http import Http, ReplyBounds
from hone.models.http.connection import trust
from tests.conftest import requires

Reader: TypeAlias = asyncio.StreamReader
Writer: TypeAlias = asyncio.StreamWriter
Script = Callable[[Reader, Writer], Awaitable[None]]

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"
STREAM = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
HELLO = b"5\r\nhello\r\n"


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No proxy of whoever runs the tests, nothing left open, no complaint of the event loop."""
    for name in ("http", "https", "all", "no"):
        monkeypatch.delenv(f"{name}_proxy", raising=False)
        monkeypatch.delenv(f"{name}_proxy".upper(), raising=False)
    yield
    gc.collect()
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING] == []


@dataclass
class Site:
    """A server on loopback that counts its connections."""

    script: Script
    url: str = ""
    port: int = 0
    accepted: int = 0
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def accept(self, reader: Reader, writer: Writer) -> None:
        self.accepted += 1
        self.tasks.append(asyncio.create_task(self.run(reader, writer)))

    async def run(self, reader: Reader, writer: Writer) -> None:
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
                await self.script(reader, writer)
        finally:
            writer.transport.abort()


@asynccontextmanager
async def serving(
    script: Script, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[Site]:
    site = Site(script)
    server = await asyncio.start_server(site.accept, host, 0, ssl=tls)
    site.port = server.sockets[0].getsockname()[1]
    site.url = f"{'https' if tls else 'http'}://{host}:{site.port}/v1"
    try:
        yield site
    finally:
        server.close()
        for task in site.tasks:
            task.cancel()
        ends = await asyncio.gather(*site.tasks, return_exceptions=True)
        assert [end for end in ends if isinstance(end, Exception)] == []


async def request(reader: Reader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    return head + await reader.readexactly(int(length or 0))


def answering(*answers: bytes) -> Script:
    """One answer after the other on each connection, the last one again and again."""

    async def script(reader: Reader, writer: Writer) -> None:
        waiting = list(answers)
        while True:
            await request(reader)
            writer.write(waiting.pop(0) if len(waiting) > 1 else waiting[0])

    return script


def once(answer: bytes) -> Script:
    """One answer, then the connection is closed."""

    async def script(reader: Reader, writer: Writer) -> None:
        await request(reader)
        writer.write(answer)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    return script


@asynccontextmanager
async def client(first_byte: float = 60.0, idle: float = 120.0, connect: float = 15.0) -> AsyncIterator[Http]:
    bounds = ReplyBounds(first_byte=first_byte, first_content=idle, silence=idle, connect=connect)
    http = Http(SystemClock(), bounds)
    try:
        yield http
    finally:
        await http.close()


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(100_000):
        if condition():
            return
        await asyncio.sleep(0)
    pytest.fail("it never came to that")


async def turn() -> None:
    """Let the loop go round as often as a byte needs to get across."""
    for _ in range(20):
        await asyncio.sleep(0)


async def fetch(http: Http, url: str, body: bytes = b"{}") -> bytes:
    async with http.post(url, {}, body) as exchange:
        return await exchange.read()


@dataclass(frozen=True)
class Certificate:
    path: Path
    server: ssl.SSLContext
    names: list[str | None]


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    openssl = requires("openssl")
    folder = tmp_path_factory.mktemp("tls")
    path = folder / "both.pem"
    made = ["-keyout", str(folder / "key"), "-out", str(folder / "cert"), "-days", "2", "-nodes"]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    names = ["-subj", "/CN=hone test", "-addext", "subjectAltName=DNS:secure.test,IP:127.0.0.1"]
    subprocess.run([openssl, "req", "-x509", *curve, *names, *made], check=True, capture_output=True)
    path.write_text((folder / "key").read_text() + (folder / "cert").read_text())
    return path


@pytest.fixture
def certified(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Certificate]:
    """A server's certificate that the client trusts through SSL_CERT_FILE."""
    names: list[str | None] = []
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate)
    server.sni_callback = lambda _, name, __: names.append(name)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    trust.cache_clear()
    yield Certificate(certificate, server, names)
    trust.cache_clear()


def linger(writer: Writer) -> None:
    """Let the end of this connection be a reset."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def find_addresses(host: str, port: int, **_: Any) -> list[Any]:
    """Know the addresses of two names, and no other name."""
    hosts = {"two.test": ["127.0.0.1", "127.0.0.2"], "secure.test": ["127.0.0.1"]}.get(host)
    if hosts is None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in hosts]


def resolving(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hone.models.http.connection.look_up", find_addresses)
        asyncio.run(story())
