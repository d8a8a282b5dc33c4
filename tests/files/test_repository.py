"""A repository is read as Git reads it, without Git; what is damaged or hostile is not there."""

import os
import subprocess
from pathlib import Path
from random import Random

from hone.files.repository import Repository, read_pointer
from hone.runtime.provenance.commits import find_commits
from tests.conftest import Figures, Tier, requires
from tests.laundering import IDENTITY


def git(folder: Path, *arguments: str, data: bytes | None = None) -> bytes:
    line = ["git", *IDENTITY, *arguments]
    return subprocess.run(line, cwd=folder, input=data, capture_output=True, check=True).stdout


def grow(folder: Path, random: Random, steps: int) -> None:
    """Commits, branches, merges, tags and stashes; now and then everything is packed."""
    git(folder, "init", "-q", "-b", "main")
    for step in range(steps):
        for _ in range(random.randrange(1, 4)):
            path = folder / random.choice(("a.txt", "b/c.txt", "b/d/e.txt", "f.txt"))
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = path.read_text().splitlines() if path.exists() else [f"line {n}" for n in range(200)]
            lines.insert(random.randrange(len(lines)), f"{step} {random.random()}")
            path.write_text("\n".join(lines))
        git(folder, "add", ".")
        when = f"{1_700_000_000 + step * 60 + random.choice((0, 90, 1_000))} +0000"  # clocks differ
        env = {**os.environ, "GIT_COMMITTER_DATE": when, "GIT_AUTHOR_DATE": when}
        line = ["git", *IDENTITY, "commit", "-qm", f"step {step}\n\nwith more words"]
        subprocess.run(line, cwd=folder, env=env, check=True)
        if step % 7 == 3:
            git(folder, "checkout", "-qb", f"side-{step}", "HEAD~2")
        if step % 7 == 6:
            git(folder, "checkout", "-q", "-f", "main")
            git(folder, "merge", "-q", "-X", "ours", f"side-{step - 3}", "-m", "merge")
        if step % 9 == 8:
            git(folder, "tag", "-a", f"v{step}", "-m", "a tag")
            git(folder, "gc", "-q")


def test_objects_references_and_history_are_those_that_git_shows(
    tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    requires("git")
    random = tier.random()
    grow(tmp_path, random, tier.size(short=16, full=120))
    repository = Repository.find(tmp_path / "b" / "d")
    assert repository is not None
    assert repository.head() == git(tmp_path, "rev-parse", "HEAD").decode().strip()
    shown = dict(line.split()[::-1] for line in git(tmp_path, "show-ref").decode().splitlines())
    assert {name: id for name, id in repository.refs().items() if name != "HEAD"} == shown
    listing = git(tmp_path, "cat-file", "--batch-all-objects", "--batch-check").decode().splitlines()
    for line in listing:
        id, kind, _ = line.split()
        found = repository.read(id)
        assert found is not None
        assert (found.kind, found.data) == (kind, git(tmp_path, "cat-file", kind, id))
    commits = git(tmp_path, "rev-list", "--all").decode().split()
    for _ in range(20):
        new, old = random.choice(commits), random.choice(commits)
        wanted = git(tmp_path, "rev-list", new, f"^{old}").decode().split()
        assert {*find_commits(repository, {new}, {old})} == {*wanted}
        commit = repository.commit(new)
        assert commit is not None
        sides = [commit.parents[0], new] if commit.parents else ["--root", new]
        rows = git(tmp_path, "diff-tree", "-r", "--no-commit-id", *sides).decode()
        changed = {row.split("\t")[1]: row.split()[3] for row in rows.splitlines() if row.split()[4] != "D"}
        assert dict(repository.changes(commit)) == changed
    figures(f"{len(listing)} objects read as Git reads them")


def test_what_is_damaged_is_not_there(tmp_path: Path, tier: Tier, figures: Figures) -> None:
    requires("git")
    random = tier.random()
    grow(tmp_path, random, 12)
    ids = git(tmp_path, "rev-list", "--objects", "--all").decode().split("\n")
    names = [line.split(" ")[0] for line in ids if line]
    places = [path for path in (tmp_path / ".git" / "objects").rglob("*") if path.is_file()]
    tries = tier.size(short=30, full=2_000)
    for _ in range(tries):
        path = random.choice(places)
        before, mode = path.read_bytes(), path.stat().st_mode
        data = bytearray(before)
        for _ in range(random.randrange(1, 5)):
            data[random.randrange(len(data))] = random.randrange(256)
        path.chmod(0o644)
        path.write_bytes(bytes(data[: random.randrange(1, len(data) + 1)]))
        repository = Repository.find(tmp_path)
        assert repository is not None
        for name in random.sample(names, 5):
            repository.read(name)
        find_commits(repository, {repository.head()}, set())
        path.write_bytes(before)
        path.chmod(mode)
    figures(f"{tries} damaged repositories, 0 raised")


def test_a_hostile_repository_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "a" / ".git").mkdir(parents=True)
    os.mkfifo(tmp_path / "a" / ".git" / "HEAD")
    repository = Repository.find(tmp_path / "a")
    assert repository is not None
    assert repository.head() == ""
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / ".git").write_text("gitdir: ../a/.git\nmore\n")
    assert read_pointer(tmp_path / "b" / ".git") == tmp_path / "a" / ".git"
    (tmp_path / "c" / ".git").mkdir(parents=True)
    (tmp_path / "c" / ".git" / "HEAD").write_text("ref: ../../../../../../etc/passwd\n")
    other = Repository.find(tmp_path / "c")
    assert other is not None
    assert other.head() == ""
