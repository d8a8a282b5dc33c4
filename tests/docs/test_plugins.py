"""The plugins of docs/plugins.md, saved and named as the page says."""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from hone.core.messages import Message, assistant
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import call
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs" / "plugins.md"
DICE, PARROT = blocks(PAGE, "python")
(SETTINGS,) = blocks(PAGE, "toml")


def throw(messages: Sequence[Message]) -> Message:
    result = messages[-1].result
    if result:
        return assistant(f"You threw {result.text}.")
    return assistant(call("throw_dice", count=2))


async def hone(folder: Path, *arguments: str) -> str:
    found = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hone", *arguments),
        cwd=folder,
        env=os.environ | {"PYTHONPATH": found},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, err.decode()
    return out.decode()


async def test_the_tool_of_a_plugin_is_offered_and_run(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dice.py").write_text(DICE, "utf-8")
    (home / "hone.toml").write_text(SETTINGS, "utf-8")
    async with FakeProvider(throw) as stage:
        monkeypatch.setenv("HONE_MODEL", "openai/scripted")
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{stage.url}/v1")
        answer = await hone(tmp_path, "run", "--quiet", "throw two dice")
    first = json.loads(stage.bodies[0])
    assert "throw_dice" in [tool["function"]["name"] for tool in first["tools"]]
    assert "throw dice instead of inventing" in first["messages"][0]["content"]
    thrown = answer.removeprefix("You threw ").removesuffix(".\n").split()
    assert len(thrown) == 2
    assert set(thrown) <= set("123456")


async def test_the_model_of_a_plugin_answers_to_its_name(tmp_path: Path, home: Path) -> None:
    (tmp_path / "parrot.py").write_text(PARROT, "utf-8")
    (home / "hone.toml").write_text('plugins = ["parrot:register"]', "utf-8")
    answer = await hone(tmp_path, "run", "--quiet", "--model", "parrot/polly", "good morning")
    assert answer == "polly says: good morning\n"
