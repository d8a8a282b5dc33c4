"""`hone` at a terminal: somebody types, reads, is asked, interrupts and leaves."""

import json
import re
import stat
from pathlib import Path

import pytest

from hone.core.messages import assistant
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import call, echo, lines, rounds, rules
from tests.cli.driving import (
    ALT_ENTER,
    CTRL_C,
    CTRL_D,
    ENTER,
    ESCAPE,
    TAB,
    UP,
    Terminal,
    environment,
    hone,
    terminal,
)

SLOW = " ".join(f"word{number}" for number in range(20_000))
PLUGIN = """\
from hone import Part, Question, ToolContext, tool

@tool(effects=set())
async def launch(context: ToolContext, rocket: str) -> str:
    '''Launch a rocket.'''
    return f"The answer is {await context.ask(Question('Launch it?', rocket, 'any rocket'))}."

class Extra(Part):
    def tools(self, folder, source=None):
        return [launch]

def register(hone):
    return Extra()
"""
WAITING = """\
import asyncio
from hone import Part, tool

@tool(effects=set())
async def wait_for_rain() -> str:
    '''Wait for rain.'''
    await asyncio.Event().wait()
    return "It rains."

class Extra(Part):
    def tools(self, folder, source=None):
        return [wait_for_rain]

def register(hone):
    return Extra()
"""


async def test_without_a_model_it_says_how_to_get_going(home: Path) -> None:
    env = environment(home)
    async with terminal(env=env) as user:
        await user.sees("export ANTHROPIC_API_KEY=", "hone demo")
        assert await user.ended() == 2
    assert "Traceback" not in user.text
    piped = await hone(env=env)
    assert (piped.code, piped.out) == (2, "")
    assert piped.err.startswith("No model to talk to yet.")


async def test_a_failing_provider_leaves_the_prompt_alive(home: Path) -> None:
    broken = FakeProvider(lines("Back."), fault="401")
    async with broken as stage, terminal(env=environment(home, stage)) as user:
        await user.enter("hello")
        await user.sees("✗ ", "OPENAI_API_KEY")
        stage.fault = None
        await user.enter("and now?")
        await user.sees("Back.")
        assert await user.leave() == 0


async def test_a_hostile_answer_cannot_steer_the_terminal(home: Path, tmp_path: Path) -> None:
    (tmp_path / "evil.txt").write_text("\x1b]0;owned\x07\x1b[2J")
    hostile = "\x9b2J\x07 [link=http://x]done[/link] &#x202e;end <b>whole</b>"
    script = rounds(assistant("\x1b[31mred\u202e", call("read_file", path="evil.txt")), hostile)
    async with FakeProvider(script) as stage, terminal(env=environment(home, stage), folder=tmp_path) as user:
        await user.enter("go")
        await user.sees("\\x1b[31mred\\u202e", "✓ read_file evil.txt · \\x1b]0;owned\\x07\\x1b[2J · ")
        await user.sees("\\x9b2J\\x07 [link=http://x]done[/link] \\u202eend <b>whole</b>")
        assert await user.leave() == 0
    assert user.title == ""
    for steering in (b"\x1b]", b"\x1b[2J", b"\x1b[31mred", b"\xc2\x9b", "\u202e".encode(), b"\x07"):
        assert steering not in user.data


@pytest.mark.parametrize("model", ["openai/scripted", "anthropic/scripted"])
async def test_a_message_is_answered_and_the_session_can_be_resumed(
    home: Path, tmp_path: Path, model: str
) -> None:
    (tmp_path / "notes.txt").write_text("one\ntwo\n")
    script = lines(
        assistant("Let me look.", call("read_file", path="notes.txt")), "**Two** lines.", "Still two."
    )
    async with FakeProvider(script) as stage:
        env = environment(home, stage)
        async with terminal("--model", model, env=env, folder=tmp_path) as user:
            await user.sees(f"Hone 0.1.0 · {model}")
            await user.enter("how long are my notes?")
            await user.sees(
                "Let me look.\n\n✓ read_file notes.txt · 0.", "  one\n  two\n\nTwo lines.\n\n2 calls · "
            )
            await user.prompt()
            await user.sees(f"{model} · ", "cost unknown · review at ")
            user.type(CTRL_D)
            left = await user.sees("hone --resume ")
            assert await user.ended() == 0
        session = re.findall(r"Conversation (\w+) is kept", left)[0]
        async with terminal("--resume", session[:6], env=env, folder=tmp_path) as user:
            await user.sees("how long are my notes?", "**Two** lines.")
            await user.enter("sure?")
            await user.sees("Still two.")
            assert await user.leave() == 0
        assert stage.invalid == []
        assert stage.bodies[2].startswith(stage.bodies[1][:-2]) or model.startswith("anthropic")


