"""The start is measured for every command, alone or beside a revision."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import revision
from benchmarks.bench import ROOT


def start(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.start", "--runs", "1", *options]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)


def test_every_command_gets_its_processor_time() -> None:
    done = start()
    assert done.returncode == 0, done.stderr
    _, _, *rows = done.stdout.splitlines()
    assert [row.split(" | ")[0] for row in rows] == [
        "| hone --version",
        "| hone --help",
        "| hone undo --help",
        "| hone undo 3",
        "| hone run hi, to the first request",
    ]
    assert all(re.fullmatch(r"\|[^|]+\| \d+\.\d \| \d+\.\d \|", row) for row in rows)


def test_a_revision_that_is_not_there_is_said_in_one_line() -> None:
    done = start("--compare", "no-such-revision")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert done.stderr.startswith("Git has no revision no-such-revision")


def test_a_revision_is_unpacked_beside_the_working_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository, other = tmp_path / "repository", tmp_path / "other"
    monkeypatch.setattr(revision, "ROOT", repository)
    git = ("git", "-C", str(repository), "-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(("git", "init", "-q", str(repository)), check=True)
    for text in ("old", "new"):
        (repository / "src").mkdir(exist_ok=True)
        (repository / "src" / "a.py").write_text(text)
        subprocess.run((*git, "add", "."), check=True)
        subprocess.run((*git, "commit", "-qm", text), check=True)
    assert (revision.unpacked("HEAD~1", other) / "src" / "a.py").read_text() == "old"
