"""L4: commands use what the user works with, without a question, and find no secret beside it."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from hone import Hone
from hone.core.messages import assistant
from hone.core.permissions import Answer, Question
from hone.core.turn import Turn
from hone.models.scripted import Scripted, call, lines
from tests.conftest import Figures, requires

CANARY = "canary-7f3a"
SECRETS = """
    .cargo/credentials.toml .npmrc .nvm/.npmrc .ssh/id_ed25519 .config/uv/credentials.toml .netrc
    .local/share/uv/credentials/token .git-credentials .nvm/versions/node/v20/etc/npmrc .aws/credentials
    .local/share/keyrings/login envs/work/pip.conf notes/private.txt
"""


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def furnish(user: Path) -> None:
    """A home with a cargo-like and an nvm-like layout, a tool, a name for git, and secrets."""
    program(user / ".rustup/toolchains/stable/bin/cargo", "echo cargo 1.80.0")
    program(user / ".cargo/bin/cargo", 'exec "$RUSTUP_HOME/toolchains/stable/bin/cargo" "$@"')
    node = user / ".nvm/versions/node/v20"
    program(node / "lib/node_modules/npm/bin/npm-cli.js", 'cat "$(dirname "$(realpath "$0")")/../version"')
    (node / "lib/node_modules/npm/version").write_text("10.8.1\n")
    (node / "bin").mkdir()
    (node / "bin/npm").symlink_to("../lib/node_modules/npm/bin/npm-cli.js")
    program(user / ".local/share/uv/tools/greet/bin/greet", "echo greetings")
    (user / ".local/bin").mkdir(parents=True)
    (user / ".local/bin/greet").symlink_to("../share/uv/tools/greet/bin/greet")
    (user / ".gitconfig").write_text("[user]\n\tname = Ada Example\n\temail = ada@example.org\n")
    for name in SECRETS.split():
        (user / name).parent.mkdir(parents=True, exist_ok=True)
        (user / name).write_text(f"{CANARY}\n")


def make_environment(place: Path) -> None:
    """A real virtual environment that finds the pytest of this one."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    packages = next((place / "lib").glob("python3*/site-packages"))
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    check = f"assert sys.prefix == {str(place)!r}"
    (place / "bin/pytest").write_text(
        f"#!{place}/bin/python\nimport sys, pytest\n{check}\nsys.exit(pytest.main())\n"
    )
    (place / "bin/pytest").chmod(0o755)


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    user = tmp_path.resolve() / "user"
    furnish(user)
    make_environment(user / "envs/work")
    folders = ("envs/work/bin", ".cargo/bin", ".nvm/versions/node/v20/bin", ".local/bin")
    monkeypatch.setenv("PATH", ":".join([*(str(user / each) for each in folders), os.environ["PATH"]]))
    for name, value in (("HOME", user), ("VIRTUAL_ENV", user / "envs/work"), ("SERVICE_TOKEN", CANARY)):
        monkeypatch.setenv(name, str(value))
    for name in (
        "CARGO_HOME",
        "RUSTUP_HOME",
        "NVM_DIR",
        "GIT_CONFIG_GLOBAL",
        "GIT_AUTHOR_NAME",
        "XDG_CONFIG_HOME",
    ):
        monkeypatch.delenv(name, raising=False)
    return user


async def play(folder: Path, asked: list[Question], *commands: str) -> list[str]:
    async def ask(question: Question) -> Answer:
        asked.append(question)
        return Answer.NO

    script = lines(*(assistant(call("terminal", command=command)) for command in commands), "done")
    async with Hone(model=Scripted(script), folder=folder, ask=ask) as hone:
        turn: Turn = await hone.run("do it")
    return [node.message.result.text for node in turn.nodes if node.message.result]


@pytest.mark.rights
async def test_a_users_own_tools_work_without_a_question_and_show_no_secret(
    user: Path, home: Path, figures: Figures
) -> None:
    requires("bwrap")
    requires("git")
    folder = user / "code/project"
    folder.mkdir(parents=True)
    (folder / "test_it.py").write_text("def test_it():\n    assert True\n")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    asked: list[Question] = []
    results = await play(
        folder,
        asked,
        "pytest -q -p no:cacheprovider",
        "git add -A && git commit -qm first && git log -1 --format='%an <%ae>' && git branch b && git status",
        "npm --version",
        "cargo --version",
        "greet",
        f"env; grep -rs {CANARY} {user} /proc/*/environ; ls -A {user}",
        f"cd {user}; touch .local/bin/x .cargo/bin/x envs/work/bin/x; mkdir -p $PIP_CACHE_DIR/x && echo made",
        "ls $PIP_CACHE_DIR; ls ~ -A",
    )
    tests, git, npm, cargo, greet, secrets, writes, caches = results
    assert "1 passed" in tests
    assert git.startswith("Ada Example <ada@example.org>\n")
    assert npm.startswith("10.8.1\n")
    assert cargo.startswith("cargo 1.80.0\n")
    assert greet.startswith("greetings\n")
    assert "PATH=" in secrets
    assert writes.count("Read-only file system") + writes.count("Permission denied") == 3
    assert "made\n" in writes
    assert caches.startswith("x\n")
    found = "\n".join(results).count(CANARY)
    figures.tally(len(SECRETS.split()) + 1, got_in=found, note="secrets beside the user's tools")
    assert found == 0
    assert asked == []
    assert sorted(path.name for path in folder.iterdir()) == [".git", "__pycache__", "test_it.py"]


@pytest.mark.rights
async def test_what_a_command_leaves_is_told_and_the_scripts_of_a_skill_run_by_their_path(
    user: Path, home: Path
) -> None:
    requires("bwrap")
    folder = user / "project"
    folder.mkdir()
    script = home / "skills/tide-tables/scripts/tides.sh"
    program(script, "echo high tide")
    (script.parents[1] / "SKILL.md").write_text(
        "---\nname: tide-tables\ndescription: Read tide tables.\n---\nRun it.\n"
    )
    asked: list[Question] = []
    planted, ran, hidden = await play(
        folder,
        asked,
        "mkdir -p .github/workflows; echo evil > .github/workflows/x.yml; echo fine > notes.txt",
        f"{script}; echo evil > {script}",
        f"ls {home}; cat {home}/hone.db | head -c 6",
    )
    assert "taken back: .github/workflows (CI runs it), kept in " in planted
    assert "commands cannot change such files, use write_file" in planted
    assert ran.startswith("high tide\n")
    assert "Read-only file system" in ran
    assert "SQLite" not in hidden
    assert script.read_text().endswith("echo high tide\n")
    assert [path.name for path in (home / "quarantine").rglob("x.yml")] == ["x.yml"]
    assert asked == []
    assert (folder / "notes.txt").read_text() == "fine\n"


async def test_a_sensitive_file_that_the_owner_agreed_to_stays_while_a_command_runs(
    user: Path, home: Path
) -> None:
    requires("bwrap")
    folder = user / "project"
    folder.mkdir()

    async def agree(question: Question) -> Answer:
        return Answer.ONCE

    script = lines(
        assistant(call("terminal", command="sleep 1000", background=True)),
        assistant(call("write_file", path=".envrc", content="export A=1\n")),
        assistant(call("terminal", command="true")),
        assistant(call("process", id="p1", action="stop")),
        "done",
    )
    async with Hone(model=Scripted(script), folder=folder, ask=agree) as hone:
        turn = await hone.run("do it")
    told = "\n".join(node.message.result.text for node in turn.nodes if node.message.result)
    assert (folder / ".envrc").read_text() == "export A=1\n"
    assert "taken back" not in told
