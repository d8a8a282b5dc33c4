"""An editor in this process, connected to `hone acp` in memory, with a scripted model behind it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hone import Hone
from hone.core.model import Model
from hone.core.trust import Trust
from hone.features.acp.editor import Editor
from hone.features.acp.server import AcpServer
from hone.models.scripted import Script, Scripted
from hone.rpc.messages import Call
from hone.rpc.peer import Peer, unknown_method
from hone.settings import Settings
from hone.tools.define import Function
from tests.rpc.pairs import wires

Reply = Callable[[dict[str, Any]], Awaitable[object]]
DEFAULTS = Settings()
FULL: Mapping[str, Any] = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}


def choose(option: str) -> Reply:
    """Answer every permission request with this option."""

    async def reply(_: dict[str, Any]) -> object:
        return {"outcome": {"outcome": "selected", "optionId": option}}

    return reply


@dataclass
class FakeEditor:
    """Records what it is told, and answers what it is asked by method."""

    hone: Hone
    replies: dict[str, Reply] = field(default_factory=dict)
    updates: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    peer: Peer = field(init=False)
    serving: asyncio.Task[None] = field(init=False)

    async def vanish(self) -> None:
        """Close the connection, and wait until Hone has ended."""
        await self.peer._channel.close()
        async with asyncio.timeout(60):
            await self.serving

    async def answer(self, call: Call) -> object:
        params = json.loads(call.params)
        async with self.changed:
            self.asked.append((call.method, params))
            self.changed.notify_all()
        if call.method not in self.replies:
            raise unknown_method(call.method)
        return await self.replies[call.method](params)

    async def hear(self, call: Call) -> None:
        params = json.loads(call.params)
        async with self.changed:
            self.updates.append((params["sessionId"], params["update"]))
            self.changed.notify_all()

    async def until(self, is_there: Callable[[], object]) -> None:
        async with asyncio.timeout(60), self.changed:
            await self.changed.wait_for(lambda: bool(is_there()))

    async def request(self, method: str, **params: Any) -> Any:
        return json.loads(await self.peer.request(method, params))

    async def begin(self, capabilities: Mapping[str, Any] = FULL) -> Any:
        return await self.request("initialize", protocolVersion=1, clientCapabilities=capabilities)

    async def open(self, folder: Path, **more: Any) -> str:
        opened = await self.request("session/new", cwd=str(folder), mcpServers=[], **more)
        id: str = opened["sessionId"]
        return id

    async def prompt(self, session: str, *blocks: str | dict[str, Any]) -> Any:
        sent = [{"type": "text", "text": each} if isinstance(each, str) else each for each in blocks]
        return await self.request("session/prompt", sessionId=session, prompt=sent)

    async def cancel(self, session: str) -> None:
        await self.peer.notify("session/cancel", {"sessionId": session})

    def of(self, kind: str, session: str = "") -> list[dict[str, Any]]:
        """Return the updates of one kind."""
        return [
            update for id, update in self.updates if update["sessionUpdate"] == kind and session in ("", id)
        ]

    def text(self, kind: str = "agent_message_chunk", session: str = "") -> str:
        return "".join(each["content"].get("text", "") for each in self.of(kind, session))

    def statuses(self, call: str) -> list[str]:
        found = (*self.of("tool_call"), *self.of("tool_call_update"))
        return [each["status"] for each in found if each["toolCallId"] == call]


@asynccontextmanager
async def editing(
    script: Script | Model | str,
    *,
    settings: Settings = DEFAULTS,
    voice: Trust = Trust.OWNER,
    mode: str = "",
    tools: Iterable[Function] = (),
) -> AsyncIterator[FakeEditor]:
    """Connect an editor. `script` is what the model says, a model, or the name of one. Leaving closes the
    connection, as an editor does that goes away; then Hone has ended in order."""
    near, far = wires()
    editor = Editor()
    model = Scripted(script) if callable(script) else script
    async with Hone(
        model=model,
        settings=settings,
        ask=editor.ask,
        mode=mode,
        tools=tools,
        learning="queue",
        platform="acp",
    ) as hone:
        client = FakeEditor(hone)
        client.peer = Peer(near, client)
        client.serving = asyncio.create_task(AcpServer(hone, editor, voice=voice).run(far))
        reading = asyncio.create_task(client.peer.run())
        try:
            yield client
        finally:
            await client.vanish()
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
