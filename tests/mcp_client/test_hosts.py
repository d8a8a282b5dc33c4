"""A server in the sandbox reaches the hosts that it declares, and nothing else, whatever it tries."""

import asyncio
import os
import shutil
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hone import Hone, Scripted, lines
from hone.core.hosts import parse_host
from hone.features.mcp.client.stdio import NotStarted
from hone.features.mcp.part import McpPart
from hone.models.http import connection
from hone.sandbox import examining
from hone.sandbox.examining import known_modes
from hone.sandbox.modes import LandlockFence
from hone.sandbox.spec import ALL, SandboxMode
from hone.settings.sections import McpServerSettings, PermissionSettings, SandboxSettings
from tests.mcp_client.stage import approve_all, configure
from tests.sandbox.areas import area

REACHING = Path(__file__).with_name("reaching.py")
NAMES = {"named.example": "127.0.0.1", "rebound.example": "127.0.0.1", "other.example": "127.0.0.1"}
Reach = Callable[[str, str], Any]


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the test stand for this machine; each question is noted."""
    asked: list[str] = []

    def look_up(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        if host not in NAMES:
            raise socket.gaierror("no such name")
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (NAMES[host], port))]

    monkeypatch.setattr(connection, "look_up", look_up)
    return asked


@asynccontextmanager
async def site() -> AsyncIterator[int]:
    """A server on this machine that answers every request with its first line and its host."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
        except asyncio.IncompleteReadError as cut:
            head = f"{cut.partial!r}\r\nhost: none"
        host = next(line for line in head.split("\r\n") if line.lower().startswith("host:"))
        body = f"{head.partition(' HTTP')[0]} {host}"
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def started(folder: Path, hosts: Sequence[str], **more: Any) -> AsyncIterator[tuple[Hone, Reach]]:
    shutil.copy(REACHING, folder / "server.py")
    server = McpServerSettings(
        "python3", ("-I", str(folder / "server.py")), folders=(".",), hosts=tuple(hosts)
    )
    settings = configure({"reaching": server}, **more)
    async with Hone(model=Scripted(lines("x")), folder=folder, settings=settings, learning="off") as hone:
        await approve_all(hone, "reaching")
        part = hone.part(McpPart)
        [offer] = part.offers(folder)

        async def reach(way: str, target: str) -> str:
            said = await part.servers.call(offer, {"way": way, "target": target}, nobody, lambda _: None)
            return str(said["content"][0]["text"])

        yield hone, reach


async def nobody(_: Mapping[str, Any]) -> dict[str, Any]:
    return {"action": "cancel"}


@pytest.fixture
def folder() -> Iterator[Path]:
    """Landlock shows a folder where it is, so the way to it has to be open to everybody."""
    with area(os.geteuid()) as place:
        yield place / "folder"


@pytest.fixture(params=known_modes()[:2], ids=lambda mode: mode.name.partition(",")[0])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> SandboxMode:
    """The only sandbox that there is."""
    found: SandboxMode = request.param
    monkeypatch.setattr(examining, "known_modes", lambda: [found])
    return found


@pytest.mark.rights
@pytest.mark.usefixtures("mode")
async def test_a_server_reaches_the_hosts_it_declares_and_no_other(
    folder: Path, looked_up: list[str]
) -> None:
    async with site() as port, started(folder, ["named.example", f"127.0.0.1:{port}"]) as (hone, reach):
        said = await reach("fetch", f"http://named.example:{port}/page?x=1")
        assert said == f"200 GET /page?x=1 Host: named.example:{port}"
        tunnel = f"CONNECT named.example:{port} HTTP/1.1\r\n\r\nGET /secret HTTP/1.1\r\nHost: x\r\n\r\n"
        assert (await reach("send", tunnel)).endswith("GET /secret Host: x")
        odd = f"GET http://named.example:{port}/ HTTP/1.1\r\nHost: other.example\r\nProxy-X: 1\r\n\r\n"
        assert (await reach("send", odd)).endswith(f"Host: named.example:{port}")

        looked_up.clear()
        said = await reach("fetch", f"http://other.example:{port}/")
        assert said.startswith("403 Hone made no connection to other.example")
        assert "not among the hosts" in await reach("send", "CONNECT other.example:443 HTTP/1.1\r\n\r\n")
        smuggled = f"GET http://other.example:{port}/ HTTP/1.1\r\nHost: named.example\r\n\r\n"
        assert "not among the hosts" in await reach("send", smuggled)
        assert looked_up == []
        part = hone.part(McpPart)
        printed = part.servers.errors_of(part.get("reaching", folder))
        assert f"Hone made no connection to other.example:{port}" in printed


@pytest.mark.rights
@pytest.mark.usefixtures("mode")
async def test_a_server_that_passes_by_the_proxy_reaches_nothing(folder: Path) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(("127.0.0.1", 0))
    datagrams.setblocking(False)
    port, heard = listening.getsockname()[1], datagrams.getsockname()[1]
    with listening, datagrams:
        async with started(folder, ["named.example", "127.0.0.1"]) as (_, reach):
            said = [await reach("dial", f"tcp 127.0.0.1 {port}"), await reach("look_up", "named.example")]
            said += [await reach("dial", f"{kind} 192.0.2.1 53") for kind in ("tcp", "udp")]
            await reach("dial", f"udp 127.0.0.1 {heard}")
        assert [each.partition(":")[0] for each in said] == ["refused"] * 4
        with pytest.raises(BlockingIOError):
            datagrams.recv(1)


