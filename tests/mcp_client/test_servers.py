"""Six servers that other people wrote, from the registries: every tool is listed and called, sandboxed."""

import asyncio
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hone import Hone, Scripted, lines
from hone.core.trust import Trust
from hone.core.value import replace
from hone.features.mcp.client.arguments import make_example
from hone.features.mcp.client.bridge import Bridge
from hone.features.mcp.client.catalog import list_offers
from hone.features.mcp.client.stdio import ProcessChannel
from hone.features.mcp.client.wire import HANDSHAKE
from hone.features.mcp.part import McpPart
from hone.models.http import connection
from hone.settings.sections import McpServerSettings
from tests.allowed import WORK
from tests.conftest import Figures
from tests.mcp_client.stage import approve_all, configure, until
from tests.provider import Call, Provider, Say
from tests.rig import context

BIN = Path(sys.executable).parent
NODE = BIN.parent / "node" / "node_modules" / "@modelcontextprotocol"
TOOLS = {"time": 2, "fetch": 1, "git": 12, "everything": 13, "filesystem": 14, "memory": 9}


def find_server(name: str, folder: Path) -> McpServerSettings:
    """How to start a server; skips the test if it is not installed."""
    if name in ("time", "fetch", "git"):
        return McpServerSettings(str(BIN / f"mcp-server-{name}"), folders=(".",))
    script = NODE / f"server-{name}" / "dist" / "index.js"
    if not script.exists() or not shutil.which("node"):
        pytest.skip(f"server-{name} is not installed: scripts/node-packages.sh")
    args = (str(script), *([str(folder)] if name == "filesystem" else []))
    env = {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}
    return McpServerSettings("node", args, env, folders=(".",))


def arguments_for(name: str, tool: str, schema: Any, folder: Path) -> dict[str, Any]:
    """Arguments with which a tool does something here, quickly."""
    made = make_example(schema)
    known: dict[str, Any] = {
        "repo_path": str(folder),
        "path": str(folder / "a.txt"),
        "paths": [str(folder / "a.txt")],
        "timezone": "Europe/Berlin",
        "source_timezone": "Europe/Berlin",
        "target_timezone": "Asia/Tokyo",
        "time": "12:30",
        "url": "http://127.0.0.1:9/",
        "files": ["a.txt"],
        "branch_name": "other",
        "branch_type": "local",
        "target": "HEAD",
        "revision": "HEAD",
        "duration": 1,
        "steps": 1,
    }
    if name == "filesystem" and ("director" in tool or tool == "search_files"):
        known["path"] = str(folder)
    optional = {"duration", "steps"} & set(schema.get("properties", {}))
    return {**made, **{key: known[key] for key in (*made, *optional) if key in known}}


@pytest.mark.parametrize("name", TOOLS)
async def test_each_tool_of_a_real_server_is_listed_and_answers(
    name: str, tmp_path: Path, figures: Figures
) -> None:
    git = ("git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.com")
    (tmp_path / "a.txt").write_text("words\n")
    for words in (("init", "-q"), ("add", "a.txt"), ("commit", "-qm", "first"), ("branch", "other")):
        subprocess.run((*git, *words), check=True)
    settings = configure({name: find_server(name, tmp_path)})
    async with Hone(model=Scripted(lines("x")), folder=tmp_path, settings=settings, learning="off") as hone:
        await approve_all(hone, name)
        part = hone.part(McpPart)
        offers = list_offers(part.find(tmp_path).servers.values(), part.catalog.read())
        bridge = Bridge(part.servers, tmp_path, WORK, hone.clock)
        answered, worked = [], []
        for offer in offers:
            given = arguments_for(name, offer.tool.name, offer.tool.schema, tmp_path)
            outcome = await bridge.call(offer, given, context())
            if outcome.trust is Trust.FOREIGN:
                answered.append(offer.name)
            if not outcome.failed:
                worked.append(offer.name)
    figures(f"{name}: {len(offers)} tools, {len(answered)} answered, {len(worked)} without an error")
    assert len(answered) == len(offers) >= TOOLS[name]


