"""The curator as its owner meets it: tried, run, approved, undone, held back; by hand and by itself."""

import asyncio
import json
import os
import signal
from asyncio.subprocess import PIPE
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hone import Hone
from hone.cli.main import perform
from hone.core.ledger import skill
from hone.core.messages import Message, assistant
from hone.core.skill import ARCHIVED, DOCUMENT, SkillOrigin
from hone.knowledge.folding import Files
from hone.knowledge.skills.folder import Create
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import Script, Scripted, lines, rules
from hone.settings import Settings
from tests.cli.driving import HONE, Ended, environment, hone, terminal
from tests.curating import LEARNED, document, merge

NAMES = ("trip-planning", "night-trains")
BODY = "# Steps\nPack, then book.\n\n# Trains\nBook early."
PLAN = json.dumps(merge("trip-planning", ["night-trains"], BODY))
ASKED = "Below are the skills you learned for this user"


def curating(plan: str = PLAN) -> Script:
    return rules((ASKED, lines(plan)), otherwise=lines("Yes."))


async def learned(home: Path) -> None:
    async with Hone(home=home, model=Scripted(lines("Yes."))) as owner:
        for name, body in zip(NAMES, ("# Steps\nPack.", "# Trains\nBook early."), strict=True):
            await owner.library.keeper.edit_skill(
                name, Create(document(name, body), SkillOrigin.AGENT), LEARNED
            )


async def shelf(home: Path) -> dict[str, Files]:
    async with Hone(home=home, settings=Settings()) as owner:
        return {name: await owner.library.keeper.files(skill(name)) for name in NAMES}


Typed = Callable[..., Awaitable[Ended]]


