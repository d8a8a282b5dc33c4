"""`hone run`: what goes where, and with which exit code."""

import asyncio
import json
import os
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from pathlib import Path

import pytest

from hone.core.messages import Message, assistant
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import call, echo, lines
from tests.cli.driving import CTRL_C, HONE, PATIENCE, environment, hone, terminal

SLOW = " ".join(f"word{number}" for number in range(20_000))


@pytest.mark.parametrize(
    ("arguments", "piped", "code", "complaint"),
    [
        (["run"], None, 2, "There is no task."),
        (["run", ""], None, 2, "There is no task."),
        (["run", "  "], None, 2, "There is no task."),
        (["run", "-"], b" \n", 2, "There is no task."),
        (["run", "--nonsense", "x"], None, 2, "No such option"),
        (["nonsense"], None, 2, "No such command"),
        (["--resume", "a", "--continue"], None, 2, "use one of them"),
        (["run", "x"], None, 2, "No model to talk to yet."),
        (["--model", "nowhere/x", "run", "x"], None, 2, "names no known provider"),
        (["run", "--model", "openai/x", "x"], None, 2, "export OPENAI_API_KEY="),
        (["-c", "run", "x"], None, 1, "There is no session of yours to go on with yet."),
        (["run", "--resume", "zzz", "x"], None, 1, "There is no session"),
        (["sessions", "show", "zzz"], None, 1, "There is no session"),
        (["sessions", "rename", "zzz"], None, 2, "Missing argument"),
        (["sessions", "prune", "--older-than", "soon"], None, 2, "is no age"),
        (["sessions", "prune"], None, 2, "--older-than"),
    ],
)
async def test_what_cannot_be_done_is_said_in_one_message(
    home: Path, arguments: list[str], piped: bytes | None, code: int, complaint: str
) -> None:
    ended = await hone(*arguments, env=environment(home), piped=piped)
    assert (ended.code, ended.out) == (code, "")
    assert complaint in ended.err
    assert "Traceback" not in ended.err


async def test_settings_that_cannot_be_read_are_named(home: Path) -> None:
    (home / "hone.toml").write_text("calls = 'many'\n")
    ended = await hone("run", "x", env=environment(home))
    assert (ended.code, ended.out) == (2, "")
    assert "hone.toml" in ended.err
    assert "calls" in ended.err


@pytest.mark.parametrize(
    ("fault", "settings", "code"),
    [(None, "", 0), ("401", "", 1), ("overflow", "", 1), (None, "calls = 1", 3), ("500", "tries = 1", 1)],
)
async def test_the_exit_code_tells_how_the_turn_ended(
    home: Path, fault: str | None, settings: str, code: int
) -> None:
    (home / "hone.toml").write_text(settings)
    async with FakeProvider(lines(assistant(call("todo")), "So it is."), fault=fault) as stage:
        plain = await hone("run", "-q", "go", env=environment(home, stage))
        told = await hone("run", "--json", "-q", "go", env=environment(home, stage))
    assert (plain.code, told.code) == (code, code)
    assert plain.out == ("" if code == 1 else "So it is.\n")
    assert (plain.err == "") is (code == 0)
    data = json.loads(told.out)
    assert data["stop"] == {0: "answered", 1: "failed", 3: "budget"}[code]
    assert bool(data["error"]) is (code != 0)
    if code == 0:
        assert (data["text"], data["calls"]) == ("So it is.", 2)
        assert data["usage"]["input"] >= data["usage"]["cached"] > 0
        assert data["usage"]["cost"] is None


@pytest.mark.parametrize("model", ["openai/scripted", "anthropic/scripted"])
async def test_the_answer_goes_to_one_stream_and_the_rest_to_the_other(
    home: Path, tmp_path: Path, model: str
) -> None:
    (tmp_path / "a.txt").write_text("x\ny\n")
    script = lines(assistant("Looking.", call("read_file", path="a.txt")), "Two\tlines.\x1b[2J")
    async with FakeProvider(script) as stage:
        env = environment(home, stage)
        ended = await hone("run", "--model", model, "how", "long?", env=env, folder=tmp_path)
    assert (ended.code, ended.out) == (0, "Two\tlines.\\x1b[2J\n")
    assert ended.err.startswith("→ read_file a.txt\n  ✓ 2 lines, 0.")
    assert "2 calls · " in ended.err
    assert stage.invalid == []


@pytest.mark.parametrize(
    ("arguments", "piped", "heard"),
    [
        (["run", "say hi"], None, "say hi"),
        (["run", "-"], b"from a pipe\n", "from a pipe\n"),
        (["run"], b"from a pipe\n", "from a pipe\n"),
        ([], b"from a pipe\n", "from a pipe\n"),
        (["run", "review"], b"\xef\xbb\xbfthis \xff\n", "review\n\nthis \N{REPLACEMENT CHARACTER}\n"),
        (["run", "review"], b"", "review"),
    ],
)
async def test_a_task_comes_from_the_argument_from_a_pipe_or_from_both(
    home: Path, arguments: list[str], piped: bytes | None, heard: str
) -> None:
    async with FakeProvider(echo) as stage:
        ended = await hone(*arguments, env=environment(home, stage), piped=piped)
        assert ended.code == 0
        assert json.loads(stage.bodies[0])["messages"][-1]["content"] == heard


