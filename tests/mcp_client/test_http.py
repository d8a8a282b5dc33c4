"""Streamable HTTP: the official SDK as the server in both eras, and servers that keep no rule."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hone.core.clock import SystemClock
from hone.core.errors import HoneError
from hone.features.mcp.client.connection import ServerConnection, _describe
from hone.features.mcp.client.events import EventReader, encode_value, routing_headers
from hone.features.mcp.client.http import HttpChannel, client_for
from hone.features.mcp.client.wire import HANDSHAKE, MODERN, UNAUTHORIZED, envelop
from hone.rpc.messages import Call, ConnectionLost, RpcError
from tests.mcp_client.stage import until

SERVER = '''
import socket, sys, uvicorn
from typing import Annotated
from pydantic import BaseModel
from mcp.server.mcpserver import MCPServer, Context
from mcp.server.mcpserver.resolve import Elicit, Resolve

server = MCPServer("official")

@server.tool()
async def add(a: int, b: int, context: Context) -> int:
    """Add two numbers."""
    await context.report_progress(1, 1, "adding")
    return a + b

class Name(BaseModel):
    name: str

async def who() -> Elicit[Name]:
    return Elicit("Who?", Name)

@server.tool()
async def ask(found: Annotated[Name, Resolve(who)]) -> str:
    """Ask the owner."""
    return found.name

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
print(listener.getsockname()[1], flush=True)
app = server.streamable_http_app()
uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listener])
'''


@pytest.fixture(scope="module")
def official() -> Iterator[str]:
    """The address of a server made with the official SDK."""
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        port = process.stdout.readline().strip()
        yield f"http://127.0.0.1:{port}/mcp"
        process.kill()


async def agree(_: Mapping[str, Any]) -> dict[str, Any]:
    return {"action": "accept", "content": {"name": "Ada"}}


@asynccontextmanager
async def connected(url: str, version: str = "", **headers: str) -> AsyncIterator[ServerConnection]:
    clock = SystemClock()
    connection = ServerConnection(
        HttpChannel(client_for(url, (), clock), url, headers, clock), clock, lambda _: None
    )
    await connection.open(version)
    try:
        yield connection
    finally:
        await connection.close()


@pytest.mark.parametrize("version", ["", HANDSHAKE[0]])
async def test_the_official_server_answers_in_both_eras(official: str, version: str) -> None:
    heard: list[str] = []
    async with connected(official, version) as connection:
        assert connection.facts.version == (version or MODERN)
        tools, _ = await connection.list_all("tools")
        params = {"name": "add", "arguments": {"a": 1, "b": 2}}
        result = await connection.interact("tools/call", params, 30, agree, heard.append)
        asked = await connection.interact("tools/call", {"name": "ask", "arguments": {}}, 30, agree, None)
        with pytest.raises(RpcError):
            await connection.request("no/such", {})
    assert [each["name"] for each in tools] == ["add", "ask"]
    assert result["content"][0]["text"] == "3"
    assert asked["content"][0]["text"] == "Ada"
    assert heard == ["1 of 1 adding"]


Reply = Callable[
    [str, bytes], Awaitable[tuple[int, dict[str, str], bytes]] | tuple[int, dict[str, str], bytes]
]


@asynccontextmanager
async def serve(reply: Reply) -> AsyncIterator[tuple[str, list[str]]]:
    """A server on loopback that answers each request with what `reply` returns for its head and body."""
    heads: list[str] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        heads.append(head)
        lengths = [
            line.partition(":")[2] for line in head.split("\r\n") if line.lower().startswith("content-length")
        ]
        body = await reader.readexactly(int(lengths[0])) if lengths else b""
        found = reply(head, body)
        status, headers, data = found if isinstance(found, tuple) else await found
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(data)}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join((*lines, "", "")).encode() + data)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/mcp", heads
    finally:
        server.close()


def answer(body: bytes, result: object) -> tuple[int, dict[str, str], bytes]:
    said = {"jsonrpc": "2.0", "id": json.loads(body)["id"], "result": result}
    return 200, {"Content-Type": "application/json"}, json.dumps(said).encode()


async def test_a_secret_in_a_header_goes_to_no_other_host() -> None:
    async with serve(lambda *_: (200, {}, b"")) as (_, caught):
        target = "http://localhost:1/elsewhere"
        async with serve(lambda *_: (307, {"Location": target}, b"")) as (url, heads):
            with pytest.raises(HoneError, match="which is not followed"):
                async with connected(url, Authorization="Bearer secret"):
                    pass
    assert caught == []
    assert all("Bearer secret" in head for head in heads)


async def test_a_name_with_a_private_address_is_refused_unless_it_was_declared() -> None:
    clock = SystemClock()

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    for hosts, refused in (((), True), (("inside.example",), False)):
        url = "http://inside.example:9/mcp"
        http = client_for(url, hosts, clock)
        http._line = type(http._line)(resolve, http._line.dial, http._line.admit, "")
        channel = HttpChannel(http, url, {}, clock)
        connection = ServerConnection(channel, clock, lambda _: None)
        with pytest.raises(RpcError) as caught:
            await connection.open()
        assert ("is this machine itself" in str(caught.value)) is refused


async def test_a_server_that_wants_to_know_who_asks_says_so() -> None:
    async with serve(lambda *_: (401, {"WWW-Authenticate": "Bearer"}, b"")) as (url, _):
        with pytest.raises(RpcError) as caught:
            async with connected(url):
                pass
    assert caught.value.code == UNAUTHORIZED


async def test_a_body_without_end_ends_the_call() -> None:
    def reply(head: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        if b"server/discover" in body:
            return answer(body, {"supportedVersions": [MODERN], "capabilities": {"tools": {}}})
        return 200, {"Content-Type": "text/event-stream"}, b"data: " + b"x" * 18_000_000

    async with serve(reply) as (url, _), connected(url) as connection:
        with pytest.raises(RpcError, match="longer than"):
            await connection.list_all("tools")


async def test_an_ended_session_ends_the_connection() -> None:
    def reply(head: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        if b'"initialize"' in body:
            status, headers, data = answer(
                body, {"protocolVersion": HANDSHAKE[0], "capabilities": {"tools": {}}}
            )
            return status, {**headers, "Mcp-Session-Id": "abc"}, data
        return (202, {}, b"") if b"initialized" in body else (404, {}, b"")

    async with serve(reply) as (url, heads), connected(url, HANDSHAKE[0]) as connection:
        with pytest.raises((ConnectionLost, RpcError)):
            await connection.list_all("tools")
        await until(lambda: not connection.is_open)
    assert "Mcp-Session-Id: abc" in heads[1]


def test_events_are_read_however_they_are_cut() -> None:
    stream = b": hello\r\nid: 7\nretry: 1500\ndata: {\ndata: }\n\ndata: x\n\n"
    for size in (1, 3, 1_000):
        reader = EventReader(100_000)
        chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
        events = [event for chunk in chunks for event in reader.feed(chunk)]
        assert [(event.data, event.id) for event in events] == [(b"{\n}", "7"), (b"x", "7")]
        assert reader.retry == 1.5


def test_progress_is_told_whatever_numbers_a_server_sends() -> None:
    assert _describe({"progress": 1, "total": 4, "message": "x"}) == "1 of 4 x"
    for odd in (10**400, float("inf"), float("nan"), True, "9", None, [1]):
        assert _describe({"progress": odd, "total": odd, "message": "x"}) == "x"


def test_headers_repeat_what_a_stateless_request_says(tmp_path: Path) -> None:
    params = envelop({"name": "größe", "arguments": {"region": "eu", "deep": {"n": 3}}})
    call = Call("tools/call", json.dumps(params).encode(), 1)
    headers = routing_headers(call, {"größe": {("region",): "Region", ("deep", "n"): "N"}})
    assert headers == {
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "=?base64?Z3LDtsOfZQ==?=",
        "Mcp-Param-Region": "eu",
        "Mcp-Param-N": "3",
    }
    assert routing_headers(Call("ping", b"{}", 1), {}) == {}
    assert encode_value("plain words") == "plain words"
