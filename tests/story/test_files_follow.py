"""C1: the journal's files follow what an agent notes. Nobody who reads through Hone waits for them."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hone import Hone
from hone.core.messages import assistant
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import Scripted, call, lines, rounds
from tests.cli.driving import environment, hone, terminal
from tests.web.rig import running

TABS = "I always want tabs, never spaces."
WRITTEN = "- User wants tabs, never spaces.\n"
NOTE = call("memory", action="add", target="user", text=WRITTEN[2:].strip(), evidence=[TABS])
KILLED = f"""
import asyncio, os, signal
import hone.app
from hone import Hone
from hone.core.messages import assistant
from hone.models.scripted import Scripted, call, rounds
hone.app.LAG = 3600
note = call("memory", action="add", target="user", text={WRITTEN[2:].strip()!r}, evidence=[{TABS!r}])
async def main():
    async with Hone(model=Scripted(rounds(assistant(note), "Noted.")), learning="off") as hone:
        await (await hone.session()).send({TABS!r})
        os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files follow after an hour."""
    monkeypatch.setattr("hone.app.LAG", 3_600)


@asynccontextmanager
async def noted(home: Path, folder: Path) -> AsyncIterator[Hone]:
    """A process that has noted something and not published it."""
    async with Hone(model=Scripted(rounds(assistant(NOTE), "Noted.", "Hi.")), folder=folder) as it:
        await (await it.session()).send(TABS)
        assert not (home / "USER.md").exists()
        yield it


async def test_when_a_command_has_ended_the_file_has_what_was_learned(home: Path) -> None:
    async with FakeProvider(lines(assistant(NOTE), "Noted.")) as stage:
        ended = await hone("run", TABS, env=environment(home, stage))
    assert ended.code == 0, ended.err
    assert (home / "USER.md").read_text() == WRITTEN


async def test_when_a_chat_has_ended_the_file_has_what_was_learned(home: Path, tmp_path: Path) -> None:
    async with (
        FakeProvider(lines(assistant(NOTE), "Noted.")) as stage,
        terminal(env=environment(home, stage), folder=tmp_path) as user,
    ):
        await user.enter(TABS)
        await user.sees("Noted.")
        assert await user.leave() == 0
    assert (home / "USER.md").read_text() == WRITTEN


@pytest.mark.usefixtures("late")
async def test_the_file_has_it_when_an_application_closes(home: Path, tmp_path: Path) -> None:
    async with noted(home, tmp_path):
        pass
    assert (home / "USER.md").read_text() == WRITTEN


@pytest.mark.usefixtures("late")
async def test_the_next_prompt_has_a_note_before_its_file(home: Path, tmp_path: Path) -> None:
    async with noted(home, tmp_path) as it:
        assert WRITTEN in (await it.session()).agent.prefix.system


@pytest.mark.usefixtures("late")
async def test_a_command_shows_a_note_of_another_process_before_its_file(home: Path, tmp_path: Path) -> None:
    async with noted(home, tmp_path):
        shown = await hone("memory", "show", env=environment(home))
        assert "User wants tabs, never spaces." in shown.out


@pytest.mark.usefixtures("late")
async def test_the_page_shows_a_note_of_another_process_before_its_file(home: Path, tmp_path: Path) -> None:
    async with noted(home, tmp_path), running(home, tmp_path) as visit:
        parts = (await visit.get("/api/journal"))["parts"]
        [user] = [each for each in parts if each["part"] == "user"]
        assert [each["text"] for each in user["entries"]] == ["User wants tabs, never spaces."]


async def test_whoever_comes_after_a_kill_publishes_the_note(home: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED], env=os.environ, check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert not (home / "USER.md").exists()
    await hone("memory", "show", env=environment(home))
    assert (home / "USER.md").read_text() == WRITTEN
