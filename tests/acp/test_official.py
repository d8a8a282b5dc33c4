"""I4: the official Python client drives `hone acp` as a process. Its models check the shape of every message.

Importing the client takes a second, so it is used in this module only.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from acp import PROTOCOL_VERSION, Client, schema, spawn_agent_process, text_block
from acp.client.connection import ClientSideConnection
from acp.connection import StreamDirection, StreamEvent
from hypothesis import given
from hypothesis import strategies as st

from hone.features.acp.tool_calls import cut_out
from tests.golden import environment
from tests.provider import Call, Provider, Say

OPEN = Call.of("w1", "write_file", path="a.txt", content="new\n")
AGAIN = Call.of("w2", "write_file", path="a.txt", content="newer\n")
TASKS = Call.of("t1", "todo", items=[{"text": "write", "state": "done"}])


@dataclass
class Editor:
    """Allows the first question, and cancels the turn at the second."""

    updates: list[Any] = field(default_factory=list)
    asked: list[Any] = field(default_factory=list)
    connection: Any = None
    raw: list[Any] = field(default_factory=list)

    def observe(self, event: StreamEvent) -> None:
        """The client's models pass over what they cannot read. Nothing of ours may be passed over."""
        params = event.message.get("params", {})
        if event.direction is StreamDirection.INCOMING and event.message.get("method") == "session/update":
            read = schema.SessionNotification.model_validate(params)
            assert read.model_dump(mode="json", by_alias=True, exclude_unset=True) == params
            self.raw.append(params)

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Any, **_: Any
    ) -> schema.RequestPermissionResponse:
        self.asked.append((tool_call, options))
        if len(self.asked) > 1:
            await self.connection.cancel(session_id=session_id)
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        chosen = next(each.option_id for each in options if each.kind == "allow_once")
        return schema.RequestPermissionResponse(
            outcome=schema.AllowedOutcome(outcome="selected", option_id=chosen)
        )

    def of(self, kind: str) -> list[Any]:
        return [each for each in self.updates if each.session_update == kind]

    def text(self, kind: str = "agent_message_chunk") -> str:
        return "".join(each.content.text for each in self.of(kind))


@asynccontextmanager
async def process(
    home: Path, provider: Provider, *options: str
) -> AsyncIterator[tuple[ClientSideConnection, Editor]]:
    editor, command = Editor(), (sys.executable, "-m", "hone", "acp", *options)
    async with (
        asyncio.timeout(60),
        spawn_agent_process(
            cast(Client, editor),
            *command,
            env=environment(home, provider, HONE_LEARNING="off"),
            transport_kwargs={"stderr": None},
            observers=[editor.observe],
        ) as (connection, running),
    ):
        editor.connection = connection
        begun = await connection.initialize(PROTOCOL_VERSION)
        assert begun.protocol_version == PROTOCOL_VERSION
        assert begun.agent_capabilities
        assert begun.agent_capabilities.load_session
        yield connection, editor
    assert running.returncode == 0
    assert len(editor.raw) == len(editor.updates) > 0


async def test_the_official_client_drives_an_approval_a_diff_a_cancel_and_a_reload(
    home: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("old\n")
    replies = Say("", [TASKS]), Say("Now.", [OPEN]), Say("Written."), Say("Again.", [AGAIN]), Say("Hi.")
    with Provider(*replies) as provider:
        async with process(home, provider, "--mode", "ask") as (connection, editor):
            opened = await connection.new_session(cwd=str(tmp_path))
            assert opened.modes
            assert opened.modes.current_mode_id == "ask"
            ended = await connection.prompt(opened.session_id, [text_block("change a.txt")])
            assert (ended.stop_reason, (tmp_path / "a.txt").read_text()) == ("end_turn", "new\n")
            assert editor.text() == "Now.Written."
            assert [each.status for each in editor.of("plan")[0].entries] == ["completed"]
            [done] = [each for each in editor.of("tool_call_update") if each.tool_call_id == "w1"]
            assert (done.content[0].old_text, done.content[0].new_text) == ("old\n", "new\n")
            ended = await connection.prompt(opened.session_id, [text_block("once more")])
            assert (ended.stop_reason, (tmp_path / "a.txt").read_text()) == ("cancelled", "new\n")
        async with process(home, provider) as (connection, editor):
            listed = await connection.list_sessions(cwd=str(tmp_path))
            assert [each.session_id for each in listed.sessions] == [opened.session_id]
            loaded = await connection.load_session(cwd=str(tmp_path), session_id=opened.session_id)
            assert loaded.modes
            assert loaded.modes.current_mode_id == "ask"
            assert editor.text("user_message_chunk") == "change a.txtonce more"
            states = {each.tool_call_id: each.status for each in editor.of("tool_call_update")}
            assert states == {"t1": "completed", "w1": "completed", "w2": "failed"}
            forked = await connection.fork_session(cwd=str(tmp_path), session_id=opened.session_id)
            await connection.set_session_mode(forked.session_id, "auto")
            chosen = await connection.set_config_option("model", forked.session_id, "anthropic/claude-new")
            assert [each.current_value for each in chosen.config_options] == ["anthropic/claude-new"]
            await connection.prompt(forked.session_id, [text_block("hello")])
            assert json.loads(provider.bodies[-1])["model"] == "claude-new"
            await connection.close_session(forked.session_id)


def test_standard_output_carries_messages_only_whatever_is_printed(home: Path, tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(
        "import os\nfrom hone import Part\nprint('at import')\n\n"
        "def part(hone):\n    print('at start')\n    os.write(1, b'below python\\n')\n    return Part()\n"
    )
    (home / "hone.toml").write_text('plugins = ["loud:part"]\n')
    folder = {"cwd": str(tmp_path), "mcpServers": []}
    asked: list[Any] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2024-11-05"}},
        {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": folder},
        {"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": {"sessionId": 7, "prompt": []}},
        "not a message",
    ]
    with Provider() as provider:
        done = subprocess.run(
            (sys.executable, "-m", "hone", "acp"),
            input="".join(f"{json.dumps(each)}\n" for each in asked) + "{\n",
            env=environment(home, provider, PYTHONPATH=str(tmp_path)),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(each["jsonrpc"] == "2.0" for each in messages)
    assert [each["error"]["code"] for each in messages if each.get("id", 0) is None] == [-32600, -32700]
    assert {"at import", "at start", "below python"} <= set(done.stderr.splitlines())


texts = st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "d"]), max_size=12).map("".join)


@given(texts, texts)
def test_what_is_cut_out_of_a_large_file_stands_for_the_whole_change(old: str, new: str) -> None:
    before, after = cut_out(old, new)
    head, found, tail = old.partition(before) if before else ("", "", old)
    assert found == before
    if before and old.count(before) == 1:
        assert new == f"{head}{after}{tail}"


@pytest.mark.parametrize("kind", ["PromptResponse", "NewSessionResponse", "SessionNotification"])
def test_the_judge_refuses_what_does_not_fit(kind: str) -> None:
    """The client's models are no rubber stamp."""
    with pytest.raises(ValueError, match="validation error"):
        getattr(schema, kind).model_validate({"stopReason": "bored", "update": {"sessionUpdate": "x"}})
