"""E1 to E6, the whole tale: corrected twice, a long task, a review; the next process knows, until an undo."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from hone import Hone
from hone.core.events import Event, Learned
from hone.core.jobs import State
from hone.core.ledger import Actor
from hone.core.messages import assistant
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import Script, call, rounds, rules
from tests.wire.test_fork import FORMATS, point

FIRST = "Too long. Answer in one sentence, always."
SECOND = "Again too long! One sentence, I said."
PREFERENCE = "Answer in one sentence, always."
SKILL = """\
---
name: csv-import
description: Load a CSV export into the ledger and check the sums.
---

1. Look at the first lines for the separator.
2. Import, then compare the sum with the last line.

Pitfalls: the export uses a comma for decimals; convert it before the import.
"""
STEPS = [call("read_file", path=f"part{number}.csv") for number in range(10)]
SYSTEM = """
import asyncio, sys
from hone import Hone
async def main():
    async with Hone(folder=sys.argv[1]) as hone:
        print((await hone.session()).agent.prefix.system)
asyncio.run(main())
"""


def tale() -> Script:
    review = rounds(
        assistant(
            call("memory", action="add", target="user", text=PREFERENCE, evidence=[FIRST, SECOND]),
            call("skill_manage", action="create", name="csv-import", text=SKILL, evidence=["#5"]),
        ),
        "Saved a preference and a skill.",
    )
    task = rounds(*(assistant(step) for step in STEPS), "All ten are in.")
    return rules(("look back over", review), ("import the parts", task), otherwise=rounds("Well, " * 40))


async def system_of_next_process(folder: Path) -> str:
    command = [sys.executable, "-c", SYSTEM, str(folder)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def hone(*arguments: str) -> str:
    command = [sys.executable, "-m", "hone", *arguments]
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("wire", FORMATS)
async def test_what_a_user_corrects_and_how_a_task_is_done_is_known_to_the_next_process(
    monkeypatch: pytest.MonkeyPatch, home: Path, tmp_path: Path, wire: str
) -> None:
    for number in range(10):
        (tmp_path / f"part{number}.csv").write_text("a;1,5\n")
    events: list[Event] = []
    async with FakeProvider(tale()) as stage:
        point(monkeypatch, wire, stage.url)
        async with Hone(folder=tmp_path) as agent:
            agent.folders.trust(tmp_path)
            session = await agent.session()
            for words in ("hello", FIRST, SECOND):
                await session.send(words)
            agent.background.attend(events.append)
            await session.send("import the parts, please")
            await agent.background.drain()
            (learned,) = [event for event in events if isinstance(event, Learned)]
            (job,) = await agent.jobs.jobs()
        assert stage.invalid == []
        assert (job.state, job.why) == (State.DONE, "10 tool iterations")
        assert [entry.change.author.actor for entry in learned.entries] == [Actor.REVIEW] * 2
        assert (home / "USER.md").read_text() == f"- {PREFERENCE}\n"
        assert (home / "skills/csv-import/SKILL.md").read_text() == SKILL
        system = await system_of_next_process(tmp_path)
        assert f"- {PREFERENCE}" in system
        assert "- csv-import: Load a CSV export into the ledger" in system
        await hone("undo", str(learned.entries[0].id))
        system = await system_of_next_process(tmp_path)
        assert PREFERENCE not in system
        assert "csv-import" in system
        await hone("undo", str(learned.entries[1].id))
        assert "csv-import" not in await system_of_next_process(tmp_path)
        assert not (home / "skills/csv-import").exists()