async def test_a_whole_session_is_typed_interrupted_left_and_resumed(home: Path, tmp_path: Path) -> None:
    (tmp_path / "waiting.py").write_text(WAITING)
    (tmp_path / "notes.txt").write_text("one\ntwo\n")
    (home / "hone.toml").write_text('plugins = ["waiting:register"]\n')
    look = assistant("Let me *look*.", call("read_file", path="notes.txt"), call("wait_for_rain"))
    script = rules(
        ("rains", rounds(look)),
        ("leave it", rounds("Then not.")),
        ("tell me", rounds(f"# Slowly\n\n{SLOW}")),
        otherwise=rounds("Where were we?"),
    )
    async with FakeProvider(script) as stage:
        env = environment(home, stage, PYTHONPATH=str(tmp_path))
        async with terminal(env=env, folder=tmp_path) as user:
            await user.enter("wait until it rains")
            await user.sees("Let me look.", "✓ read_file notes.txt", "wait_for_rain · 0.")
            user.type(CTRL_C)
            await user.sees("Stopped. What was said so far is kept.")
            await user.enter("fine, leave it")
            await user.sees("Then not.", "1 call · ")
            stage.pace = 0.02
            await user.enter("tell me more")
            await user.sees("Slowly\n\nword0", "word9")
            user.type(CTRL_C)
            await user.sees("Stopped.")
            assert await user.leave() == 0
        stage.pace = 0.0
        async with terminal("-c", env=env, folder=tmp_path) as user:
            await user.sees("tell me more", "word9", "(cut short: interrupted)")
            await user.enter("go on")
            await user.sees("Where were we?", "1 call · ")
            assert await user.leave() == 0
        assert stage.invalid == []
        last = json.loads(next(body for body in stage.bodies if b'"go on"' in body))["messages"]
    said = [each["content"] for each in last if each["role"] == "user"]
    assert said == ["wait until it rains", "fine, leave it", "tell me more", "go on"]
    results = [each["content"] for each in last if each["role"] == "tool"]
    assert results == ["one\ntwo", "did not finish: interrupted"]


async def test_ctrl_c_stops_the_answer_and_the_conversation_goes_on(home: Path) -> None:
    async with FakeProvider(lines(SLOW, "Here I am."), pace=0.02) as stage:
        async with terminal(env=environment(home, stage)) as user:
            await user.enter("tell me everything")
            await user.sees("word5")
            user.type(CTRL_C)
            await user.sees("Stopped. What was said so far is kept.")
            await user.prompt()
            stage.pace = 0.0
            await user.enter("are you there?")
            await user.sees("Here I am.")
            assert await user.leave() == 0
        assert stage.invalid == []
        assert b"(cut short: interrupted)" in stage.bodies[-1]


async def test_ctrl_c_stops_the_waiting_for_a_model_that_never_answers(home: Path) -> None:
    silent = FakeProvider(lines("Late.", "Prompt."), latency=3600)
    async with silent as stage, terminal(env=environment(home, stage)) as user:
        await user.enter("hello?")
        await user.sees("waiting", "Esc stops")
        user.type(CTRL_C)
        user.type(CTRL_C)
        await user.sees("Stopped.")
        await user.prompt()
        stage.latency = 0.0
        await user.enter("and now?")
        await user.sees("Prompt.")
        assert await user.leave() == 0


async def test_ctrl_c_at_the_prompt_says_how_to_leave(home: Path) -> None:
    async with FakeProvider(lines("Yes.")) as stage:
        async with terminal(env=environment(home, stage)) as user:
            await user.prompt()
            user.type(CTRL_C)
            await user.sees("Ctrl-D or /quit leaves.")
            await user.write("never sent")
            await user.sees("> never sent")
            user.type(CTRL_C)
            await user.enter("/quit")
            assert await user.ended() == 0
        assert "is kept" not in user.text
        assert stage.bodies == []


async def test_several_lines_make_one_message(home: Path) -> None:
    async with FakeProvider(echo) as stage:
        async with terminal(env=environment(home, stage)) as user:
            await user.write("first ")
            for keys in (ALT_ENTER, b"second\\", ENTER, b"third", ENTER):
                user.type(keys)
            await user.sees("> first\n  second\n  third", "1 call")
            await user.prompt()
            user.type("\x1b[200~def f():\r    return 1\r\x1b[201~")
            await user.sees("  return 1")
            user.type(ENTER)
            await user.sees("1 call")
            assert await user.leave() == 0
        assert b'"first \\nsecond\\nthird"' in stage.bodies[0]
        assert b'"def f():\\n    return 1\\n"' in stage.bodies[1]


