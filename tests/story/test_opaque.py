"""What only a provider can read is kept for it, and shown nowhere."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from hone import Hone
from hone.cli.main import perform
from hone.core.ids import SessionId
from hone.core.messages import Message, Role, Thinking, ToolCall, assistant
from hone.core.turn import Stop
from hone.models.fake_provider import FakeProvider
from hone.models.fake_provider.returning import SEAL, Rule
from hone.models.scripted import Script, call, lines
from hone.settings import Settings
from hone.settings.sections import ProviderSettings
from tests.stores.worker import OpenedSessions

KEY = "sk-ant-api03-" + "aB3dE5fG7hJ9" * 7
WIRES: dict[str, tuple[str, Rule]] = {
    "responses": ("responses", ""),
    "openrouter": ("openai", "reasoning_details"),
    "gemini": ("openai", "thought_signature"),
}


def think(thought: str) -> Script:
    def speak(messages: Sequence[Message]) -> Message:
        number = sum(message.role is Role.ASSISTANT for message in messages)
        if messages[-1].role is Role.USER:
            return assistant(Thinking(f"{thought} {number}"), call("todo"))
        return assistant(Thinking(f"{thought} {number}"), f"Answer {number}.")

    return speak


def settings(stage: FakeProvider, wire: str) -> Settings:
    format, returns = WIRES[wire]
    own = ProviderSettings(f"{stage.url}/v1", format, returns=returns)
    return Settings(model="stage/scripted", providers={"stage": own})


async def run(home: Path, *arguments: str, code: int = 0) -> str:
    """What a command prints, in this process."""
    out = StringIO()

    def act() -> int:
        with redirect_stdout(out), redirect_stderr(out):
            return perform(["--home", str(home), *arguments])

    assert await asyncio.to_thread(act) == code, out.getvalue()
    return out.getvalue()


async def opaque(home: Path, id: SessionId) -> list[str]:
    store = OpenedSessions.open(home / "hone.db")
    stored = await store.load(id)
    await store.close()
    parts = [part for message in stored.transcript for part in message.parts]
    return [part.opaque for part in parts if isinstance(part, Thinking | ToolCall) and part.opaque]


@pytest.mark.parametrize("wire", WIRES)
async def test_no_screen_file_or_search_shows_it_and_a_copy_of_the_traces_keeps_it(
    wire: str, home: Path, tmp_path: Path
) -> None:
    file, there = tmp_path / "traces.jsonl", tmp_path / "there"
    async with FakeProvider(think("Thinking"), returns=WIRES[wire][1]) as stage:
        async with Hone(home=home, folder=tmp_path, settings=settings(stage, wire)) as hone:
            session = await hone.session()
            for words in ("begin", "go on"):
                assert (await session.send(words)).stop is Stop.ANSWERED
        kept = await opaque(home, session.id)
        assert len(kept) >= 2
        secrets = [SEAL, "thought_signature", "encrypted", *kept]
        for arguments in (
            ("sessions", "show", session.id),
            ("sessions", "show", session.id, "--full"),
            ("sessions", "export", session.id, "--format", "json"),
            ("sessions", "export", session.id, "--format", "markdown"),
        ):
            shown = await run(home, *arguments)
            assert not [secret for secret in secrets if secret in shown], arguments
        assert "No message contains" in await run(home, "sessions", "search", "gAAAA signature", code=1)
        await run(home, "doctor", "--deep")
        await run(home, "traces", "export", "--raw", "-o", str(file))
        await run(there, "traces", "import", str(file), "--own", "--yes")
        assert await opaque(there, session.id) == kept
        async with Hone(home=there, folder=tmp_path, settings=settings(stage, wire)) as hone:
            turn = await (await hone.resume(session.id)).send("and there?")
        assert (turn.stop, stage.invalid) == (Stop.ANSWERED, [])


HIDDEN = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "A key is needed."}],
    "content": [{"type": "reasoning_text", "text": f"It is {KEY}."}],
    "encrypted_content": f"{SEAL}1",
}
"""Reasoning of which only a part is shown."""


@pytest.mark.parametrize(
    ("wire", "script"),
    [
        ("responses", think(f"The key is {KEY}")),
        ("openrouter", think(f"The key is {KEY}")),
        ("responses", lines(assistant(Thinking("", opaque=json.dumps(HIDDEN)), "I need a key."))),
    ],
)
async def test_traces_for_others_leave_out_reasoning_that_holds_a_secret(
    wire: str, script: Script, home: Path, tmp_path: Path
) -> None:
    async with (
        FakeProvider(script, returns=WIRES[wire][1]) as stage,
        Hone(home=home, folder=tmp_path, settings=settings(stage, wire)) as hone,
    ):
        session = await hone.session()
        await session.send("begin")
    assert any(KEY in each for each in await opaque(home, session.id))
    shared = await run(home, "traces", "export")
    assert not [secret for secret in (KEY, SEAL) if secret in shared]
