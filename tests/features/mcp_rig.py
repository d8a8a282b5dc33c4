"""A home with something to give to other agents, and a client of `hone mcp` that says what it likes."""

import asyncio
import json
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from hone import Hone
from hone.core.ledger import USER, project
from hone.core.skill import SkillOrigin
from hone.core.visible import path_to_text
from hone.knowledge.journal import Add
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills.folder import Create, WriteFile
from hone.models.scripted import Scripted, lines
from tests.cli.driving import HONE, PATIENCE, environment

SKILL, FILE = "tea-brewing", "references/leaves.md"
DOCUMENT = """\
---
name: tea-brewing
description: "Brew tea: warm the pot first."
version: 1.0
metadata:
  author: me
---

Warm the pot.
"""
LEAVES = "Two spoons.\n"
ENTRY, ABOUT, SAID = "Run the tests with make.", "Drinks tea.", "The kettle is broken, and I keep calm."
SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
OPEN_TO_ALL = "[mcp.clients.friend]\nsessions = true\nuser = true\n"
ENVELOPE = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}
HANDSHAKE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "owner", "version": "1"},
}


async def furnish(home: Path, folder: Path, settings: str = OPEN_TO_ALL) -> None:
    """Give a home a skill with a file, an entry about the project and one about the owner, and a session."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "hone.toml").write_text(settings)
    async with Hone(home=home, folder=folder, model=Scripted(lines("I see.")), learning="off") as hone:
        text = path_to_text(hone.folder)
        await hone.keeper.note([(project(text), Add(ENTRY))], OWNER)
        await hone.keeper.note([(USER, Add(ABOUT))], OWNER)
        await hone.keeper.edit_skill(SKILL, Create(DOCUMENT, SkillOrigin.USER), OWNER)
        await hone.keeper.edit_skill(SKILL, WriteFile(FILE, LEAVES.encode()), OWNER)
        await (await hone.session()).send(f"{SAID} My token is {SECRET}")


class Talk:
    """One `hone mcp`, spoken to line by line."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self._id = 0

    async def ask(self, method: str, params: Mapping[str, Any], *, stateless: bool = True) -> Any:
        """Return the answer to a request: its result, or its error."""
        self._id += 1
        told = {**params, **(ENVELOPE if stateless else {})}
        await self.say({"jsonrpc": "2.0", "id": self._id, "method": method, "params": told})
        answer = await self.hear()
        assert answer.get("id") == self._id, answer
        return answer.get("result", answer.get("error"))

    async def use(self, tool: str, **arguments: Any) -> tuple[str, bool]:
        """Return what a tool says, and whether it refused."""
        result = await self.ask("tools/call", {"name": tool, "arguments": arguments})
        return result["content"][0]["text"], result["isError"]

    async def say(self, message: object) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        await self.process.stdin.drain()

    async def hear(self) -> Any:
        assert self.process.stdout
        async with asyncio.timeout(PATIENCE):
            return json.loads(await self.process.stdout.readline())


@asynccontextmanager
async def talking(home: Path, folder: Path, *arguments: str) -> AsyncIterator[Talk]:
    process = await asyncio.create_subprocess_exec(
        *(*HONE, "mcp", *arguments),
        env=environment(home),
        cwd=folder,
        stdin=PIPE,
        stdout=PIPE,
        limit=32 * 1024 * 1024,
    )
    try:
        yield Talk(process)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
