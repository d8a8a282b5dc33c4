"""What is left of a configuration makes git run nothing, by git's own reading of it."""

import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.sandbox.gitfiles import git_folders_outside, harmless_part, pointed_folder
from tests.conftest import requires

HARMLESS = {
    *(
        "core.bare",
        "core.filemode",
        "core.repositoryformatversion",
        "core.worktree",
        "remote.x.url",
        "user.name",
    ),
    *("remote.x.fetch", "branch.x.merge", "branch.x.remote", "submodule.x.url", "extensions.worktreeconfig"),
}
SECTIONS = [
    "[core]",
    '[remote "x"]',
    "[remote.x]",
    '[branch "x"]',
    "[alias]",
    "[include]",
    "[CORE]",
    "[user]",
]
SECTIONS += [
    "[pager]",
    '[filter "x"]',
    '[submodule "x"]',
    "[extensions]",
    '[includeIf "gitdir:/"]',
    "[gpg]",
    "[ core ]",
]
KEYS = [
    "bare",
    "fileMode",
    "fsmonitor",
    "hooksPath",
    "sshCommand",
    "url",
    "fetch",
    "path",
    "clean",
    "program",
]
KEYS += [
    "worktree",
    "remote",
    "merge",
    "name",
    "uploadpack",
    "x",
    "update",
    "editor",
    "repositoryformatversion",
]
VALUES = [
    "true",
    "evil",
    "!evil",
    '"evil"',
    "ext::evil",
    "https://x/y",
    "..",
    "/etc",
    "a # b",
    "a\\",
    '"a',
    "0",
    "",
]

lines = st.one_of(
    st.sampled_from(SECTIONS),
    st.builds("{} {} = {}".format, st.sampled_from(SECTIONS), st.sampled_from(KEYS), st.sampled_from(VALUES)),
    st.builds("\t{} = {}".format, st.sampled_from(KEYS), st.sampled_from(VALUES)),
    st.sampled_from(
        ["# note \\", "; note", "", "\ufeff[core]", "fsmonitor", "\\", "[core", "]", "x=y\r", "\x0b[core]"]
    ),
)
texts = st.lists(lines, max_size=8).map("\n".join)


def listed(text: str, folder: Path) -> list[tuple[str, str]] | None:
    """What git makes of a configuration; None if it refuses it."""
    requires("git")
    (folder / "config").write_bytes(text.encode("utf-8", "surrogateescape"))
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    said = subprocess.run(
        ["git", "config", "-f", str(folder / "config"), "--null", "--list"],
        env=env,
        capture_output=True,
        check=False,
    )
    rows = said.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
    return (
        [(row.partition("\n")[0], row.partition("\n")[2]) for row in rows] if said.returncode == 0 else None
    )


@given(texts)
def test_git_finds_nothing_to_run_in_what_is_left(text: str) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name).resolve()
        place = folder / ".git" / "config"
        kept = harmless_part(text, place, folder)
        assert harmless_part(kept, place, folder) == kept
        for key, value in listed(kept, folder) or []:
            assert key in HARMLESS or key.partition(".")[0] in ("extensions", "submodule"), (key, kept)
            if key == "core.worktree":
                assert Path(os.path.normpath(place.parent / value)).is_relative_to(folder)
            else:
                assert "::" not in value
                assert not value.startswith("!")


def test_a_fresh_configuration_and_that_of_a_clone_stay_as_they_are(tmp_path: Path) -> None:
    text = (
        "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
        '[remote "origin"]\n\turl = https://example.org/x\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n'
        '[branch "main"]\n\tremote = origin\n\tmerge = refs/heads/main\n'
        '[submodule "lib"]\n\tactive = true\n\turl = git@example.org:lib.git\n'
    )
    assert harmless_part(text, tmp_path / ".git" / "config", tmp_path) == text


@pytest.mark.parametrize("text", ["gitdir: ../x\n", "gitdir:../x", "gitdir: ../x \n\n"])
def test_a_git_file_leads_somewhere(text: str) -> None:
    assert pointed_folder(text, Path("/a/b/.git")) == Path("/a/x")
    assert pointed_folder("ref: x", Path("/a/.git")) is None


def test_the_git_folder_of_a_worktree_is_found_and_a_stray_git_file_opens_nobodys_repository(
    tmp_path: Path,
) -> None:
    requires("git")
    tmp_path = tmp_path.resolve()
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    identity = ("-c", "user.name=A", "-c", "user.email=a@b.c")

    def git(*arguments: str) -> None:
        subprocess.run(["git", *identity, *arguments], env=env, cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q", "main")
    git("-C", "main", "commit", "-q", "--allow-empty", "-m", "x")
    git("-C", "main", "worktree", "add", "-q", "../tree")
    own = tmp_path / "main" / ".git"
    assert git_folders_outside(tmp_path / "tree") == [own / "worktrees" / "tree", own]
    assert [*git_folders_outside(tmp_path / "main")] == []
    stray = tmp_path / "stray"
    stray.mkdir()
    for target in (own, own / "worktrees" / "tree"):
        (stray / ".git").write_text(f"gitdir: {target}\n")
        assert [*git_folders_outside(stray)] == []
