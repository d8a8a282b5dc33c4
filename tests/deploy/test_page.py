"""docs/deploy.md, followed word for word: from nothing to two people who share a lesson."""

import asyncio
import os
import shutil
import subprocess
from asyncio.subprocess import PIPE
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic

import pytest

from hone.core.messages import Message, assistant
from hone.models.fake_provider import FakeProvider
from tests.conftest import Figures, requires
from tests.deploy import debian, page

PATIENCE = 900.0
LESSON = "Releases are cut on Tuesdays."


@pytest.fixture
def machine() -> Iterator[Path]:
    """A folder that other users may enter, unlike those of pytest."""
    folder = Path("/tmp") / f"hone-machine-{os.urandom(4).hex()}"
    folder.mkdir()
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def answer(messages: Sequence[Message]) -> Message:
    return assistant(f"heard: {messages[-1].text}")


async def follow(command: Sequence[str], stage: FakeProvider) -> str:
    """Type everything, and return what it prints."""
    script = page.write_script()
    address = ["--setenv", "ANTHROPIC_BASE_URL", stage.url, "--setenv", "HONE_LOCAL", "false"]
    at = command.index("/bin/sh")
    process = await asyncio.create_subprocess_exec(
        *(*command[:at], *address, *command[at:]), stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    async with asyncio.timeout(PATIENCE):
        out, err = await process.communicate(script.encode())
    assert process.returncode == 0, f"{out.decode()}\n{err.decode()}"
    return out.decode()


async def test_the_page_leads_from_nothing_to_two_people_who_share_a_lesson(machine: Path) -> None:
    requires("bwrap")
    requires("curl")
    if reason := page.can_enter():
        pytest.skip(reason)
    async with FakeProvider(answer) as stage:
        told = await follow(page.enter(machine, page.make_light_root(machine)), stage)
    check(told, stage)


@pytest.mark.long
async def test_the_page_holds_on_a_machine_of_debians_packages(
    machine: Path, tmp_path: Path, figures: Figures
) -> None:
    debian.check()
    async with FakeProvider(answer) as stage:
        more = await asyncio.to_thread(page.make_full_root, machine / "root", tmp_path)
        begun = monotonic()
        told = await follow(page.enter(machine / "root", more), stage)
        figures(f"{len(told.splitlines())} lines in {monotonic() - begun:.0f} s")
    check(told, stage)


def check(told: str, stage: FakeProvider) -> None:
    assert told.count('"status":"ready"') == 4, told
    assert [name for name in ("ann", "ben") if f"\n{name} " not in told] == []
    prompts = [body.decode() for body in stage.bodies]
    [before, *_] = [text for text in prompts if "Good morning." in text]
    [after, *_] = [text for text in prompts if "When is the next release?" in text]
    assert LESSON not in before
    assert LESSON in after, "the second person's prompt has what the first one shared"


@pytest.mark.parametrize("name", page.find_units())
def test_systemd_understands_the_units(name: str, tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / name
    unit.write_text(page.find_units()[name].replace("/opt/hone/bin/hone", "/bin/true"))
    done = subprocess.run([verify, "verify", unit], capture_output=True, text=True, check=False)
    about = [row for row in done.stderr.splitlines() if "hone" in row]
    assert (done.returncode, about) == (0, []), done.stderr
