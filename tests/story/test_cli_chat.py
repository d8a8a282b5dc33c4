"""`hone` at a terminal: somebody types, reads, interrupts and leaves."""

import re
from pathlib import Path

import pytest

from hone.core.messages import assistant
from hone.models.scripted import call, lines, rounds
from hone.models.stage import Stage
from tests.cli.driving import CTRL_C, CTRL_D, environment, hone, terminal

SLOW = " ".join(f"word{number}" for number in range(20_000))


async def test_without_a_model_it_says_how_to_get_going(home: Path) -> None:
    env = environment(home)
    async with terminal(env=env) as user:
        await user.wait_for("export ANTHROPIC_API_KEY=")
        await user.wait_for("hone demo")
        assert await user.ended() == 2
    assert "Traceback" not in user.screen
    piped = await hone(env=env)
    assert (piped.code, piped.out) == (2, "")
    assert piped.err.startswith("No model to talk to yet.")


@pytest.mark.parametrize("model", ["openai/scripted", "anthropic/scripted"])
async def test_a_message_is_answered_and_the_session_can_be_resumed(
    home: Path, tmp_path: Path, model: str
) -> None:
    (tmp_path / "notes.txt").write_text("one\ntwo\n")
    script = lines(assistant("Let me look.", call("read_file", path="notes.txt")), "Two lines.", "Still two.")
    async with Stage(script) as stage:
        env = environment(home, stage)
        async with terminal("--model", model, env=env, folder=tmp_path) as user:
            await user.wait_for(f"Hone 0.1.0 · {model}")
            await user.enter("how long are my notes?")
            await user.wait_for("Let me look.\n→ read_file notes.txt\n  ✓ 2 lines, 0.")
            await user.wait_for("Two lines.\n  2 calls · ")
            await user.wait_for("\n> ")
            user.type(CTRL_D)
            left = await user.wait_for("hone --resume ")
            assert await user.ended() == 0
        session = re.findall(r"Session (\w+) is kept", left)[0]
        async with terminal("--resume", session[:6], env=env, folder=tmp_path) as user:
            await user.wait_for("how long are my notes?")
            await user.wait_for("Two lines.")
            await user.enter("sure?")
            await user.wait_for("Still two.")
            assert await user.leave() == 0
        assert stage.invalid == []
        assert stage.bodies[2].startswith(stage.bodies[1][:-2]) or model.startswith("anthropic")


async def test_ctrl_c_stops_the_answer_and_the_conversation_goes_on(home: Path) -> None:
    async with Stage(lines(SLOW, "Here I am."), pace=0.02) as stage:
        async with terminal(env=environment(home, stage)) as user:
            await user.enter("tell me everything")
            await user.wait_for("word5")
            user.type(CTRL_C)
            await user.wait_for("Stopped. What was said so far is kept.")
            await user.wait_for("\n> ")
            stage.pace = 0.0
            user.type("are you there?\n")
            await user.wait_for("Here I am.")
            assert await user.leave() == 0
        assert stage.invalid == []
        assert b"(cut short: interrupted)" in stage.bodies[-1]


async def test_ctrl_c_at_the_prompt_says_how_to_leave(home: Path) -> None:
    async with Stage(lines("Yes.")) as stage:
        async with terminal(env=environment(home, stage)) as user:
            await user.wait_for("\n> ")
            await user.insist(CTRL_C, "Ctrl-D or /quit leaves.")
            await user.wait_for("\n> ")
            user.type("never sent")
            await user.wait_for("never sent")
            await user.insist(CTRL_C, "\n> ")
            user.type("/quit\n")
            assert await user.ended() == 0
        assert "is kept" not in user.screen
        assert stage.bodies == []


async def test_several_lines_make_one_message(home: Path) -> None:
    async with Stage(lines("Read.")) as stage:
        async with terminal(env=environment(home, stage)) as user:
            await user.enter("first \\")
            await user.wait_for(". ")
            user.type("second\n")
            await user.wait_for("Read.")
            await user.enter('"""third')
            await user.wait_for(". ")
            user.type('fourth"""\n')
            await user.wait_for("Read.")
            assert await user.leave() == 0
        assert b'"first \\nsecond"' in stage.bodies[0]
        assert b'"third\\nfourth"' in stage.bodies[1]


async def test_commands_are_for_the_chat_and_not_for_the_model(home: Path) -> None:
    async with Stage(lines("One.", "Two.", "Three.")) as stage:
        async with terminal(env=environment(home, stage)) as user:

            async def enter(line: str, answer: str) -> str:
                await user.enter(line)
                return await user.wait_for(answer)

            await enter("/nonsense", "There is no command /nonsense.")
            await enter("/help", "/resume ID")
            await enter("/sessions", "There are no sessions yet.")
            await enter("/usage", "Nothing has been spent")
            await enter("/resume", "Which one?")
            await enter("/resume zzz", "There is no session")
            await enter("/model", "Talking to openai/scripted.")
            await enter("/model nowhere/x", "names no known provider")
            await enter("hello", "One.")
            first = re.findall(r"\n(\w{10})  ", await enter("/sessions", "hello"))[0]
            await enter("/usage", "1 call · ")
            await enter("/model anthropic/scripted", "Talking to anthropic/scripted.")
            await enter("again", "Two.")
            await enter(f"/resume {first[:7]}", f"Going on with {first}, 4 messages.")
            await enter("/etc/hosts is a path", "Three.")
            await user.enter("/quit")
            await user.wait_for(f"Session {first} is kept.")
            assert await user.ended() == 0
        assert [b"nonsense" in body for body in stage.bodies] == [False] * 3


async def test_a_failing_provider_leaves_the_prompt_alive(home: Path) -> None:
    broken = Stage(lines("Back."), fault="401")
    async with broken as stage, terminal(env=environment(home, stage)) as user:
        await user.enter("hello")
        await user.wait_for("✗ ")
        await user.wait_for("OPENAI_API_KEY")
        stage.fault = None
        await user.enter("and now?")
        await user.wait_for("Back.")
        assert await user.leave() == 0


async def test_a_hostile_answer_cannot_steer_the_terminal(home: Path, tmp_path: Path) -> None:
    (tmp_path / "evil.txt").write_text("\x1b]0;owned\x07\x1b[2J")
    script = rounds(assistant("\x1b[31mred\u202e", call("read_file", path="evil.txt")), "\x9b2J\x07done")
    async with Stage(script) as stage, terminal(env=environment(home, stage), folder=tmp_path) as user:
        await user.enter("go")
        await user.wait_for("\\x1b[31mred\\u202e")
        await user.wait_for("✓ \\x1b]0;owned\\x07\\x1b[2J")
        await user.wait_for("\\x9b2J\\x07done")
        user.type("/quit\n")
        await user.wait_for("is kept")
        assert await user.ended() == 0
    assert not {"\x1b", "\x9b", "\u202e"} & set(user.screen)


@pytest.mark.parametrize(
    ("more", "coloured"), [({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False)]
)
async def test_colours_are_for_those_who_want_them(home: Path, more: dict[str, str], coloured: bool) -> None:
    async with Stage(lines("Yes.")) as stage, terminal(env=environment(home, stage, **more)) as user:
        await user.wait_for("Ctrl-D leaves.")
        await user.wait_for("> ")
        user.type("hi\n")
        await user.wait_for("cost unknown")
        assert await user.leave() == 0
    assert ("\x1b[2m" in user.screen) is coloured