async def test_a_declared_name_that_stands_for_a_private_address_is_not_reached(
    tmp_path: Path, looked_up: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(["127.0.0.1", "169.254.169.254", "10.0.0.1", "::1", "::ffff:127.0.0.1"])

    def rebind(host: str, port: int, **_: Any) -> list[Any]:
        looked_up.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (next(answers), port))]

    monkeypatch.setattr(connection, "look_up", rebind)
    async with site() as port, started(tmp_path, ["rebound.example", "*.named.example"]) as (_, reach):
        for _ in range(5):
            said = await reach("fetch", f"http://rebound.example:{port}/")
            assert said.startswith("403 Hone made no connection to rebound.example")
        assert len(looked_up) == 5, "the address that was checked is the one that is used"
        for literal in ("127.0.0.1", "[::1]", "2130706433", "0x7f.1", "localhost"):
            assert "not among the hosts" in await reach("send", f"CONNECT {literal}:{port} HTTP/1.1\r\n\r\n")


async def test_a_server_without_hosts_has_no_network_and_no_proxy(tmp_path: Path) -> None:
    async with site() as port, started(tmp_path, []) as (_, reach):
        assert (await reach("dial", f"tcp 127.0.0.1 {port}")).startswith("refused:")
        assert (await reach("dial", "tcp 127.0.0.1 3128")).startswith("refused:")
        assert "refused" in await reach("fetch", f"http://127.0.0.1:{port}/")


@pytest.mark.parametrize(
    "more",
    [
        {"sandbox": SandboxSettings(network="never")},
        {"permissions": PermissionSettings(deny=("web_fetch: *.example",))},
    ],
    ids=["never", "rule"],
)
async def test_what_the_owner_denies_is_denied_to_servers_that_declare_it(
    more: dict[str, Any], tmp_path: Path, looked_up: list[str]
) -> None:
    async with site() as port, started(tmp_path, ["named.example", "127.0.0.1"], **more) as (_, reach):
        said = await reach("fetch", f"http://named.example:{port}/")
        assert said.startswith("403 Hone made no connection to named.example")
        assert looked_up == []


async def test_a_server_with_hosts_is_not_started_where_it_cannot_be_held_to_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = LandlockFence(drop=known_modes()[0].name.endswith("dropped"), mounts=False)
    mode = SandboxMode("landlock", ALL, alone.wrap)
    monkeypatch.setattr(examining, "known_modes", lambda: [mode])
    with pytest.raises(NotStarted, match=r"cannot hold a program to some hosts.*bubblewrap"):
        async with started(folder, ["named.example"]):
            pass


async def test_the_proxy_answers_nonsense_with_a_sentence(tmp_path: Path) -> None:
    async with started(tmp_path, ["named.example"]) as (_, reach):
        for request in (
            "GET / HTTP/1.1\r\n\r\n",
            "CONNECT named.example HTTP/1.1\r\n\r\n",
            "CONNECT named.example:443@other.example:443 HTTP/1.1\r\n\r\n",
            "GET https://named.example/ HTTP/1.1\r\n\r\n",
            "GET http://user@named.example/ HTTP/1.1\r\n\r\n",
            "nonsense\r\n\r\n",
            f"GET http://named.example/{'x' * 70_000} HTTP/1.1\r\n\r\n",
        ):
            assert (await reach("send", request)).startswith("HTTP/1.1 400 ")


@pytest.mark.parametrize(
    ("entry", "host", "port", "meant"),
    [
        ("api.example.com", "api.example.com", 443, True),
        ("api.example.com", "x.api.example.com", 443, False),
        ("*.example.com", "a.b.example.com", 443, True),
        ("*.example.com", "badexample.com", 443, False),
        ("API.Example.com.:8443", "api.example.com", 8443, True),
        ("api.example.com:8443", "api.example.com", 443, False),
        ("10.0.0.0/8", "10.1.2.3", 80, True),
        ("10.0.0.0/8", "11.1.2.3", 80, False),
        ("10.1.2.3:80", "10.1.2.3", 81, False),
        ("[fd00::1]:80", "fd00::1", 80, True),
        ("::1", "::1", 80, True),
        ("*", "anything.example", 80, True),
    ],
)
def test_an_entry_of_hosts_means_what_it_says(entry: str, host: str, port: int, meant: bool) -> None:
    assert parse_host(entry).names(host, port) is meant


@pytest.mark.parametrize(
    "entry", ["", "https://example.com", "example.com/path", "a b", "exa*mple.com", "a:b", "a:99999"]
)
def test_an_entry_that_is_no_host_is_refused_when_the_settings_are_read(entry: str) -> None:
    with pytest.raises(ValueError, match="in hosts is no host"):
        McpServerSettings("x", hosts=(entry,))