@pytest.fixture
def typed(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """`hone …` in this process, with a stage beside it: the stories below do it in processes of their own."""

    async def act(stage: FakeProvider, *arguments: str) -> Ended:
        for name, value in environment(home, stage).items():
            monkeypatch.setenv(name, value)
        code = await asyncio.to_thread(perform, arguments)
        return Ended(code, *capsys.readouterr())

    return act


async def test_a_plan_is_tried_made_read_approved_and_undone(home: Path, typed: Typed) -> None:
    await learned(home)
    before = await shelf(home)
    async with FakeProvider(curating()) as stage:
        assert "There has been no round yet." in (await typed(stage, "curator", "status")).out
        assert (
            await typed(stage, "curator", "show")
        ).err == "There has been no round yet. Do one: hone curator run\n"
        dry = await typed(stage, "curator", "dry-run")
        assert dry.code == 0
        for words in (
            "## Waits for you",
            "trip-planning, merge (would wait for you)",
            "+++ b/skills/trip-planning/references/merged/night-trains.md",
            "+Pack, then book.",
            "@archived: nothing → 1",
            "Nothing was changed.",
        ):
            assert words in dry.out
        assert (await shelf(home), (home / "curator").exists()) == (before, False)

        run = await typed(stage, "curator", "run")
        assert run.code == 0
        assert run.out.endswith("curator, round 1: 2 skills (it waits: hone approve 3)\n")
        report = (home / "curator" / "round-0001.md").read_text()
        assert report.rstrip("\n") in run.out
        (home / "curator" / "round-0001.md").unlink()
        assert (await typed(stage, "curator", "show")).out == report
        assert (home / "curator" / "round-0001.md").read_text() == report
        waits = await typed(stage, "pending")
        assert "These 2 changes belong together.\nhone approve 3   or   hone reject 3" in waits.out
        assert await shelf(home) == before

        approved = await typed(stage, "approve", "4", "--yes")
        assert "Change 4 is approved by change 6." in approved.out
        after = await shelf(home)
        assert after["trip-planning"]["references/merged/night-trains.md"] == before["night-trains"][DOCUMENT]
        assert (home / "skills" / ".archive" / "night-trains" / DOCUMENT).exists()
        undone = await typed(stage, "undo", "5")
        assert "These 2 changes were made together and are undone together." in undone.out
        assert await shelf(home) == before
        assert not (home / "skills" / "trip-planning" / "references").exists()
        lone = await typed(stage, "undo", "6")
        assert (lone.code, "was already undone by change 8" in lone.err) == (1, True)


async def test_a_bad_plan_is_a_failed_round_that_says_why(home: Path, typed: Typed) -> None:
    await learned(home)
    before = await shelf(home)
    async with FakeProvider(curating("I merged everything, trust me.")) as stage:
        run = await typed(stage, "curator", "run")
        assert (run.code, await shelf(home)) == (1, before)
        assert "The answer is no plan" in run.out
        assert "no skill changed" in run.out
        again = await typed(stage, "curator", "dry-run")
        assert (again.code, "The answer is no plan" in again.out) == (1, True)


async def test_without_a_model_ageing_goes_on_and_the_reason_is_said(home: Path) -> None:
    await learned(home)
    run = await hone("curator", "run", env=environment(home))
    assert run.code == 1
    assert "## Not done" in run.out


async def test_a_paused_curator_begins_nothing_and_a_worker_does_what_is_due(
    home: Path, typed: Typed
) -> None:
    """Nobody has had a turn in this home, so it is quiet."""
    await learned(home)
    (home / "hone.toml").write_text('[learning]\nmerges = "auto"\n')
    async with FakeProvider(curating()) as stage:
        env = environment(home, stage)
        assert "resume" in (await typed(stage, "curator", "pause")).out
        assert "It is paused" in (await typed(stage, "curator", "status")).out
        assert (await hone("worker", "--once", env=env)).out == ""
        assert "is running again" in (await typed(stage, "curator", "resume")).out
        assert "is due: it is the first one" in (await typed(stage, "curator", "status")).out
        worker = await hone("worker", "--once", env=env)
        assert worker.out == "curator, round 1: 2 skills (undo it with: hone undo 3)\n"
        assert (await hone("worker", "--once", env=env)).out == ""
        assert ARCHIVED in (await shelf(home))["night-trains"]
        assert "2 changes  it is the first one" in (await typed(stage, "curator", "show", "--list")).out
        assert (await typed(stage, "curator", "show", "7")).err == "There is no round 7.\n"


async def test_a_turn_in_another_process_keeps_the_curator_away(home: Path) -> None:
    await learned(home)
    async with FakeProvider(curating()) as stage:
        env = environment(home, stage)
        assert (await hone("run", "hello", env=env)).code == 0
        assert "curator" not in (await hone("worker", "--once", env=env)).out
        assert "The next one comes once something" in (await hone("curator", "status", env=env)).out


async def test_a_chat_that_begins_after_a_quiet_time_tells_of_the_round_in_one_line(home: Path) -> None:
    await learned(home)
    (home / "hone.toml").write_text('[learning]\nmerges = "auto"\n')
    async with FakeProvider(curating()) as stage, terminal(env=environment(home, stage), folder=home) as user:
        await user.sees("✎ curator: skill trip-planning merged — ", " · /undo 3")
        await user.sees("✎ curator: skill night-trains archived — ", " · /undo 3")
        await user.enter("/undo 3")
        await user.sees("is undone by change 5")
        assert await user.leave() == 0
    assert ARCHIVED not in (await shelf(home))["night-trains"]


async def test_a_round_killed_while_the_model_thinks_leaves_nothing_and_is_done_once_by_the_next(
    home: Path,
) -> None:
    await learned(home)
    before = await shelf(home)
    asked = asyncio.Event()

    def slow(messages: tuple[Message, ...]) -> Message:
        asked.set()
        return assistant(PLAN)

    async with FakeProvider(slow) as stage:  # type: ignore[arg-type]
        env = environment(home, stage)
        worker = await asyncio.create_subprocess_exec(*HONE, "worker", "--once", env=env, stdout=PIPE)
        await asked.wait()
        os.kill(worker.pid, signal.SIGKILL)
        await worker.communicate()
        done = await shelf(home) != before
        assert not done
        found = (await hone("worker", "--once", env=env)).out
        assert found.count("curator, round 1: 2 skills") == 1
        waits = (await hone("pending", "--json", env=env)).out
        assert len(json.loads(waits)) == 2