async def test_a_real_server_reports_progress_is_cancelled_and_comes_back_after_a_crash(
    tmp_path: Path,
) -> None:
    settings = configure({"everything": find_server("everything", tmp_path)})
    async with Hone(model=Scripted(lines("x")), folder=tmp_path, settings=settings, learning="off") as hone:
        await approve_all(hone, "everything")
        part = hone.part(McpPart)
        offers = {offer.tool.name: offer for offer in part.offers(tmp_path)}
        heard: list[str] = []

        async def call(name: str, **given: Any) -> str:
            return str(await part.servers.call(offers[name], given, nobody, heard.append))

        assert "completed" in await call("trigger-long-running-operation", duration=1, steps=2)
        assert heard == ["1 of 2", "2 of 2"]
        slow = asyncio.create_task(call("trigger-long-running-operation", duration=600, steps=1_200))
        await until(lambda: len(heard) > 2)
        slow.cancel()
        assert isinstance((await asyncio.gather(slow, return_exceptions=True))[0], asyncio.CancelledError)
        assert "The sum of 1 and 2 is 3" in await call("get-sum", a=1, b=2)
        [running] = part.servers._running.values()
        assert running.connection
        channel = running.connection.channel
        assert isinstance(channel, ProcessChannel)
        await channel._process.stop()
        assert "The sum of 2 and 2 is 4" in await call("get-sum", a=2, b=2)
        assert running.connection.channel is not channel


CHANGING = """
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("changing")

@server.tool()
def old() -> str:
    return "old"

@server.tool()
async def change(context: Context) -> str:
    server.remove_tool("old")
    server.add_tool(lambda: "new", name="new", description="A new tool.")
    await context.session.send_tool_list_changed()
    return "changed"

server.run("stdio")
"""


async def test_the_official_server_announces_a_change_and_request_bytes_stay_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = McpServerSettings(sys.executable, ("-c", CHANGING), sandbox=False, timeout=60.0)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with Provider(Say(calls=[Call.of("1", "demo__change")]), Say("one"), Say("two")) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
        configured = configure({"demo": settings}, model="openai/m")
        async with Hone(folder=tmp_path, settings=configured, learning="off") as hone:
            part = hone.part(McpPart)
            server = part.get("demo", tmp_path)
            # Without a state nothing is announced: lists expire.
            part.catalog.change(server, lambda entry: replace(entry, version=HANDSHAKE[0]))
            entries = await approve_all(hone, "demo")
            assert [*entries["demo"].tools] == ["change", "old"]
            session = await hone.session()
            await session.send("Change.")
            await session.send("And now?")
            assert [*part.catalog.get(server).tools] == ["change", "new"]
    heads = {body.partition(b'"messages":')[0] for body in provider.bodies}
    assert len(heads) == 1
    for shorter, longer in zip(provider.bodies, provider.bodies[1:], strict=False):
        assert longer.startswith(shorter.rstrip(b"]}"))
    assert "demo__old is no longer available" in provider.bodies[2].decode()


async def test_a_real_server_reads_a_page_of_a_host_that_it_declares_and_of_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_up(_: str, port: int, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port))]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 8\r\n\r\nthe page")
        writer.close()

    fetch = replace(find_server("fetch", tmp_path), hosts=("named.example", "127.0.0.1"))
    monkeypatch.setattr(connection, "look_up", look_up)
    async with (
        await asyncio.start_server(answer, "127.0.0.1", 0) as site,
        Hone(
            model=Scripted(lines("x")), folder=tmp_path, settings=configure({"fetch": fetch}), learning="off"
        ) as hone,
    ):
        await approve_all(hone, "fetch")
        part = hone.part(McpPart)
        [offer] = part.offers(tmp_path)
        port = site.sockets[0].getsockname()[1]

        async def call(host: str) -> str:
            given = {"url": f"http://{host}:{port}/"}
            return str(await part.servers.call(offer, given, nobody, lambda _: None))

        assert "the page" in await call("named.example")
        assert "the page" not in await call("other.example")
        printed = part.servers.errors_of(part.get("fetch", tmp_path))
        assert "Hone made no connection to other.example" in printed


async def nobody(_: Mapping[str, Any]) -> dict[str, Any]:
    return {"action": "cancel"}
