"""I4: acpx, a third-party client. docs/acp.md has what it showed by hand."""

import asyncio
import os
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path

import pytest

from hone import assistant, call
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import lines, rounds

PATCH = call("patch", path="greet.py", find="Helo", replace="Hello")
SLEEP = call("terminal", command="sleep 600")


class Acpx:
    """The client, with `hone acp` as its agent. It starts agents that outlive a command for a second."""

    def __init__(self, home: Path, folder: Path, stage: FakeProvider) -> None:
        found = shutil.which("acpx")
        if found is None:
            pytest.skip(
                "acpx is not installed: npm install --ignore-scripts acpx@0.19.1, with node 22 or newer"
            )
        agent = ("--agent", f"{sys.executable} -m hone acp --mode ask", "--cwd", str(folder), "--ttl", "1")
        self._command = (found, *agent, "--approve-all")
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder / "client"),
            "HONE_HOME": str(home),
            "HONE_LEARNING": "off",
            "OPENAI_BASE_URL": f"{stage.url}/v1",
            "OPENAI_API_KEY": "sk-test",
        }

    async def start(self, *words: str) -> Process:
        return await asyncio.create_subprocess_exec(
            *(*self._command, *words), env=self._environment, stdin=DEVNULL, stdout=PIPE
        )

    async def run(self, *words: str) -> str:
        process = await self.start(*words)
        out, _ = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == 0, out.decode()
        return out.decode()


@pytest.mark.long
async def test_acpx_drives_a_task_with_an_approval_and_a_diff(home: Path, tmp_path: Path) -> None:
    (tmp_path / "greet.py").write_text('print("Helo, world")\n')
    async with FakeProvider(rounds(assistant("Now.", PATCH), "Fixed.")) as stage:
        said = await Acpx(home, tmp_path, stage).run("exec", "fix the greeting")
    assert (tmp_path / "greet.py").read_text() == 'print("Hello, world")\n'
    for words in ("session/request_permission", "patch greet.py (completed)", "Fixed.", "end_turn"):
        assert words in said, said


@pytest.mark.long
async def test_acpx_cancels_a_turn_and_a_new_agent_continues_the_session(home: Path, tmp_path: Path) -> None:
    async with FakeProvider(lines(assistant("Waiting.", SLEEP), "You asked me to wait.")) as stage:
        acpx = Acpx(home, tmp_path, stage)
        await acpx.run("sessions", "new")
        waiting = await acpx.start("wait for me")
        assert waiting.stdout
        said = await asyncio.wait_for(waiting.stdout.readuntil(b"request_permission"), 60)
        assert "cancel requested" in await acpx.run("cancel")
        said += await asyncio.wait_for(waiting.stdout.read(), 60)
        await waiting.wait()
        assert "[done] cancelled" in said.decode()
        await ended(home)
        assert "You asked me to wait." in await acpx.run("what did I ask?")
        assert "wait for me" in str(stage.requests[-1])


async def ended(home: Path) -> None:
    """Wait until no agent of this home runs any more."""
    mark = f"HONE_HOME={home}".encode()

    def is_running(pid: str) -> bool:
        try:
            return mark in Path("/proc", pid, "environ").read_bytes()
        except OSError:
            return False

    async with asyncio.timeout(60):
        while any(is_running(pid) for pid in os.listdir("/proc") if pid.isdigit()):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
