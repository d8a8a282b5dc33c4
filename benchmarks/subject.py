"""Hone by default: SQLite that waits for the disk, guardrails, redaction, limits; nothing turned off."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from benchmarks.talk import Wire, history, spoken
from hone import Hone
from hone.core.messages import Message, ToolCall, answer, assistant, user
from hone.core.part import Part
from hone.core.ports import Header
from hone.core.tool import Tool
from hone.core.transcript import Source, Transcript
from hone.core.trust import Trust
from hone.runtime.session import Session, new_id
from hone.tools.define import tool


@tool(effects=())
def probe(left: Annotated[int, "how many are left"]) -> str:
    """Look at one thing."""
    return spoken(left)


class Probing(Part):
    def tools(self, folder: Path, source: Source | None = None) -> list[Tool]:
        return [probe]


def register(_: Hone) -> Part:
    """Register the tools as a plugin, for a server."""
    return Probing()


class Subject:
    """Uses the provider in the environment."""

    def __init__(self, home: Path) -> None:
        self._hone = Hone(home=home, folder=home, tools=[probe], learning="queue")

    async def open(self, count: int) -> "Talk":
        """Open a new conversation, or resume a stored one."""
        session = await self._hone.session()
        if count:
            transcript = recorded(session.agent.prefix.digest, history(count))
            header = Header(new_id(), datetime.now(UTC))
            await self._hone.sessions.start(header, session.agent.prefix, transcript.nodes)
            session = await self._hone.resume(header.id)
        return Talk(session)

    async def close(self) -> None:
        await self._hone.close()


class Talk:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def send(self, text: str) -> int:
        """Run one turn. Return how many messages there are after it."""
        turn = await self._session.send(text)
        if turn.error:
            raise SystemExit(f"Hone did not answer: {turn.error}")
        return len(self._session.transcript)


def recorded(root: str, wires: Iterable[Wire]) -> Transcript:
    transcript = Transcript(root)
    for wire in wires:
        transcript = transcript.then(_message(wire), Trust.AGENT, datetime.now(UTC))
    return transcript


def _message(wire: Wire) -> Message:
    text = wire["content"]
    match wire["role"]:
        case "user":
            return user(text)
        case "tool":
            return answer(ToolCall(wire["tool_call_id"], "probe", "{}"), text)
    calls = [
        ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in wire.get("tool_calls", ())
    ]
    return assistant(text, *calls)
