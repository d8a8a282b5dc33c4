"""B2 with a memory backend in use: forks and reviews extend the conversation's bytes, reminders included."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from hone import Hone
from hone.core.permit import REVIEW
from hone.core.turn import Origin
from hone.features.backends.part import MemoryPart
from hone.models.fake_provider import FakeProvider
from hone.settings import Settings
from hone.settings.sections import Memory
from tests.wire.test_fork import (
    FORMATS,
    QUESTION,
    RESUME,
    assert_extends,
    converse,
    name_model,
    point,
    script,
)
from tests.wire.test_review import BOTH, NOW, learning

MEMORY = Memory(backend="sqlite", owner="ann")


async def remember(hone: Hone) -> None:
    backend = hone.part(MemoryPart).backing.make("sqlite")
    for key in ("x", "this"):
        await backend.store("ann", key, f"what to know of {key}", {"trust": "agent"})


@pytest.mark.parametrize("wire", FORMATS)
@pytest.mark.parametrize("image", [False, True])
async def test_a_fork_and_a_review_extend_a_conversation_that_was_reminded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wire: str, image: bool
) -> None:
    async with FakeProvider(learning(thinking=True)) as stage:
        point(monkeypatch, wire, stage.url)
        settings = Settings(model=name_model(wire), memory=MEMORY)
        async with Hone(folder=tmp_path, settings=settings) as hone:
            await remember(hone)
            session = await converse(hone, image)
            parent = stage.requests[-1].body
            assert parent.count(b"<hone-memory>") == 2
            fork = session.fork(REVIEW, Origin.REVIEW)
            turn = await fork.send(QUESTION)
            assert turn.text == "noted"
            assert_extends(stage.requests[-1].body, parent)
            first = len(stage.requests)
            job = await hone.jobs.enqueue(session.id, len(session.transcript), BOTH, "asked for", NOW)
            assert await hone.reviewer.work(job.id, lambda _: None)
        assert_extends(stage.requests[first].body, parent)
        assert stage.requests[first].body.count(b"<hone-memory>") == 2
        assert stage.invalid == []


@pytest.mark.parametrize("wire", FORMATS)
async def test_forks_of_another_process_extend_it_too_also_when_the_memory_has_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wire: str
) -> None:
    monkeypatch.setenv("HONE_MEMORY_BACKEND", "sqlite")
    async with FakeProvider(script(thinking=True)) as stage:
        point(monkeypatch, wire, stage.url)
        settings = Settings(model=name_model(wire), memory=MEMORY)
        async with Hone(folder=tmp_path, settings=settings) as hone:
            await remember(hone)
            session = await converse(hone, image=True)
            parent = stage.requests[-1].body
            await hone.part(MemoryPart).backing.make("sqlite").delete("ann", "x")
        arguments = [sys.executable, "-c", RESUME, session.id, str(tmp_path), QUESTION]
        done = await asyncio.to_thread(subprocess.run, arguments, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert_extends(stage.requests[-1].body, parent)


@pytest.mark.parametrize("wire", FORMATS)
async def test_a_resumed_conversation_goes_on_on_its_own_prefix(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wire: str
) -> None:
    async with FakeProvider(script(thinking=False)) as stage:
        point(monkeypatch, wire, stage.url)
        settings = Settings(model=name_model(wire), memory=MEMORY)
        async with Hone(folder=tmp_path, settings=settings) as hone:
            await remember(hone)
            session = await converse(hone, image=False)
        parent = stage.requests[-1].body
        async with Hone(folder=tmp_path, settings=settings) as hone:
            resumed = await hone.resume(session.id)
            assert resumed.agent.prefix == session.agent.prefix
            await resumed.send("go on")
        assert_extends(stage.requests[-1].body, parent)