async def test_a_session_goes_on_by_its_id_or_as_the_last_one(home: Path) -> None:
    async with FakeProvider(lines("One.", "Two.", "Three.")) as stage:
        env = environment(home, stage)
        first = json.loads((await hone("run", "--json", "a", env=env)).out)
        second = json.loads((await hone("run", "--json", "--resume", first["session"][:6], "b", env=env)).out)
        third = await hone("-c", "run", "c", env=env)
    assert (second["session"], second["text"]) == (first["session"], "Two.")
    assert third.out == "Three.\n"


async def test_a_session_goes_on_in_the_folder_it_was_begun_in(home: Path, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    write = call("write_file", path="note", content="hi")
    async with FakeProvider(lines("One.", assistant(write), "Two.", assistant(write), "Three.")) as stage:
        env = environment(home, stage)
        await hone("run", "a", env=env, folder=here)
        await hone("-c", "run", "b", env=env, folder=there)
        assert [each.name for each in tmp_path.rglob("note")] == ["note"]
        shutil.rmtree(here)
        moved = await hone("-c", "run", "c", env=env, folder=there)
    assert f"{here} is gone; the tools work in {there}." in moved.err
    assert (there / "note").exists()


async def test_ctrl_c_ends_a_run_with_130_and_keeps_what_was_said(home: Path) -> None:
    heard = asyncio.Event()

    def tell(_: Sequence[Message]) -> Message:
        heard.set()
        return assistant(SLOW)

    async with FakeProvider(tell, pace=0.02) as stage:
        env = environment(home, stage)
        async with terminal("run", "tell", env=env) as user:
            await user.sees("word5")
            user.type(CTRL_C)
            await user.sees("Stopped.")
            assert await user.ended() == 130
        heard.clear()
        process = await asyncio.create_subprocess_exec(
            *HONE, "run", "--json", "tell", env=env, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
        )
        async with asyncio.timeout(PATIENCE):
            await heard.wait()
            process.send_signal(signal.SIGINT)
            out, _ = await process.communicate()
        assert process.returncode == 130
        assert json.loads(out)["stop"] == "interrupted"
        assert "interrupted)" in json.loads(out)["text"]
        shown = await hone("sessions", "show", json.loads(out)["session"], env=env)
    assert "1 you" in shown.out
    assert "interrupted" in shown.out


async def test_a_reader_that_goes_away_is_no_reason_to_complain(home: Path) -> None:
    async with FakeProvider(lines("line\n" * 50_000)) as stage:
        read, write = os.pipe()
        process = await asyncio.create_subprocess_exec(
            *HONE, "run", "-q", "x", env=environment(home, stage), stdin=DEVNULL, stdout=write, stderr=PIPE
        )
        os.close(write)
        os.close(read)
        async with asyncio.timeout(PATIENCE):
            _, err = await process.communicate()
    assert (process.returncode, err) == (1, b"")


async def test_an_old_terminal_gets_numbers_for_letters_it_cannot_spell(home: Path) -> None:
    async with FakeProvider(lines("naïve → 日本")) as stage:
        ended = await hone("run", "x", env=environment(home, stage, PYTHONIOENCODING="ascii"))
    assert (ended.code, ended.out) == (0, "na\\xefve \\u2192 \\u65e5\\u672c\n")


async def test_a_home_that_cannot_be_written_is_said_and_the_task_is_done(home: Path) -> None:
    async with FakeProvider(lines("Done.")) as stage:
        ended = await hone("--home", "/proc/hone", "run", "x", env=environment(home, stage))
    assert (ended.code, ended.out) == (0, "Done.\n")
    assert "is not kept, and nothing is learned" in ended.err


LOADED = """
import sys
from hone.cli.main import perform
code = perform(sys.argv[2:])
print(code, sorted(set(sys.argv[1].split()) & set(sys.modules)))
"""
DRAWING = "rich pygments markdown_it prompt_toolkit"
SELDOM = (
    "yaml starlette uvicorn jinja2 secrets statistics http.client email "
    "hone.web hone.cli.chat hone.features.curator.curator "
    "hone.features.experiments.runner hone.features.templates.store hone.features.imports "
    "hone.features.backends.reminding hone.features.backends.evaluate hone.features.backends.postgres "
    "hone.features.backends.honcho hone.models.anthropic hone.features.local_models.local "
    "hone.knowledge.skills.install hone.stores.maintenance "
    "hone.stores.examine hone.stores.repair hone.sandbox.trial hone.tools.web.readable"
)
"""What one question and its answer have no use for."""


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (["--version"], f"{DRAWING} asyncio msgspec apsw json ssl hone.app hone.settings hone.cli.run"),
        (["--help"], DRAWING),
        (["run", "hello"], f"{DRAWING} {SELDOM}"),
        (["sessions", "list"], DRAWING),
        (["config", "path"], DRAWING),
    ],
)
async def test_a_command_loads_what_it_needs_and_no_more(
    home: Path, arguments: list[str], heavy: str
) -> None:
    async with FakeProvider(echo) as stage:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", LOADED, heavy, *arguments),
            env=environment(home, stage),
            stdin=DEVNULL,
            stdout=PIPE,
        )
        async with asyncio.timeout(PATIENCE):
            out, _ = await process.communicate()
    assert out.decode().splitlines()[-1] == "0 []"
    assert arguments[0] in ("run", "sessions") or os.listdir(home) == []
