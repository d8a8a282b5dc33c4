"""TLS with a certificate of our own, and proxies before it."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hone.core.clock import SystemClock
from hone.core.errors import ModelError, Rejected, Unreachable
from hone.models.http.connection import connect, trust
from hone.models.http.route import Route
from tests.models import loopback
from tests.models.loopback import (
    OK,
    Certificate,
    Reader,
    Writer,
    answering,
    client,
    fetch,
    free_port,
    request,
    resolving,
    serving,
)

quiet = loopback.quiet
certificate = loopback.certificate
certified = loopback.certified


def test_a_trusted_server_is_talked_to_over_one_tls_connection(certified: Certificate) -> None:
    async def story() -> None:
        async with serving(answering(OK), certified.server) as site, client() as http:
            for _ in range(3):
                assert await fetch(http, f"https://secure.test:{site.port}/") == b"hello"
            assert site.accepted == 1
            assert certified.names == ["secure.test"]
            assert await fetch(http, site.url) == b"hello"

    resolving(story)
    assert trust.cache_info().misses == 1


def test_a_certificate_for_another_name_is_refused(certified: Certificate) -> None:
    async def story() -> None:
        async with serving(answering(OK), certified.server) as site, client() as http:
            with pytest.raises(Unreachable, match=r"^two.test:\d+ shows a certificate .*mismatch.*\.$"):
                await fetch(http, f"https://two.test:{site.port}/")

    resolving(story)


async def test_a_certificate_nobody_vouches_for_is_refused(
    certified: Certificate, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    async with serving(answering(OK), certified.server) as site, client() as http:
        with pytest.raises(Unreachable, match="shows a certificate that cannot be trusted: self-signed"):
            await fetch(http, site.url)


@pytest.mark.parametrize("greeting", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b""])
async def test_a_server_without_tls_ends_in_a_sentence(greeting: bytes) -> None:
    async def script(reader: Reader, writer: Writer) -> None:
        await reader.read(100)
        writer.write(greeting)
        await writer.drain()

    async with serving(script) as site, client() as http:
        with pytest.raises(Unreachable, match=r"does not speak TLS|broke the connection off"):
            await fetch(http, f"https://127.0.0.1:{site.port}/")


async def test_plain_http_makes_no_tls_context() -> None:
    trust.cache_clear()
    async with serving(answering(OK)) as site, client() as http:
        await fetch(http, site.url)
    assert trust.cache_info().currsize == 0


async def test_words_from_before_the_handshake_are_not_taken_for_an_answer(certified: Certificate) -> None:
    async def script(reader: Reader, writer: Writer) -> None:
        writer.write(OK)
        await writer.start_tls(certified.server)

    async with serving(script) as site:
        with pytest.raises(Unreachable, match="does not speak TLS"):
            await connect(Route(True, "127.0.0.1", site.port), SystemClock())
        connection = await connect(Route(False, "127.0.0.1", site.port), SystemClock())
        await connection.wait()
        with pytest.raises(Unreachable, match="spoke before it was secure"):
            await connection.secure("127.0.0.1")
        connection.abandon()


@dataclass
class Tunnel:
    """A proxy that leads every CONNECT to one port, whatever name it is asked for."""

    port: int = 0
    answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n"
    asked: list[bytes] = field(default_factory=list)

    async def script(self, reader: Reader, writer: Writer) -> None:
        self.asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(self.answer)
        if b" 200 " not in self.answer:
            return
        inner, outer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            await asyncio.gather(pump(reader, outer), pump(inner, writer))
        finally:
            outer.transport.abort()


async def pump(reader: Reader, writer: Writer) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.transport.abort()


async def test_https_goes_through_a_tunnel_that_is_kept(
    certified: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    tunnel = Tunnel()
    async with serving(answering(OK), certified.server) as site, serving(tunnel.script) as proxy:
        tunnel.port = site.port
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:secret@127.0.0.1:{proxy.port}")
        async with client() as http:
            monkeypatch.delenv("HTTPS_PROXY")
            for _ in range(3):
                assert await fetch(http, "https://secure.test/v1") == b"hello"
        assert (proxy.accepted, site.accepted) == (1, 1)
    assert tunnel.asked == [
        b"CONNECT secure.test:443 HTTP/1.1\r\nHost: secure.test:443\r\n"
        b"Proxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\n"
    ]
    assert certified.names == ["secure.test"]


async def test_a_proxy_may_itself_speak_tls(certified: Certificate, monkeypatch: pytest.MonkeyPatch) -> None:
    tunnel = Tunnel()
    async with (
        serving(answering(OK), certified.server) as site,
        serving(tunnel.script, certified.server) as proxy,
    ):
        tunnel.port = site.port
        monkeypatch.setenv("https_proxy", f"https://127.0.0.1:{proxy.port}")
        async with client() as http:
            assert await fetch(http, "https://secure.test/v1") == b"hello"


@pytest.mark.parametrize(
    ("answer", "error", "sentence"),
    [
        (b"HTTP/1.1 407 No\r\n\r\n", Rejected, "wants a user name and a password that it accepts (407)."),
        (b"HTTP/1.1 403 No\r\n\r\n", Unreachable, "does not open the way to secure.test:443 (403)."),
        (b"nonsense", Unreachable, "did not answer in HTTP/1.1."),
        (b"", Unreachable, "closed the connection without an answer."),
        (
            b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            Unreachable,
            "does not open the way to secure.test:443 (200).",
        ),
    ],
)
async def test_a_proxy_that_refuses_is_named(
    answer: bytes, error: type[ModelError], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(Tunnel(answer=answer).script) as proxy:
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{proxy.port}")
        async with client() as http:
            with pytest.raises(error) as failure:
                await fetch(http, "https://secure.test/v1")
        assert str(failure.value) == f"The proxy 127.0.0.1:{proxy.port} {sentence}"


async def test_http_goes_through_a_proxy_in_absolute_form_and_loopback_never(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[bytes] = []

    async def script(reader: Reader, writer: Writer) -> None:
        while True:
            seen.append((await request(reader)).partition(b"\r\n")[0])
            writer.write(OK)

    async with serving(script) as proxy, serving(answering(OK)) as site:
        monkeypatch.setenv("http_proxy", f"127.0.0.1:{proxy.port}")
        async with client() as http:
            assert await fetch(http, "http://plain.test/v1?a=1") == b"hello"
            assert await fetch(http, "http://plain.test:81/") == b"hello"
            assert await fetch(http, site.url) == b"hello"
        assert seen == [b"POST http://plain.test/v1?a=1 HTTP/1.1", b"POST http://plain.test:81/ HTTP/1.1"]


async def test_a_proxy_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
    async with client() as http:
        with pytest.raises(Unreachable, match=rf"^Nothing answers at 127.0.0.1:{port}, where .* proxy is\.$"):
            await fetch(http, "http://plain.test/")
