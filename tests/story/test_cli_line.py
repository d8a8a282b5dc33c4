"""The command line as people reach for it: choose a conversation at a terminal, complete in a shell."""

import asyncio
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest
from click.shell_completion import CompletionItem, ShellComplete

from hone.cli.main import cli, perform
from hone.files.documents import FileDocuments
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import echo
from hone.runtime.trust import Folders
from tests.cli.driving import ENTER, ESCAPE, environment, hone, terminal
from tests.golden import assert_golden
from tests.tier import Tier

SCREENS = Path(__file__).with_name("screens")
SIZES = ((80, 24), (120, 40), (60, 20))
LONG = "Explain why the parser is so slow on large files, and what could be done about it this week"


async def test_a_conversation_is_chosen_from_a_list_with_search(
    home: Path, tmp_path: Path, tier: Tier
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    Folders.of(FileDocuments(home)).trust(there)
    async with FakeProvider(echo) as stage:
        env = environment(home, stage, HOME=str(tmp_path))
        for words, folder in ((LONG, here), ("Fix the lexer", here), ("Fix the parser", there)):
            await hone("run", words, env=env, folder=folder)
        for size in SIZES if tier.long else SIZES[:1]:
            async with terminal("-r", env=env, folder=here, size=size) as screen:
                await screen.sees(
                    "Which conversation?", "just now · 2 messages · Fix the lexer", "Explain why the parser"
                )
                await screen.sees("↑ ↓ and Enter choose")
                seen = re.sub(r"· [0-9a-f]{1,10}(…?)$", r"· 012345\1", screen.screen, flags=re.MULTILINE)
                assert_golden(SCREENS / f"resuming-{size[0]}x{size[1]}.txt", f"{seen}\n")
                assert all(len(row) <= size[0] for row in screen.rows)
                assert screen.text.index("Fix the lexer") < screen.text.index("Fix the parser")
                screen.type("fix pars")
                await screen.until(lambda: "lexer" not in screen.text, "a shorter list")
                assert re.search(r"just now · ~/there · \d messages · Fix the parser", screen.text)
                screen.type(ENTER)
                await screen.sees("Continuing “Fix the parser”", "in ~/there, where", "tools work).")
                await screen.enter("and now?")
                await screen.sees("model heard: and now?")
                assert await screen.leave() == 0
        named = await hone("run", "-r", "fix the", "more", env=env, folder=there)
        assert (named.code, "Continuing “Fix the parser”" in named.err) == (0, True)
        async with terminal("-r", env=env, folder=there, size=(80, 24)) as screen:
            await screen.sees("Which conversation?")
            screen.type(ESCAPE)
            assert (await screen.ended(), "Stopped." in screen.text) == (130, True)


@pytest.mark.parametrize("command", [["doctor"], ["config"], ["--help"], ["config", "set", "nosuch", "1"]])
async def test_sentences_are_broken_between_words_on_a_narrow_screen(home: Path, command: list[str]) -> None:
    env = environment(home, PATH="/usr/bin:/bin", COLUMNS="60")
    whole = await hone(*command, env=environment(home, PATH="/usr/bin:/bin", COLUMNS="500"))
    async with terminal(*command, env=env, size=(60, 40), trusted=False) as screen:
        assert await screen.ended() == whole.code
        end = (whole.out + whole.err).split()[-1]
        await screen.until(lambda: screen.text.split()[-1:] == [end], "all of it")
    plain = re.sub(rb"\x1b\[[0-9;?]*[a-z]", b"", screen.data).decode().replace("\r", "")
    long = [line for line in plain.splitlines() if len(line) > 60]
    assert [line for line in long if len(line.split()) > 2] == [], "only a path or a value may be longer"
    assert "".join(plain.split()) == "".join((whole.out + whole.err).split())


async def test_a_shell_completes_names_and_runs_no_code(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nasty = "a:b $(touch pwned) `touch pwned`\n'; touch pwned \x1b[2J"
    async with FakeProvider(echo) as stage:
        id = json.loads((await hone("run", "--json", nasty, env=environment(home, stage))).out)["session"]
    (home / "hone.toml").write_text('plugins = ["pwned:register"]\ncalls = "bad"\n')
    (tmp_path / "pwned.py").write_text("open('pwned', 'w')\n")
    program = tmp_path / "hone"
    program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -m hone \"$@\"\n")
    program.chmod(0o700)
    script = await hone("completion", "bash", env=environment(home))
    asked = f"COMP_WORDS=(hone sessions show '')\nCOMP_CWORD=3\n_hone_completion '{program}'"
    lines = f"{script.out}\n{asked}\necho ${{COMPREPLY[@]}}\n"
    env = environment(home, PYTHONPATH=str(tmp_path))
    ended = subprocess.run(["bash", "-c", lines], env=env, cwd=tmp_path, stdout=PIPE, text=True, check=True)
    assert ended.stdout == f"{id}\n"
    monkeypatch.chdir(tmp_path)
    [shown] = await asyncio.to_thread(find, "sessions", "show")
    assert (shown.value, *(letter in (shown.help or "") for letter in "\x1b\n")) == (id, False, False)
    assert not (tmp_path / "pwned").exists()


def find(*words: str) -> list[CompletionItem[str]]:
    """What is offered for the word behind these."""
    return ShellComplete(cli, {}, "hone", "_HONE_COMPLETE").get_completions(list(words), "")


def test_commands_options_skills_and_keys_are_completed(home: Path) -> None:
    shell = ShellComplete(cli, {}, "hone", "_HONE_COMPLETE")
    for words, incomplete, expected in (
        ([], "sess", ["sessions"]),
        (["run"], "--max", ["--max-calls"]),
        (["run", "--output"], "", ["text", "json", "stream-json"]),
        (["run", "--skill"], "code", ["code-review"]),
        (["config", "set"], "learning.t", ["learning.turns"]),
        (["-r"], "zzz", []),
        (["sessions"], "re", ["rename", "resume"]),
    ):
        assert [each.value for each in shell.get_completions(words, incomplete)] == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert perform(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"{shell}_complete" in script
    if program := shutil.which(shell):
        checked = subprocess.run([program, "-n"], input=script, text=True, stderr=PIPE, check=False)
        assert (checked.returncode, checked.stderr) == (0, "")
