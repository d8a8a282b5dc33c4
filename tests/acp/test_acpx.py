"""I4: acpx, a third-party client. docs/acp.md has what it showed by hand: a cancel and a reload, too."""

import asyncio
import os
import shutil
import sys
from pathlib import Path

import pytest

from hone import assistant, call
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import rounds

PATCH = call("patch", path="greet.py", find="Helo", replace="Hello")


@pytest.mark.long
async def test_acpx_drives_a_task_with_an_approval_and_a_diff(home: Path, tmp_path: Path) -> None:
    acpx = shutil.which("acpx")
    if acpx is None:
        pytest.skip("acpx is not installed: npm install --ignore-scripts acpx@0.19.1, with node 22 or newer")
    (tmp_path / "greet.py").write_text('print("Helo, world")\n')
    async with FakeProvider(rounds(assistant("Now.", PATCH), "Fixed.")) as stage:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path / "client"),
            "HONE_HOME": str(home),
            "HONE_LEARNING": "off",
            "OPENAI_BASE_URL": f"{stage.url}/v1",
            "OPENAI_API_KEY": "sk-test",
        }
        agent = ("--agent", f"{sys.executable} -m hone acp --mode ask", "--cwd", str(tmp_path))
        process = await asyncio.create_subprocess_exec(
            *(acpx, *agent, "--approve-all", "exec", "fix the greeting"),
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await asyncio.wait_for(process.communicate(), 60)
    said = out.decode()
    assert process.returncode == 0, said
    assert (tmp_path / "greet.py").read_text() == 'print("Hello, world")\n'
    for words in ("session/request_permission", "patch greet.py (completed)", "Fixed.", "end_turn"):
        assert words in said, said
