"""Conversations with servers: a scripted model, a double of a server, and the owner's approvals."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hone import Hone, Notice, Scripted, lines
from hone.core.transcript import Node
from hone.features.mcp.client.catalog import CatalogEntry, approve
from hone.features.mcp.part import McpPart
from hone.settings import Settings
from hone.settings.sections import McpServerSettings, McpSettings

DOUBLE = Path(__file__).with_name("double.py")
ANY = {"type": "object", "properties": {"text": {"type": "string"}}}


def tool(
    name: str, description: str = "", schema: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """A tool as a server offers it."""
    return {"name": name, "description": description or f"Do {name}.", "inputSchema": schema or ANY, **more}


class Double:
    """A server on this machine that does what its state says."""

    def __init__(self, place: Path, *tools: dict[str, Any], **state: Any) -> None:
        self.path = place / "state.json"
        self.write(tools=[*tools], **state)

    def write(self, **state: Any) -> None:
        before = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.path.write_text(json.dumps({**before, **state}))

    @property
    def calls(self) -> list[Any]:
        """What it was called with."""
        file = self.path.with_name("state.json.calls")
        return [*map(json.loads, file.read_text().splitlines())] if file.exists() else []

    def settings(self, program: Path = DOUBLE, **more: Any) -> McpServerSettings:
        """Outside the sandbox, which has tests of its own."""
        known: dict[str, Any] = {"sandbox": False, "timeout": 20.0, **more}
        return McpServerSettings(sys.executable, ("-I", "-S", str(program), str(self.path)), **known)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110  nobody tells it but a file
            await asyncio.sleep(0.01)


def configure(servers: dict[str, McpServerSettings], **more: Any) -> Settings:
    return Settings(mcp=McpSettings(servers), mode=more.pop("mode", "full"), **more)


async def approve_all(hone: Hone, *names: str) -> dict[str, CatalogEntry]:
    """Approve everything that the servers offer, as the owner does with `hone mcp approve`."""
    part = hone.part(McpPart)
    entries = {}
    for name in names:
        server = part.get(name, hone.folder)
        await part.servers.look(server)
        entries[name] = part.catalog.change(server, lambda now: approve(now, now.tools))
    return entries


class Talk:
    """One conversation, and all that was said in it."""

    def __init__(self, hone: Hone, model: Scripted) -> None:
        self.hone = hone
        self.model = model
        self.notices: list[str] = []
        self.nodes: Sequence[Node] = ()

    async def say(self, words: str = "Do it.") -> "Talk":
        session = await self.hone.session()
        async for event in session.stream(words):
            if isinstance(event, Notice):
                self.notices.append(event.text)
        self.nodes = session.transcript.nodes
        self.session = session
        return self

    @property
    def results(self) -> list[Node]:
        return [node for node in self.nodes if node.message.result]

    @property
    def texts(self) -> list[str]:
        return [node.message.result.text for node in self.results if node.message.result]


@asynccontextmanager
async def open_talk(
    folder: Path, servers: dict[str, McpServerSettings], *replies: Any, **more: Any
) -> AsyncIterator[Talk]:
    """A Hone with these servers. What they offer is approved first, in a process of its own as it were."""
    settings = configure(servers, **more.pop("settings", {}))
    async with Hone(model=Scripted(lines("x")), folder=folder, settings=settings, learning="off") as hone:
        await approve_all(hone, *servers)
    model = Scripted(lines(*replies))
    more.setdefault("learning", "off")
    async with Hone(model=model, folder=folder, settings=settings, **more) as hone:
        yield Talk(hone, model)
