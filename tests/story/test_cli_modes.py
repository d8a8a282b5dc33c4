"""L1: permission modes at the terminal: chosen, shown, switched, and left by approving a plan."""

import json
import re
from pathlib import Path

import pytest

from hone.core.messages import assistant
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import Script, call, lines, rounds, rules
from tests.cli.driving import CTRL_C, ENTER, environment, hone, terminal

LOOK = assistant(call("write_file", path="plan.txt", content="too early"))
PLANNED = lines(
    LOOK, "1. Write plan.txt.", assistant(call("write_file", path="plan.txt", content="x")), "Done."
)
WRITING: Script = rounds(assistant(call("write_file", path="a.txt", content="new\n")), "Written.")


def said(body: bytes) -> list[str]:
    return [each["content"] for each in json.loads(body)["messages"] if each["role"] == "user"]


def system(body: bytes) -> str:
    return str(json.loads(body)["messages"][0]["content"])


async def test_a_plan_is_made_approved_and_carried_out(home: Path, tmp_path: Path) -> None:
    async with FakeProvider(PLANNED) as stage:
        async with terminal("--mode", "plan", env=environment(home, stage), folder=tmp_path) as user:
            await user.sees("Mode plan: it only looks, and ends with a plan for you to approve.")
            await user.prompt()
            await user.sees("· plan mode")
            await user.enter("write a plan")
            await user.sees("✗ write_file plan.txt", "1. Write plan.txt.")
            await user.sees(
                "? Carry out this plan?\n  [y] work in auto mode\n  [a] ask before each change\n"
                "  [n] keep planning (default)"
            )
            assert not (tmp_path / "plan.txt").exists()
            user.type("y")
            await user.sees("→ mode auto", "> Go ahead with this plan.", "Done.")
            assert (tmp_path / "plan.txt").read_text() == "x"
            await user.prompt()
            assert "plan mode" not in user.rows[-1] + user.rows[-2]
            assert await user.leave() == 0
        assert stage.invalid == []
        asked = said(stage.bodies[-1])
        assert "# Permission mode: plan" in asked[0]
        assert "write a plan" in asked[0]
        assert "# Permission mode: auto" in asked[1]
        assert "Go ahead with this plan." in asked[1]
        assert {system(body) for body in stage.bodies} == {system(stage.bodies[0])}


@pytest.mark.parametrize("key", [b"n", ENTER, CTRL_C])
async def test_a_plan_that_is_not_approved_leaves_the_mode_as_it_is(
    home: Path, tmp_path: Path, key: bytes
) -> None:
    async with FakeProvider(lines("A plan.", "A better plan.")) as stage:
        async with terminal("--mode", "plan", env=environment(home, stage), folder=tmp_path) as user:
            for plan in ("A plan.", "A better plan."):
                await user.enter("plan")
                await user.sees(plan, "? Carry out this plan?")
                user.type(key)
                await user.sees("→ keep planning")
            assert await user.leave() == 0
        assert [each.count("# Permission mode") for each in said(stage.bodies[-1])] == [1, 0]


async def test_a_plan_can_be_carried_out_with_a_question_before_each_change(
    home: Path, tmp_path: Path
) -> None:
    planned = FakeProvider(PLANNED)
    async with (
        planned as stage,
        terminal("--mode", "plan", env=environment(home, stage), folder=tmp_path) as user,
    ):
        await user.enter("plan")
        await user.sees("? Carry out this plan?")
        user.type("a")
        await user.sees("→ mode ask", "? Change this file?", "plan.txt\n    x\n  [y] yes")
        user.type("y")
        await user.sees("Done.")
        await user.prompt()
        await user.sees("· ask mode")
        assert await user.leave() == 0
    assert (tmp_path / "plan.txt").exists()