async def test_what_is_typed_during_an_answer_waits_for_the_prompt(home: Path) -> None:
    slow = " ".join(f"word{number}" for number in range(60))
    async with FakeProvider(lines(slow, "Two.", "Three."), pace=0.02) as stage:
        async with terminal(env=environment(home, stage)) as user:
            await user.enter("one")
            await user.sees("word5")
            user.type("typed ahead\r")
            user.type("\x1b[200~pasted\rahead\x1b[201~")
            await user.sees("↳ typed ahead\n> pasted\n  ahead▏")
            await user.sees("word59", "\n\n> typed ahead", "Two.", "> pasted\n  ahead")
            user.type(ENTER)
            await user.sees("Three.")
            assert await user.leave() == 0
        assert b'"typed ahead"' in stage.bodies[1]
        assert b'"pasted\\nahead"' in stage.bodies[2]


async def test_tab_completes_commands_and_files(home: Path, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main_one.py").write_text("")
    async with FakeProvider(lines("Seen.")) as stage:
        async with terminal(env=environment(home, stage), folder=tmp_path) as user:
            await user.write("/cos")
            await user.sees("Show what this conversation has cost.")
            user.type(TAB)
            await user.sees("> /cost")
            user.type(ENTER)
            await user.sees("Nothing has been spent in this conversation yet.")
            await user.write("see @s")
            await user.sees("   src/")
            user.type(TAB)
            await user.sees("> see @src/")
            user.type(ENTER)
            user.type("m")
            await user.sees("main_one.py")
            user.type(TAB)
            user.type(ENTER)
            user.type(" and src/m")
            user.type(TAB)
            await user.sees("> see @src/main_one.py and src/main_one.py")
            user.type(ENTER)
            user.type(ENTER)
            await user.sees("Seen.")
            assert await user.leave() == 0
        assert b'"see @src/main_one.py and src/main_one.py"' in stage.bodies[0]


async def test_what_was_typed_comes_back_in_the_next_run(home: Path) -> None:
    async with FakeProvider(lines("Yes.")) as stage:
        env = environment(home, stage)
        async with terminal(env=env) as user:
            for said in ("first words", "second words", " third and secret"):
                await user.enter(said)
                await user.sees("Yes.")
            assert await user.leave() == 0
        async with terminal(env=env) as user:
            await user.prompt()
            user.type(UP)
            await user.sees("> second words")
            user.type(UP)
            await user.sees("> first words")
            user.type(ENTER)
            await user.sees("Yes.")
            assert await user.leave() == 0
        assert b'"first words"' in stage.bodies[-1]
    kept = (home / "history").read_text().splitlines()
    assert [json.loads(line) for line in kept] == ["first words", "second words", "first words"]
    assert stat.S_IMODE((home / "history").stat().st_mode) == 0o600


async def test_commands_are_for_the_chat_and_not_for_the_model(home: Path) -> None:
    async with FakeProvider(lines("One.", "Two.", "Three.")) as stage:
        async with terminal(env=environment(home, stage)) as user:

            async def enter(line: str, answer: str) -> str:
                await user.enter(line)
                return await user.sees(answer)

            await enter("/nonsense", "There is no command /nonsense.")
            await enter("/help", "/resume [ID or WORDS]")
            await enter("/sessions", "There are no conversations yet.")
            await enter("/usage", "Nothing has been spent")
            await enter("/compact", "This conversation is too short to compact.")
            await enter("/verbose", "Results are shown in full.")
            await enter("/resume", "There is no other conversation yet.")
            await enter("/resume zzz", "No conversation matches “zzz”.")
            await enter("/model openai/scripted", "This conversation now uses openai/scripted.")
            await enter("/model nowhere/x", "does not name a known provider")
            await enter("hello", "One.")
            first = re.findall(r"\n(\w{10})  ", await enter("/sessions", "hello"))[0]
            await enter("/usage", "1 call · ")
            await enter("/model anthropic/scripted", "This conversation now uses anthropic/scripted")
            await enter("again", "Two.")
            await enter(f"/resume {first[:7]}", f"Continuing {first}, 4 messages.")
            await enter("/etc/hosts is a path", "Three.")
            await user.enter("/quit")
            await user.sees(f"Conversation {first} is kept.")
            assert await user.ended() == 0
        assert [b"nonsense" in body for body in stage.bodies] == [False] * 3


async def test_a_long_conversation_is_shortened_when_it_is_asked_for(home: Path) -> None:
    async with FakeProvider(lines(*(f"Answer {number}." for number in range(20)))) as stage:
        async with terminal(env=environment(home, stage)) as user:
            for number in range(6):
                await user.enter(f"question {number} {'x' * 500}")
                await user.sees(f"Answer {number}.")
            await user.enter("/compact the numbers")
            await user.sees("Notes replace ", " older messages from now on. The messages are kept.")
            await user.enter("go on")
            await user.sees("1 call")
            assert await user.leave() == 0
        assert b"the numbers" in stage.bodies[6]
        assert len(stage.bodies[7]) < len(stage.bodies[5])


async def test_long_results_are_folded_unless_they_are_wanted_whole(home: Path, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("".join(f"row {number}\n" for number in range(60)))
    script = rounds(assistant(call("read_file", path="long.txt")), "Done.")
    async with FakeProvider(script) as stage, terminal(env=environment(home, stage), folder=tmp_path) as user:
        await user.enter("read it")
        shown = await user.sees("Done.")
        assert re.search(
            r"✓ read_file long.txt · \d\.\d s\n  row 0\n.*  row 4\n  … 55 more lines", shown, re.DOTALL
        )
        await user.enter("/verbose")
        await user.enter("again")
        await user.sees("Done.")
        assert re.search(r"  row 0\n.*  row 59\n\nDone", user.news, re.DOTALL)
        assert await user.leave() == 0


def code(count: int) -> str:
    return "".join(f"step_{number}()\n" for number in range(count))


@pytest.mark.parametrize("size", [(100, 12), (40, 12), (100, 50)])
async def test_markdown_is_drawn_while_it_streams_and_stands_there_once(
    home: Path, size: tuple[int, int]
) -> None:
    table = "| a | b |\n|--|--|\n| c | d |\n"
    text = f"# Plan\n\n**This**, `then` that.\n\n```python\n{code(40)}```\n\n1. 日本語\n1. end\n\n{table}"
    slow = FakeProvider(lines(text), pace=0.003)
    async with slow as stage, terminal(env=environment(home, stage), size=size) as user:
        await user.enter("plan it")
        await user.sees("1 call · ")
        await user.prompt()
        shown = user.news.split("\n1 call")[0].split("\n", 1)[1]
        assert shown.strip() == (
            f"Plan\n\nThis, then that.\n\n{code(40)}\n1. 日本語\n2. end\n\na   b\n─────\nc   d"
        )
        assert await user.leave() == 0


async def test_a_narrow_terminal_is_enough_for_a_whole_session(home: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("a long line of words " * 20 + "\nend\n")
    script = lines(
        assistant(call("read_file", path="notes.txt")), "All of these words find a place on the screen."
    )
    slow, narrow = FakeProvider(script, pace=0.01), (40, 20)
    async with slow as stage, terminal(env=environment(home, stage), folder=tmp_path, size=narrow) as user:
        await user.enter("what do my notes say, all in all, and why?")
        await user.sees("All of these words find a place on the\nscreen.", "2 calls · ")
        await user.prompt()
        await user.sees("\nopenai/scripted")
        assert re.search(r"\n  a long line of words a long line of.{0,4}…\n", user.news)
        await user.enter("/help")
        await user.sees("/quit")
        assert await user.leave() == 0


async def test_a_terminal_that_changes_its_size_keeps_what_was_said(home: Path) -> None:
    text = "".join(f"- item {number}\n" for number in range(200))
    slow = FakeProvider(lines(text), pace=0.004)
    async with slow as stage, terminal(env=environment(home, stage), size=(90, 20)) as user:
        await user.enter("list them")
        await user.sees("item 20")
        user.widen(50)
        await user.sees("item 60")
        user.widen(120)
        await user.sees("1 call")
        found = [int(number) for number in re.findall(r"• item (\d+)", user.text)]
        assert found == list(range(200))
        assert await user.leave() == 0


@pytest.mark.parametrize("term", ["xterm-256color", pytest.param("dumb", marks=pytest.mark.long)])
async def test_a_question_can_be_answered_in_every_way(home: Path, tmp_path: Path, term: str) -> None:
    (tmp_path / "rockets.py").write_text(PLUGIN)
    (home / "hone.toml").write_text('plugins = ["rockets:register"]\n')
    rocket = "V\x1b[2J2\nto the moon"
    pressed = [b"n", ENTER, CTRL_C, ESCAPE, b"y", b"s"]
    answers = {"no": "no", "once": "yes", "session": "yes, for this session"}
    given = ["no", "no", "no", "no", "once", "session"]
    async with FakeProvider(rounds(assistant(call("launch", rocket=rocket)), "Well.")) as stage:
        env = environment(home, stage, TERM=term, PYTHONPATH=str(tmp_path))
        async with terminal(env=env, folder=tmp_path) as user:
            for key, answer in zip(pressed, given, strict=True):
                await user.enter("go")
                await user.sees("? Launch it?\n    V\\x1b[2J2\n    to the moon\n  [y] yes\n")
                await user.sees("  [a] always: launch: any rocket\n  [n] no (default)\n  [r] no, and say why")
                user.type(key)
                await user.sees(f"→ {answers[answer]}", f"The answer is {answer}", "Well.")
            await user.enter("go")
            assert "Launch it?" not in await user.sees("Well.")
            assert await user.leave() == 0
        async with terminal(env=env, folder=tmp_path) as user:
            await user.enter("go")
            await user.sees("[r] no, and say why")
            user.type("r")
            await user.sees("Why not?")
            user.type("the moon is \x1b[2Jfull\n")
            await user.sees("→ no: the moon is \\x1b[2Jfull", "The answer is no: the moon is ", "Well.")
            for keys in (ENTER, b"words" + CTRL_C, CTRL_D):
                await user.enter("go")
                await user.sees("[r] no, and say why")
                user.type("r")
                await user.sees("Why not?")
                user.type(keys)
                assert "words," not in await user.sees("→ no\n", "The answer is no", "Well.")
            await user.enter("go")
            await user.sees("[r] no, and say why")
            user.type("a")
            await user.sees("→ always", "Well.")
            assert await user.leave() == 0
        async with terminal(env=env, folder=tmp_path) as user:
            await user.enter("go")
            assert "Launch it?" not in await user.sees("The answer is always", "Well.")
            assert await user.leave() == 0


async def test_a_question_is_not_answered_by_what_was_typed_before_it(home: Path, tmp_path: Path) -> None:
    (tmp_path / "rockets.py").write_text(PLUGIN)
    (home / "hone.toml").write_text('plugins = ["rockets:register"]\n')
    script = rounds(assistant("Wait. " * 50, call("launch", rocket="V2")), "Well.")
    async with FakeProvider(script, pace=0.02) as stage:
        env = environment(home, stage, PYTHONPATH=str(tmp_path))
        async with terminal(env=env, folder=tmp_path) as user:
            await user.enter("go")
            await user.sees("Wait. Wait.")
            user.type("y")
            await user.sees("[r] no, and say why")
            user.type("try")
            user.type(CTRL_C)
            await user.sees("→ no", "The answer is no", "2 calls", "> y")
            user.type(CTRL_C)
            assert await user.leave() == 0


async def chatted(user: Terminal) -> None:
    """A conversation at a terminal that can do little."""
    await user.enter("first \\")
    await user.sees("> first \\\n.")
    user.type("second\n")
    await user.sees("word20")
    user.type(CTRL_C)
    await user.sees("Stopped. What was said so far is kept.")
    await user.prompt()
    user.type(CTRL_C)
    await user.sees("Ctrl-D or /quit leaves.")


async def test_a_terminal_that_cannot_draw_gets_lines(home: Path) -> None:
    async with FakeProvider(lines(SLOW, "Here I am."), pace=0.005) as stage:
        async with terminal(env=environment(home, stage, TERM="dumb")) as user:
            await chatted(user)
            stage.pace = 0.0
            await user.enter("again")
            await user.sees("Here I am.", "1 call")
            assert await user.leave() == 0
        assert b'"first \\nsecond"' in stage.bodies[0]
    assert b"\x1b" not in user.data


@pytest.mark.parametrize(("more", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
async def test_colours_are_for_those_who_want_them(home: Path, more: dict[str, str], coloured: bool) -> None:
    text = "`code` and **bold**\n```python\ndef f(): pass\n```"
    async with FakeProvider(lines(text)) as stage, terminal(env=environment(home, stage, **more)) as user:
        await user.enter("hi")
        await user.sees("code and bold", "cost unknown")
        assert await user.leave() == 0
    painted = re.findall(rb"\x1b\[[\d;]*?(?:1|2|3\d)[\d;]*m", user.data)
    assert bool(painted) is coloured
