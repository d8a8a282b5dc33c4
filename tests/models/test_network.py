"""Real networks: a proxy that is somebody else's program, a private authority, IPv6, servers that hang up."""

import asyncio
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hone.core.clock import SystemClock
from hone.core.errors import Rejected, Unreachable
from hone.core.turn import Stop
from hone.models.fake_provider import FakeProvider
from hone.models.http import Http
from hone.models.http.connection import trust
from hone.models.scripted import lines
from hone.settings import Settings
from tests.conftest import requires
from tests.faults.furnish import furnish, provider
from tests.models import loopback
from tests.models.loopback import OK, Reader, Writer, answering, fetch, linger, request, serving
from tests.models.test_tls import pump

quiet = loopback.quiet
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Authority:
    """The certificate of a private authority, and a server that it vouches for."""

    path: str
    server: ssl.SSLContext


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    folder, openssl = tmp_path_factory.mktemp("authority"), requires("openssl")

    def run(*words: str) -> None:
        subprocess.run([openssl, *words], cwd=folder, check=True, capture_output=True)

    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    usage = ("-addext", "keyUsage=critical,keyCertSign")  # Python 3.13 insists on it
    run(
        "req",
        "-x509",
        *new,
        "-keyout",
        "ca.key",
        "-out",
        "ca.pem",
        "-days",
        "2",
        "-subj",
        "/CN=private",
        *usage,
    )
    run("req", *new, "-keyout", "leaf.key", "-out", "leaf.csr", "-subj", "/CN=leaf")
    names = ("subjectAltName=DNS:secure.test,IP:127.0.0.1,IP:::1", "basicConstraints=CA:FALSE")
    (folder / "names").write_text("\n".join((*names, "authorityKeyIdentifier=keyid\n")))
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names")
    run("x509", "-req", "-in", "leaf.csr", "-out", "leaf.pem", *signed)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "leaf.pem", folder / "leaf.key")
    return Authority(str(folder / "ca.pem"), server)


@pytest.fixture(scope="module")
def proxy_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of proxy.py, which wants a user name and a password."""
    folder = tmp_path_factory.mktemp("proxy")
    options = ["--hostname", "127.0.0.1", "--port", "0", "--port-file", str(folder / "port"), "--threaded"]
    options += ["--num-acceptors", "1", "--num-workers", "1", "--log-file", str(folder / "log")]
    options += ["--basic-auth", "me:secret", "--data-dir", str(folder)]
    options += ["--plugins", "tests.models.resolver.ResolveTests"]
    command = [sys.executable, "-m", "proxy", *options]
    with subprocess.Popen(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}) as process:
        try:
            yield asyncio.run(read_port(folder / "port", process))
        finally:
            process.terminate()


async def read_port(path: Path, process: subprocess.Popen[bytes]) -> int:
    async with asyncio.timeout(60):
        while process.poll() is None:
            with suppress(OSError, ValueError):
                return int(path.read_text().split()[0])
            await asyncio.sleep(0.02)
    pytest.fail("the proxy did not start")


@asynccontextmanager
async def client(certificates: str = "") -> Any:
    http = Http(SystemClock(), certificates=certificates)
    try:
        yield http
    finally:
        await http.close()


async def test_a_real_proxy_leads_to_a_server_with_a_private_certificate(
    authority: Authority, proxy_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:secret@127.0.0.1:{proxy_port}")
    large = b"x" * 3_000_000
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(large), large)
    async with serving(answering(OK, answer), authority.server) as site, client(authority.path) as http:
        url = f"https://secure.test:{site.port}/"
        assert await fetch(http, url) == b"hello"
        assert await fetch(http, url, bytes(2_000_000)) == large
        assert site.accepted == 1


async def test_a_real_proxy_leads_to_a_plain_server(proxy_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://me:secret@127.0.0.1:{proxy_port}")
    async with serving(answering(OK)) as site, client() as http:
        for _ in range(3):
            assert await fetch(http, f"http://plain.test:{site.port}/v1") == b"hello"


@pytest.mark.parametrize("given", ["", "me:wrong@"])
async def test_a_real_proxy_that_wants_another_password_is_named(
    given: str, proxy_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://{given}127.0.0.1:{proxy_port}")
    async with client() as http:
        with pytest.raises(
            Rejected, match=rf"^The proxy 127.0.0.1:{proxy_port} wants a user name and a pass"
        ):
            await fetch(http, "https://secure.test/")


async def test_a_private_authority_is_trusted_when_it_is_named(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust.cache_clear()
    async with serving(answering(OK), authority.server) as site:
        async with client() as http:
            with pytest.raises(
                Unreachable, match="shows a certificate that cannot be trusted: unable to get"
            ):
                await fetch(http, site.url)
        async with client(authority.path) as http:
            assert await fetch(http, site.url) == b"hello"
        monkeypatch.setenv("SSL_CERT_FILE", authority.path)
        trust.cache_clear()
        async with client() as http:
            assert await fetch(http, site.url) == b"hello"
        trust.cache_clear()
        async with client("/no/such/file.pem") as http:
            with pytest.raises(
                Rejected, match=r"^/no/such/file.pem, which `certificates` in hone.toml names"
            ):
                await fetch(http, site.url)


async def test_the_setting_for_certificates_reaches_the_provider(
    authority: Authority, home: Path, tmp_path: Path
) -> None:
    async with FakeProvider(lines("Here I am.")) as stage:

        async def script(reader: Reader, writer: Writer) -> None:
            inner, outer = await asyncio.open_connection("127.0.0.1", stage.port)
            try:
                await asyncio.gather(pump(reader, outer), pump(inner, writer))
            finally:
                outer.transport.abort()

        settings = Settings(tries=1, certificates=authority.path)
        async with serving(script, authority.server) as site:
            server = provider("openai", f"https://127.0.0.1:{site.port}")
            async with furnish(home, tmp_path, server, settings=settings) as hone:
                turn = await hone.run("are you there?")
    assert (turn.stop, turn.text) == (Stop.ANSWERED, "Here I am.")


async def test_ipv6_is_spoken_by_number_and_by_name(authority: Authority) -> None:
    async with serving(answering(OK), host="::1") as site, client() as http:
        assert await fetch(http, f"http://[::1]:{site.port}/") == b"hello"
        assert await fetch(http, f"http://localhost:{site.port}/") == b"hello"
    async with serving(answering(OK), authority.server, host="::1") as site, client(authority.path) as http:
        assert await fetch(http, f"https://[::1]:{site.port}/") == b"hello"


@pytest.mark.parametrize("how", ["at once", "with the next request", "with a reset"])
async def test_a_server_that_closes_idle_connections_costs_no_answer(how: str) -> None:
    """Between two requests, in the very moment of the next one, and rudely."""

    async def script(reader: Reader, writer: Writer) -> None:
        await request(reader)
        writer.write(OK)
        await writer.drain()
        if how != "at once":
            await reader.read(1)
        if how == "with a reset":
            linger(writer)

    async with serving(script) as site, client() as http:
        for _ in range(20):
            assert await fetch(http, site.url) == b"hello"
        assert site.accepted == 20
