"""B1, B8: the prefix stays as it was begun, whatever the day, the process or the order, and it is small."""

import asyncio
import os
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone import Hone
from hone.core.clock import ManualClock
from hone.core.messages import canonical
from hone.core.model import Model
from hone.core.prefix import Prefix
from hone.core.tool import Tool
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import Scripted, lines
from hone.prompt.compose import compose
from hone.settings import Settings
from hone.settings.sections import ProviderSettings
from tests.conftest import Figures
from tests.given import NOON
from tests.rig import Puppet

FIRST_REQUEST = 10_500
TOOLS = [Puppet(name) for name in ("alpha", "beta", "gamma", "delta")]
DIGEST = """
import asyncio, sys
from hone import Hone
from hone.models.scripted import Scripted, lines
async def main():
    async with Hone(model=Scripted(lines("hi")), folder=sys.argv[1]) as hone:
        print((await hone.session()).agent.prefix.encode().decode())
asyncio.run(main())
"""


@given(st.permutations(TOOLS), st.permutations(["temperature", "top_p", "seed"]))
def test_no_order_of_tools_or_settings_reaches_the_prefix(tools: list[Puppet], keys: list[str]) -> None:
    again = compose("openai/m", ["You are a test."], tools, dict.fromkeys(keys, 1))
    first = compose("openai/m", ["You are a test."], TOOLS, {"seed": 1, "temperature": 1, "top_p": 1})
    assert again.encode() == first.encode()
    assert again.sampling == canonical({"seed": 1, "temperature": 1, "top_p": 1})


def test_two_processes_compose_the_same_bytes(tmp_path: Path) -> None:
    def printed(seed: str) -> str:
        command = [sys.executable, "-c", DIGEST, str(tmp_path)]
        environment = os.environ | {"PYTHONHASHSEED": seed}
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True, timeout=60
        ).stdout

    assert printed("1") == printed("2")


async def talk(
    model: Model, folder: Path, at: datetime, session: str = "", *tools: Tool
) -> tuple[str, list[str]]:
    """One message in a new session, or in an old one; the session's id, and what Hone said beside it."""
    async with Hone(model=model, folder=folder, tools=tools, clock=ManualClock(at)) as hone:
        chosen = await (hone.resume(session) if session else hone.session())
        await chosen.send("hello")
        stored = await hone.sessions.load(chosen.id)
        assert stored.prefix == chosen.agent.prefix
        return chosen.id, hone.notices


def asked_with(model: Scripted) -> list[Prefix]:
    return [prefix for prefix, _ in model.calls]


async def test_a_session_goes_on_with_its_own_prefix_on_another_day(tmp_path: Path) -> None:
    model = Scripted(lines("hi"))
    session, _ = await talk(model, tmp_path, NOON)
    await talk(model, tmp_path, NOON + timedelta(minutes=1))
    await talk(model, tmp_path, NOON + timedelta(days=3))
    _, notices = await talk(model, tmp_path, NOON + timedelta(days=3), session)
    begun, same_day, another_day, resumed = asked_with(model)
    assert resumed.encode() == begun.encode() == same_day.encode()
    assert another_day.encode() != begun.encode()
    assert notices == []


async def test_another_set_of_tools_opens_a_new_segment_with_the_same_contents_and_says_so(
    tmp_path: Path,
) -> None:
    model = Scripted(lines("hi"))
    session, _ = await talk(model, tmp_path, NOON)
    _, notices = await talk(model, tmp_path, NOON, session, Puppet("extra"))
    begun, resumed = asked_with(model)
    assert "extra" in "".join(resumed.tools)
    assert "extra" not in "".join(begun.tools)
    assert len(notices) == 1
    before, after = (transcript for _, transcript in model.calls)
    assert after.root == resumed.digest
    assert [node.digest for node in after.nodes[:1]] == [node.digest for node in before.nodes]
    _, silence = await talk(model, tmp_path, NOON, session, Puppet("extra"))
    assert silence == []


@pytest.mark.parametrize("format", ["openai", "anthropic"])
async def test_the_first_request_is_small(format: str, tmp_path: Path, figures: Figures) -> None:
    async with FakeProvider(lines("hello")) as stage:
        url = f"{stage.url}/v1" if format == "openai" else stage.url
        settings = Settings(model="stage/scripted", providers={"stage": ProviderSettings(url, format)})
        async with Hone(folder=tmp_path, settings=settings) as hone:
            await asyncio.wait_for(hone.run("hi"), 60)
    (body,) = stage.bodies
    figures(f"first request for 'hi', {format}: {len(body):,} bytes of at most {FIRST_REQUEST:,}")
    assert len(body) <= FIRST_REQUEST
