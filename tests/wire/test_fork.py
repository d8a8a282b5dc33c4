"""B2, B3 on the wire: a fork's request extends its parent's last one byte for byte, and its permit holds."""

import asyncio
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from hone import Hone
from hone.core.messages import Image, Message, Part, Role, Thinking, ToolCall, assistant, user
from hone.core.permit import REVIEW, Effect
from hone.core.tool import Tool, ToolKind
from hone.core.turn import Origin, Stop, Turn
from hone.models.cacherules import MARKER
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import Script
from hone.runtime.session import Session
from tests.conftest import Figures
from tests.rig import Puppet

QUESTION = "What did you learn?"
PLUGIN: list[Tool] = [
    Puppet("plugin_read", frozenset({Effect.READ}), readonly=True, kind=ToolKind.RESEARCH),
    Puppet("plugin_note", frozenset({Effect.NOTE})),
    Puppet("plugin_spawn", frozenset({Effect.SPAWN, Effect.NETWORK})),
]
BUILT_IN = [
    *("delegate", "execute_code", "patch", "process", "read_file", "search_files", "terminal", "todo"),
    *("session_search", "web_fetch", "write_file"),
]
KNOWING = ["memory", "skill_manage", "skill_view", "skills_list"]
"""What a review is for."""
ALLOWED = ", ".join(["memory", "plugin_note", "skill_manage", "skill_view", "skills_list", "todo"])
FORMATS = ["openai", "anthropic"]
LONG = "and more of the same, " * 3_000
"""So much that the blocks in which OpenAI counts are less than a hundredth of it."""
RESUME = """
import asyncio, sys
from hone import Hone
from hone.core.turn import Origin
from hone.core.permit import REVIEW
async def main():
    async with Hone(folder=sys.argv[2]) as hone:
        session = await hone.resume(sys.argv[1])
        await session.fork(REVIEW, Origin.REVIEW).send(sys.argv[3])
asyncio.run(main())
"""


def cut(body: bytes) -> bytes:
    assert body.endswith(b"]}")
    return body[:-2].replace(MARKER, b"")


def assert_extends(longer: bytes, shorter: bytes) -> None:
    one, other = cut(longer), cut(shorter)
    shared = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(other))
    around = slice(max(0, shared - 60), shared + 60)
    assert shared == len(other), f"differs at byte {shared}:\n{other[around]!r}\n{one[around]!r}"


def point(monkeypatch: pytest.MonkeyPatch, wire: str, url: str) -> None:
    monkeypatch.setenv("HONE_MODEL", f"{wire}/scripted")
    monkeypatch.setenv(f"{wire.upper()}_API_KEY", "test")
    monkeypatch.setenv(f"{wire.upper()}_BASE_URL", url + "/v1" if wire == "openai" else url)


def script(thinking: bool, forbidden: Sequence[str] = ()) -> Script:
    def speak(messages: Sequence[Message]) -> Message:
        parts: list[Part] = [Thinking("hm", "sealed-by-provider")] if thinking else []
        replies = sum(message.role is Role.ASSISTANT for message in messages)
        questions = [message.text for message in messages if message.role is Role.USER]
        if QUESTION in questions:
            tried = any(message.role is Role.TOOL for message in messages[questions_at(messages) :])
            wanted = [] if tried else [ToolCall(f"f{n}", name, "{}") for n, name in enumerate(forbidden)]
            return assistant(*parts, "noted", *wanted)
        if replies == 0:
            return assistant(*parts, ToolCall("c1", "search_files", '{"pattern": "x"}'))
        return assistant(*parts, f"answer {replies}")

    return speak


def questions_at(messages: Sequence[Message]) -> int:
    return next(number for number, message in enumerate(messages) if message.text == QUESTION)


async def converse(hone: Hone, image: bool) -> Session:
    session = await hone.session()
    await session.send("look for x")
    picture: Iterable[Part] = [Image("image/png", "iVBORw0KGgo=")] if image else []
    turn = await session.send(user(f"and this? {LONG}", *picture))
    assert turn.stop is Stop.ANSWERED, turn.error
    return session


@pytest.mark.parametrize("wire", FORMATS)
@pytest.mark.parametrize("thinking", [False, True])
@pytest.mark.parametrize("image", [False, True])
@pytest.mark.parametrize("extra", [False, True])
async def test_a_forks_first_request_starts_with_its_parents_last_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wire: str, thinking: bool, image: bool, extra: bool
) -> None:
    async with FakeProvider(script(thinking)) as stage:
        point(monkeypatch, wire, stage.url)
        tools, system = (PLUGIN, "Speak like a plugin.") if extra else ([], "")
        async with Hone(folder=tmp_path, tools=tools, system=system) as hone:
            session = await converse(hone, image)
            parent = stage.requests[-1].body
            before = session.transcript.head
            fork = session.fork(REVIEW, Origin.REVIEW)
            turn = await fork.send(QUESTION)
        assert turn.text == "noted"
        assert_extends(stage.requests[-1].body, parent)
        assert fork.agent.prefix is session.agent.prefix
        assert session.transcript.head == before
        assert all(image_ok in parent for image_ok in ([b"iVBORw0KGgo="] if image else []))
        cached = turn.usage[0].cached * 4
        assert cached >= 0.99 * (len(cut(parent)) - 4), (cached, len(parent))


@pytest.mark.parametrize("wire", FORMATS)
async def test_a_fork_made_after_a_resume_in_another_process_starts_with_the_same_bytes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wire: str
) -> None:
    async with FakeProvider(script(thinking=True)) as stage:
        point(monkeypatch, wire, stage.url)
        async with Hone(folder=tmp_path) as hone:
            session = await converse(hone, image=True)
        parent = stage.requests[-1].body
        arguments = [sys.executable, "-c", RESUME, session.id, str(tmp_path), QUESTION]
        done = await asyncio.to_thread(subprocess.run, arguments, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert_extends(stage.requests[-1].body, parent)


async def fork_tries(hone: Hone, stage: FakeProvider) -> Turn:
    session = await converse(hone, image=False)
    return await session.fork(REVIEW, Origin.REVIEW).send(QUESTION)


@pytest.mark.parametrize("wire", FORMATS)
async def test_a_forks_forbidden_calls_are_refused_alone_and_in_a_mixed_batch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wire: str, figures: Figures
) -> None:
    forbidden = [name for name in BUILT_IN if name != "todo"] + ["plugin_read", "plugin_spawn"]
    tried = got_in = 0
    for batch in [*([name] for name in forbidden), ["plugin_note", *forbidden, "todo"]]:
        async with FakeProvider(script(False, batch)) as stage:
            point(monkeypatch, wire, stage.url)
            async with Hone(folder=tmp_path, tools=PLUGIN) as hone:
                turn = await fork_tries(hone, stage)
                toolbox = (await hone.session()).agent.toolbox
        assert sorted(toolbox) == sorted([*BUILT_IN, *KNOWING, *(tool.spec.name for tool in PLUGIN)])
        results = [node.message.result for node in turn.nodes if node.message.result]
        assert len(results) == len(batch)
        for name, result in zip(batch, results, strict=True):
            assert result is not None
            if name in forbidden:
                tried += 1
                got_in += f"is not permitted here. Allowed here: {ALLOWED}." not in result.text
    figures.tally(tried, got_in=got_in, note=f"forbidden calls of a fork, {wire}")
    assert (tried, got_in) == (2 * len(forbidden), 0)
    assert list(tmp_path.iterdir()) == []
