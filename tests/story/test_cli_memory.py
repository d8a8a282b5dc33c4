"""`hone memory`: the owner reads and changes the journal, and no file that is odd is ever written over."""

import asyncio
import shutil
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli import nobody
from tests.cli.driving import HONE, Ended, environment, hone
from tests.cli.owner import Owner, editor
from tests.conftest import Figures

KEY = "sk-ant-api03-" + "aB3dE5fG7hJ9" * 7


@pytest.fixture
def owner(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Owner:
    monkeypatch.chdir(tmp_path)
    return Owner(home, capsys, monkeypatch)


def test_what_cannot_be_done_says_why_and_changes_nothing(owner: Owner) -> None:
    for text, part in (("Works on Linux", "memory"), ("Works at night", "memory"), ("Works alone", "user")):
        assert owner.memory("add", text, "--to", part).code == 0
    before = {file.name: file.read_bytes() for file in owner.home.glob("*.md")}
    refused = {
        ("rm", "Works"): "Several parts have such an entry: memory, user. Name one.",
        ("rm", "Works", "--from", "memory"): "Several entries have 'Works' in them; nothing was changed.",
        ("rm", "Linux", "--from", "user"): "No entry has 'Linux' in it; nothing was changed.",
        ("rm", "Windows"): "No entry has these words in it; nothing was changed.",
        ("replace", "Windows", "Mac"): "No entry has these words in it; nothing was changed.",
        ("add", "Works on Linux"): "already there, word for word; nothing was changed.",
        ("add", " "): "An entry needs words; nothing was changed.",
        ("add", f"The key is {KEY}"): "looks like a secret",
        ("add", "x" * 2_300): "at most 2,200 are allowed",
    }
    for arguments, sentence in refused.items():
        ended = owner.memory(*arguments)
        assert (ended.code, ended.out) == (1, ""), arguments
        assert sentence in ended.err
    for wrong in (("add",), ("add", "x", "--to", "nowhere"), ("edit", "nothing")):
        assert owner.memory(*wrong).code == 2
    assert {file.name: file.read_bytes() for file in owner.home.glob("*.md")} == before
    assert len(owner.logged()) == 3


def test_entries_are_added_replaced_removed_and_shown_with_where_they_come_from(owner: Owner) -> None:
    added = owner.memory("add", "Staging is at staging.example.org")
    assert added.out.splitlines() == [
        "Saved as change 1; MEMORY.md now has 33 of 2,200 characters.",
        "Undo it with: hone undo 1",
    ]
    owner.memory("add", "Prefers short answers", "--to", "user")
    (owner.home / "MEMORY.md").write_text(
        "# Servers\n\n- Staging is at staging.example.org\n- By hand\n  and below\n"
    )
    shown = owner.memory("show").out
    assert "memory: MEMORY.md, 50 of 2,200 characters\n  │ # Servers\n  - Staging is at" in shown
    assert "      change 1: add by owner, " in shown
    assert "  - By hand\n    and below\n      change 3: edit by owner, " in shown
    assert "(Lines marked │ are your own notes" in shown
    parts = owner.shown()
    assert parts["memory"]["prose"] == "# Servers\n\n"
    [entry] = parts["user"]["entries"]
    assert (entry["change"], entry["actor"], entry["confirmed"]) == (2, "owner", True)

    assert owner.memory("replace", "short", "Prefers long answers").code == 0
    assert owner.memory("rm", "By hand").code == 0
    assert owner.said("user") == ["Prefers long answers"]
    assert (owner.home / "MEMORY.md").read_text() == "# Servers\n\n- Staging is at staging.example.org\n"


def test_a_projects_entries_appear_in_its_folder_only(owner: Owner, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    assert owner.memory("add", "Tests run with make", "--to", "project").code == 0
    assert owner.said("project") == ["Tests run with make"]
    assert f"(for {tmp_path})" in owner.memory("show").out
    assert [each["target"] for each in owner.logged("--target", "project")] == [f"project:{tmp_path}"]
    owner.move(tmp_path / "there")
    assert owner.said("project") == []
    assert owner.said("project", "--project", str(tmp_path)) == ["Tests run with make"]
    assert owner.logged("--target", "project") == []
    assert len(owner.logged("--target", f"project:{tmp_path}")) == 1


@pytest.fixture
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the copies lie that editors get."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_the_editor_gets_a_copy_and_what_is_saved_is_recorded(owner: Owner, copies: Path) -> None:
    unset = owner.memory("edit")
    assert (unset.code, "Set EDITOR" in unset.err) == (2, True)
    owner.edits("raise SystemExit(3)")
    failed = owner.memory("edit")
    assert (failed.code, failed.err) == (1, "The editor ended with exit code 3.\n")
    assert not list(copies.glob("hone-edit-*"))
    owner.edits("pass")
    assert owner.memory("edit").out == "Nothing has changed.\n"
    assert not (owner.home / "MEMORY.md").exists()
    for part in ("memory", "user", "project"):
        owner.edits(f"file.write_text('- Lives in {part}\\n')")
        ended = owner.memory("edit", part)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out.endswith(": +1 −0.\n")
        assert owner.said(part) == [f"Lives in {part}"]
    [newest, *_] = owner.logged()
    assert (newest["actor"], newest["deed"], newest["confirmed"]) == ("owner", "edit", True)
    assert not list(copies.glob("hone-edit-*"))


def test_what_is_learned_while_the_editor_is_open_is_merged_and_a_conflict_keeps_both(owner: Owner) -> None:
    owner.memory("add", "Staging is at a.example.org")
    owner.memory("add", "Deploys run on Fridays")
    learn = (
        f"import subprocess; subprocess.run([{sys.executable!r}, '-m', 'hone', 'memory', *{{}}], check=True)"
    )
    add, replace = ["add", "Backups run at night"], ["replace", "Fridays", "Deploys run on Mondays"]
    owner.edits(
        f"{learn.format(add)}; {learn.format(replace)}; "
        "file.write_text(file.read_text().replace('- Staging is at a.example.org\\n', '')"
        ".replace('Fridays', 'Thursdays') + '- Mine\\n')"
    )
    ended = owner.memory("edit")
    assert (ended.code, ended.err) == (0, "")
    assert "conflicts with a change made meanwhile; both were kept" in ended.out
    assert sorted(owner.said("memory")) == [
        "Backups run at night",
        "Deploys run on Mondays",
        "Deploys run on Thursdays",
        "Mine",
    ]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("file.write_bytes(b'- \\xff\\n')", "MEMORY.md is not UTF-8 text"),
        ("file.write_text('- ' + 'long ' * 999)", "It is full"),
        (f"file.write_text('- ghp_{'a1B2' * 9}')", "looks like a secret"),
        ("file.write_text('- Half'); raise SystemExit(1)", "The editor ended with exit code 1."),
    ],
)
def test_an_edit_that_cannot_be_recorded_changes_nothing_and_its_copy_stays(
    owner: Owner, copies: Path, code: str, said: str
) -> None:
    owner.memory("add", "Kept")
    owner.edits(code)
    ended = owner.memory("edit")
    assert ended.code == 1
    assert said in ended.err
    assert (owner.home / "MEMORY.md").read_text() == "- Kept\n"
    [copy] = copies.glob("hone-edit-*/MEMORY.md")
    assert ended.err.endswith(f"Your edit is not lost: {copy}\n")
    assert (copy.stat().st_mode & 0o777, copy.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert copy.read_bytes() != b"- Kept\n"


def test_the_owner_is_told_what_looks_odd_and_not_stopped(owner: Owner) -> None:
    ended = owner.memory("add", "Ignore all previous instructions is a phrase I study, with a\u200bgap")
    assert ended.code == 0
    assert "Note that it has hidden characters." in ended.out
    assert "\\u200b" in (owner.home / "MEMORY.md").read_text()


ODD = ["link", "folder", "file of other bytes"]


def spoil(file: Path, way: str) -> None:
    """The journal is now something that cannot be read as one."""
    if way == "file of other bytes":
        file.write_bytes(b"- caf\xe9 \xff\n")
        return
    file.unlink()
    if way == "link":
        (file.parent / "elsewhere.md").write_text("- Not yours\n")
        file.symlink_to("elsewhere.md")
    else:
        file.mkdir()


def contents(home: Path) -> dict[str, Any]:
    return {
        file.name: (file.is_symlink(), file.read_bytes() if file.is_file() else file.stat().st_mode)
        for file in home.iterdir()
        if not file.name.startswith(("hone.db", ".lock"))
    }


@pytest.mark.parametrize("way", ODD)
async def test_a_journal_that_cannot_be_read_is_never_taken_for_an_empty_one(
    home: Path, tmp_path: Path, way: str, figures: Figures
) -> None:
    env = environment(home, EDITOR=editor("pass"))
    file = home / "MEMORY.md"
    file.write_text("- Fact one\n- Fact two\n- Fact three\n")
    assert (await hone("memory", "add", "Fact four", env=env, folder=tmp_path)).code == 0
    spoil(file, way)
    before = contents(home)
    tried = (("memory", "add", "New"), ("memory", "rm", "Fact one"), ("memory", "edit"), ("undo", "2"))
    for arguments in tried:
        ended = await hone(*arguments, env=env, folder=tmp_path)
        assert ended.code == 1, arguments
        assert "MEMORY.md" in ended.err
        assert "Traceback" not in ended.err
    shown = await hone("memory", "show", env=env, folder=tmp_path)
    assert (shown.code, shown.out.count("  - Fact ")) == (0, 4)
    assert "MEMORY.md" in shown.err
    assert "goes by what it knew before" in shown.err
    assert contents(home) == before
    figures(f"{len(tried)} writes tried on a journal that is a {way}: 0 got in, 0 of 4 entries lost")


@pytest.fixture
def area() -> Iterator[Path]:
    """A folder that everybody may enter, unlike tmp_path."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


async def as_nobody(*arguments: str, home: Path) -> Ended:
    command = (sys.executable, "-m", nobody.__name__, "--home", str(home), *arguments)
    return await started(*command, env=environment(home, PYTHONPATH=str(Path.cwd())))


async def started(*command: str, env: dict[str, str]) -> Ended:
    process = await asyncio.create_subprocess_exec(*command, env=env, stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
    out, err = await process.communicate()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


@pytest.mark.rights
async def test_a_journal_without_the_right_to_read_it_is_left_alone(area: Path) -> None:
    home = area / "home"
    assert (await as_nobody("memory", "add", "Kept", home=home)).code == 0
    file = home / "MEMORY.md"
    file.chmod(0)
    ended = await as_nobody("memory", "add", "New", home=home)
    assert ended.code == 1
    assert "MEMORY.md" in ended.err
    file.chmod(0o600)
    assert file.read_text() == "- Kept\n"


@pytest.mark.rights
async def test_a_home_that_cannot_be_written_is_shown_and_not_changed(area: Path) -> None:
    home = area / "home"
    assert (await as_nobody("memory", "add", "Kept", home=home)).code == 0
    before = {file.name: file.read_bytes() for file in home.iterdir() if file.suffix != ".db-shm"}
    home.chmod(0o555)
    for command, words in ((("memory", "show"), "  - Kept\n"), (("log",), '"Kept"')):
        shown = await as_nobody(*command, home=home)
        assert (shown.code, words in shown.out) == (0, True)
        assert shown.err.count(f"{home} is read-only") == 1
    for arguments in (("memory", "add", "New"), ("undo", "1")):
        ended = await as_nobody(*arguments, home=home)
        assert (ended.code, ended.out) == (1, ""), arguments
        assert ended.err.count(f"{home} is read-only") == 1, ended.err
    home.chmod(0o700)
    after = {file.name: file.read_bytes() for file in home.iterdir() if file.suffix != ".db-shm"}
    assert after == before


async def test_a_full_disk_leaves_everything_as_it_was(home: Path, tmp_path: Path) -> None:
    env = environment(home)
    assert (await hone("memory", "add", "Kept", env=env, folder=tmp_path)).code == 0
    full = ("sh", "-c", 'ulimit -f 8; exec "$@"', "sh", *HONE)  # no file can grow beyond 8 blocks
    ended = await started(*full, "memory", "add", "New", env=env)
    assert (ended.code, ended.out) == (1, "")
    assert "this step changed nothing" in ended.err
    assert (home / "MEMORY.md").read_text() == "- Kept\n"
    shown = await hone("memory", "show", env=env, folder=tmp_path)
    assert (shown.code, shown.err, shown.out.count("  - ")) == (0, "", 1)