async def test_the_mode_is_shown_and_switched_in_the_chat_and_the_model_is_told_once(
    home: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("old\n")
    async with FakeProvider(WRITING) as stage:
        async with terminal(env=environment(home, stage), folder=tmp_path, size=(100, 50)) as user:
            await user.enter("/mode")
            await user.sees("* auto", "Switch with: /mode NAME")
            await user.enter("/mode nonsense")
            await user.sees("There is no mode 'nonsense'. Use one of: plan, ask, auto, full.")
            await user.enter("/mode ask")
            await user.sees("Mode ask: it asks before each write and each command.")
            await user.enter("write it")
            # A rule that is too long for its line stands below it.
            await user.sees(
                "? Change this file?", "    @@ -1,1 +1,1 @@\n    -old\n    +new\n", "[a] always", "a.txt\n"
            )
            user.type("r")
            await user.sees("Why not?")
            user.type("not yet\n")
            await user.sees("✗ write_file", "Written.")
            await user.enter("/mode full")
            await user.sees("Mode full: Hone never asks.")
            await user.enter("now")
            assert "Change this file?" not in await user.sees("Written.")
            await user.enter("/model anthropic/scripted")
            await user.sees("This conversation now uses anthropic/scripted")
            await user.enter("/mode")
            await user.sees("* full")
            assert await user.leave() == 0
        notes = [re.findall(r"# Permission mode: (\w+)", each) for each in said(stage.bodies[-1])]
        assert notes == [["ask"], ["full"]]
    assert (tmp_path / "a.txt").read_text() == "new\n"


async def test_a_terminal_that_cannot_draw_shows_the_mode_in_its_prompt(home: Path, tmp_path: Path) -> None:
    async with FakeProvider(lines("Hi.")) as stage:
        env = environment(home, stage, TERM="dumb")
        async with terminal("--mode", "ask", env=env, folder=tmp_path) as user:
            await user.sees("(ask mode) >")
            user.type("hello\n")
            await user.sees("Hi.", "1 call")


async def test_a_conversation_is_resumed_in_its_stricter_mode_and_never_in_full(
    home: Path, tmp_path: Path
) -> None:
    async with FakeProvider(lines("One.", "Two.", "Three.", "Four.")) as stage:
        env = environment(home, stage)
        for mode, expected in (("ask", "Mode ask: it asks"), ("full", "")):
            async with terminal("--mode", mode, env=env, folder=tmp_path) as user:
                await user.enter("hello")
                await user.sees("1 call")
                assert await user.leave() == 0
            async with terminal("-c", env=env, folder=tmp_path) as user:
                await user.prompt()
                assert expected in user.text
                assert expected or "Mode full" not in user.text
                assert await user.leave() == 0
        async with terminal("-c", "--mode", "auto", env=env, folder=tmp_path) as user:
            await user.prompt()
            assert "Mode" not in user.text
            assert await user.leave() == 0


async def test_run_makes_a_plan_and_says_how_to_carry_it_out(home: Path, tmp_path: Path) -> None:
    async with FakeProvider(PLANNED) as stage:
        env = environment(home, stage)
        planned = await hone("run", "--mode", "plan", "plan it", env=env, folder=tmp_path)
        assert (planned.code, planned.out) == (0, "1. Write plan.txt.\n")
        command = re.search(r"Nothing was changed. To carry out this plan:\n  hone (.+)\n$", planned.err)
        assert command
        assert not (tmp_path / "plan.txt").exists()
        words = re.fullmatch(r'run --resume (\w+) --mode auto "(.+)"', command[1])
        assert words
        done = await hone("run", "--resume", words[1], "--mode", "auto", words[2], env=env, folder=tmp_path)
        assert (done.code, done.out) == (0, "Done.\n")
        assert (tmp_path / "plan.txt").read_text() == "x"
        silent = await hone("run", "-q", "--mode", "plan", "again", env=env, folder=tmp_path)
        assert silent.err == ""


async def test_run_warns_of_full_and_says_that_it_asks_nobody(home: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    folder = tmp_path / "folder"
    folder.mkdir()
    script = rules(
        ("inside", rounds(assistant(call("write_file", path="in.txt", content="x")), "Done.")),
        otherwise=rounds(assistant(call("write_file", path=str(outside), content="x")), "Done."),
    )
    async with FakeProvider(script) as stage:
        env = environment(home, stage)
        free = await hone("run", "outside", env=env, folder=folder)
        assert "  ✗ " in free.err
        assert not outside.exists()
        careful = await hone("run", "--mode", "ask", "inside", env=env, folder=folder)
        assert "Mode ask: nobody can be asked here, so Hone refuses every write and command." in careful.err
        assert not (folder / "in.txt").exists()
        full = await hone("--mode", "full", "run", "-q", "outside", env=env, folder=folder)
        assert full.err.startswith("Mode full: Hone never asks.")
        assert outside.exists()
        (home / "hone.toml").write_text('mode = "plan"\n')
        planned = await hone("run", "inside", env=env, folder=folder)
        assert "To carry out this plan" in planned.err
        assert not (folder / "in.txt").exists()
        wrong = await hone("--mode", "nonsense", env=env, folder=folder)
        assert wrong.code == 2
        (home / "hone.toml").write_text('[permissions]\ndeny = ["nonsense"]\n')
        broken = await hone("run", "inside", env=env, folder=folder)
        assert broken.code == 2
        assert "hone.toml: permissions: 'nonsense' is not a rule." in broken.err
