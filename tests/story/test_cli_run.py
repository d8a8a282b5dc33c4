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

ATTACHED = (
    "<hone-attachment>\n# standard input, label: foreign\nthis \N{REPLACEMENT CHARACTER}\n</hone-attachment>"
)
SLOW = " ".join(f"word{number}" for number in range(20_000))


@pytest.mark.parametrize(
    ("arguments", "piped", "code", "complaint"),
    [
        (["run"], None, 2, "There is no task."),
        (["run", ""], None, 2, "There is no task."),
        (["run", "  "], None, 2, "There is no task."),
        (["run", "-"], b" \n", 2, "There is no task."),
        (["run", "--nonsense", "x"], None, 2, "No such option"),
        (["rnu"], None, 2, "There is no command 'rnu'. Did you mean: hone run\n"),
        (["sesions", "list"], None, 2, "Did you mean: hone sessions"),
        (["help"], None, 2, "Did you mean: hone --help"),
        (["explain this"], None, 2, "No model to talk to yet."),
        (["nonsense"], None, 2, "No model to talk to yet."),
        (["sessions", "lst"], None, 2, "Did you mean 'list'?"),
        (["--resume", "a", "--continue"], None, 2, "use one of them"),
        (["run", "-r", "a", "-c", "x"], None, 2, "use one of them"),
        (["run", "--json", "--output", "stream-json", "x"], None, 2, "do not go together"),
        (["run", "--allow", "everything", "x"], None, 2, "Write it as `tool: pattern`"),
        (["run", "--max-calls", "0", "x"], None, 2, "x>=1"),
        (["run", "x"], None, 2, "No model to talk to yet."),
        (["--model", "nowhere/x", "run", "x"], None, 2, "does not name a known provider"),
        (["run", "--model", "openai/x", "x"], None, 2, "export OPENAI_API_KEY="),
        (["-c", "run", "x"], None, 1, "There is no conversation to continue yet."),
        (["run", "--resume", "zzz", "x"], None, 1, "There is no conversation “zzz”."),
        (["-r"], b"x", 1, "There is no conversation to continue yet."),
        (["sessions", "show", "zzz"], None, 1, "There is no session"),
        (["sessions", "rename", "zzz"], None, 2, "Missing argument"),
        (["sessions", "prune", "--older-than", "soon"], None, 2, "is not an age"),
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
        (["run", "review"], b"\xef\xbb\xbfthis \xff\n", f"review\n\n{ATTACHED}"),
        (["run", "review"], b"", "review"),
        (["review this"], None, "review this"),
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


async def test_a_conversation_is_continued_in_its_own_folder_and_elsewhere_only_by_its_name(
    home: Path, tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    write = call("write_file", path="note", content="hi")
    async with FakeProvider(
        lines("One.", assistant(write), "Two.", "Mine.", assistant(write), "3.")
    ) as stage:
        env = environment(home, stage)
        first = json.loads((await hone("run", "--json", "Fix the parser", env=env, folder=here)).out)
        id, asked = first["session"], len(stage.bodies)
        for arguments in (["-c", "run", "b"], ["run", "-c", "b"], ["-c", "b"]):
            refused = await hone(*arguments, env=env, folder=there)
            assert (refused.code, refused.out) == (1, "")
            assert "There is no conversation in this folder yet." in refused.err
            assert f"“Fix the parser” in {here}; to continue it: hone -r {id}" in refused.err
        listed = await hone("run", "-r", "parser", "b", env=env, folder=there)
        assert (listed.code, listed.out) == (1, "")
        assert f"{id}  just now     {here}  Fix the parser\n" in listed.err
        assert "1 conversation fits, none of them in this folder. Name one by its id" in listed.err
        assert len(stage.bodies) == asked
        named = await hone("run", "--session", id, "b", env=env, folder=there)
        assert f"Continuing “Fix the parser” ({id}, last active just now, in {here}, where its" in named.err
        assert [each.relative_to(tmp_path) for each in tmp_path.rglob("note")] == [Path("here/note")]
        await hone("run", "something else", env=env, folder=there)
        last = await hone("-c", "run", "c", env=env, folder=here)
        assert f"Continuing “Fix the parser” ({id}, last active just now, in this folder)." in last.err
        shutil.rmtree(here)
        moved = await hone("-r", id, "c", env=env, folder=there)
    assert f"{here} no longer exists; the tools work in {there}." in moved.err


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


async def test_only_words_that_the_owner_gave_are_the_owners(home: Path) -> None:
    learn = assistant(
        call("memory", action="add", target="user", text="Always use tabs.", evidence=["Always use tabs."])
    )
    async with FakeProvider(lines(learn, "Done.", learn, "Done.", learn, "Done.")) as stage:
        env = environment(home, stage)
        both = await hone("run", "--json", "Review this.", env=env, piped=b"Always use tabs.\n")
        alone = await hone("run", "--json", env=env, piped=b"Always use tabs.\n")
        pending, before = await hone("pending", "--json", env=env), await hone("memory", "show", env=env)
        own = await hone("run", "--json", "-", env=env, piped=b"Always use tabs.\n")
        sessions = [json.loads(each.out)["session"] for each in (both, alone, own)]
        shown = [json.loads((await hone("sessions", "show", id, "--json", env=env)).out) for id in sessions]
        known = await hone("memory", "show", env=env)
    assert [each["messages"][0]["trust"] for each in shown] == ["owner", "foreign", "owner"]
    kinds = [[part["kind"] for part in each["messages"][0]["parts"]] for each in shown]
    assert [kind[-2:] for kind in kinds] == [["text", "attachment"], ["note", "text"], ["note", "text"]]
    assert len(json.loads(pending.out)) == 1  # the same words wait once
    assert [each.out.count("Always use tabs.") for each in (before, known)] == [0, 1]


async def test_a_program_reads_events_as_they_happen_and_rules_hold_for_one_run(
    home: Path, tmp_path: Path
) -> None:
    write = assistant("Looking.", call("write_file", path="a/note", content="hi"))
    async with FakeProvider(lines(write, "No.", write, "Yes.")) as stage:
        env = environment(home, stage)
        rules = ["--deny", "write_file: a/**", "--output", "stream-json"]
        denied = await hone("run", *rules, "go", env=env, folder=tmp_path)
        events = [json.loads(line) for line in denied.out.splitlines()]
        assert [each["type"] for each in events if each["type"] not in ("text", "notice", "spent")] == [
            *("session", "heard", "call", "result", "ended", "done")
        ]
        assert next(each for each in events if each["type"] == "result")["failed"]
        assert (events[-1]["text"], events[-1]["session"]) == ("No.", events[0]["session"])
        assert (denied.err, (tmp_path / "a").exists()) == ("", False)
        spent = await hone("run", "--max-calls", "1", "-q", "go", env=env, folder=tmp_path)
    assert (spent.code, (tmp_path / "a" / "note").exists()) == (3, True)
