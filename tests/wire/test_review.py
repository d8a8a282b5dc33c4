"""B2, E3 on the wire: a review's first request begins with the bytes of the conversation's last one."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hone import Hone
from hone.core.clock import ManualClock
from hone.core.jobs import State
from hone.core.messages import Message, Role, assistant
from hone.core.model import Usage
from hone.core.topics import NAMES
from hone.core.turn import Origin
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import Script, call
from hone.settings import Settings
from hone.settings.sections import Learning
from tests.conftest import Figures
from tests.wire.test_fork import FORMATS, PLUGIN, assert_extends, converse, name_model, point, script

BOTH = NAMES
NOW = datetime(2026, 11, 15, tzinfo=UTC)
NOTE = call("memory", action="add", target="user", text="User looks for x.", evidence=["look for x"])
WORK = """
import asyncio, sys
from hone import Hone
async def main():
    async with Hone(folder=sys.argv[1]) as hone:
        await hone.background.drain()
asyncio.run(main())
"""


def learning(thinking: bool) -> Script:
    """Talks as the forks' script does, and saves one thing when it is asked to look back."""
    talk = script(thinking)

    def speak(messages: Sequence[Message]) -> Message:
        asked = next(message for message in reversed(messages) if message.role is Role.USER)
        if "look back over this conversation" not in asked.text:
            return talk(messages)  # type: ignore[return-value]
        done = messages[-1].role is Role.TOOL
        return assistant("Saved." if done else NOTE)

    return speak


async def spent(hone: Hone, origin: Origin) -> list[Usage]:
    return [each.usage for each in await hone.sessions.spending() if each.origin is origin]


@pytest.mark.parametrize("wire", FORMATS)
@pytest.mark.parametrize("thinking", [False, True])
@pytest.mark.parametrize("image", [False, True])
@pytest.mark.parametrize("extra", [False, True])
async def test_a_review_reads_the_conversation_from_the_providers_cache(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    figures: Figures,
    wire: str,
    thinking: bool,
    image: bool,
    extra: bool,
) -> None:
    async with FakeProvider(learning(thinking)) as stage:
        point(monkeypatch, wire, stage.url)
        tools, system = (PLUGIN, "Speak like a plugin.") if extra else ([], "")
        async with Hone(folder=tmp_path, tools=tools, system=system) as hone:
            session = await converse(hone, image)
            parent, head = stage.requests[-1].body, session.transcript.head
            first = len(stage.requests)
            whole = len(session.transcript)
            job = await hone.jobs.enqueue(session.id, whole, BOTH, "asked for", NOW)
            entries = await hone.reviewer.work(job.id, lambda _: None)
            usage = (await spent(hone, Origin.REVIEW))[0]
            before = (await spent(hone, Origin.USER))[-1]
            done = await hone.jobs.job(job.id)
            stored = await hone.sessions.load(session.id)
    assert entries
    assert (done.state, done.cached) == (State.DONE, usage.cached / usage.input)
    assert stored.transcript.head == head
    assert_extends(stage.requests[first].body, parent)
    share = usage.cached / before.input
    figures(f"cached share of the parent's last request: {share:.2%}")
    assert share >= 0.99


@pytest.mark.parametrize("wire", FORMATS)
async def test_a_review_by_another_process_begins_with_the_same_bytes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wire: str
) -> None:
    async with FakeProvider(learning(thinking=True)) as stage:
        point(monkeypatch, wire, stage.url)
        settings = Settings(model=name_model(wire), learning=Learning(turns=2))
        async with Hone(folder=tmp_path, settings=settings) as hone:
            await converse(hone, image=True)
            parent = stage.requests[-1].body
            assert len(await hone.jobs.waiting()) == 1
        first = len(stage.requests)
        arguments = [sys.executable, "-c", WORK, str(tmp_path)]
        done = await asyncio.to_thread(subprocess.run, arguments, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert_extends(stage.requests[first].body, parent)


async def test_a_review_of_a_cold_conversation_reads_a_digest_and_rests_on_the_real_messages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clock = ManualClock()
    async with FakeProvider(learning(thinking=False)) as stage:
        point(monkeypatch, "openai", stage.url)
        async with Hone(folder=tmp_path, clock=clock) as hone:
            session = await hone.session()
            await session.send("look for x")
            await session.send(f"{'word ' * 9_000} the end")
            clock.advance(3_600)
            whole, first = len(session.transcript), len(stage.requests)
            job = await hone.jobs.enqueue(session.id, whole, BOTH, "asked for", NOW)
            entries = await hone.reviewer.work(job.id, lambda _: None)
            done = await hone.jobs.job(job.id)
            review = await hone.sessions.load(done.review)
        assert stage.invalid == []
    sent = json.loads(stage.requests[first].body)["messages"]
    assert len(sent) == 2
    assert "#1 user:\nlook for x\n" in sent[1]["content"]
    assert "the end" in sent[1]["content"]
    assert (review.header.shared, review.header.parent) == (0, session.id)
    assert entries
    (evidence,) = entries[0].change.author.evidence
    assert (evidence.session, evidence.message) == (session.id, 1)


async def test_a_review_that_comes_after_the_conversation_was_shortened_reads_what_was_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with FakeProvider(learning(thinking=False)) as stage:
        point(monkeypatch, "openai", stage.url)
        async with Hone(folder=tmp_path) as hone:
            session = await hone.session()
            await session.send("look for x")
            for number in range(8):
                await session.send(f"and {number}?")
            job = await hone.jobs.enqueue(session.id, len(session.transcript), BOTH, "asked for", NOW)
            assert await session.compact()
            await hone.reviewer.work(job.id, lambda _: None)
            done = await hone.jobs.job(job.id)
        asked = json.loads(stage.requests[-1].body)["messages"][1]["content"]
    assert done.state is State.DONE, done.error
    assert all(f"\nand {number}?\n" in asked for number in range(8))
