"""Sensitive places stay as the owner left them, and repositories that commands make stay usable."""

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.clock import SystemClock
from hone.core.sensitive import is_sealed
from hone.sandbox.census import MANY, Census, FolderAlarm, Surveyor
from hone.sandbox.protection import Protection
from tests.conftest import requires
from tests.tier import fewer

EVIL = "evil\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "folder"
    path.mkdir()
    return path.resolve()


@pytest.fixture
def protection(folder: Path, home: Path) -> Protection:
    return Protection((folder,), (), home, SystemClock())


def git(folder: Path, *arguments: str) -> str:
    requires("git")
    identity = ("-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "protocol.file.allow=always")
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments], env=env, capture_output=True, text=True, check=True
    )
    return done.stdout


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q")
    (folder / ".github" / "workflows").mkdir(parents=True)
    (folder / ".github" / "workflows" / "ci.yml").write_text("ours\n")
    (folder / ".envrc").write_text("ours\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "begin")
    return folder


def write(path: Path, text: str = EVIL) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def begin(protection: Protection, *, seals: bool = True, settled: bool = True) -> list[Path]:
    """What is sealed."""
    found = protection.begin(seals=seals, settled=settled)
    return [*found.loose, *found.firm]


def kept(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "quarantine").rglob("*") if path.is_file())


@pytest.mark.parametrize("seals", [True, False])
def test_what_appears_is_moved_out_kept_and_told(
    folder: Path, home: Path, protection: Protection, seals: bool
) -> None:
    protection.begin(seals=seals, settled=True)
    write(folder / ".envrc")
    write(folder / "deep" / "er" / ".vscode" / "tasks.json")
    write(folder / "src" / "main.py")
    [note] = protection.end(network=False)
    assert note.startswith(
        "taken back: .envrc (your shell runs it), deep/er/.vscode/tasks.json (your editor runs"
    )
    assert note.endswith("; commands cannot change such files, use write_file")
    assert not (folder / ".envrc").exists()
    assert (folder / "src" / "main.py").read_text() == EVIL
    assert kept(home) == [".envrc", "tasks.json"]
    assert stat.S_IMODE((home / "quarantine").stat().st_mode) == 0o700
    assert protection.end(network=False) == []


def test_what_the_owner_changes_between_commands_is_the_owners(folder: Path, protection: Protection) -> None:
    protection.begin(seals=True, settled=True)
    assert protection.end(network=False) == []
    write(folder / ".envrc", "mine\n")
    assert begin(protection) == [folder / ".envrc"]
    assert protection.end(network=False) == []
    assert (folder / ".envrc").read_text() == "mine\n"


def test_while_something_runs_only_what_was_vouched_for_stays(folder: Path, protection: Protection) -> None:
    protection.begin(seals=True, settled=True)
    write(folder / ".envrc", "with consent\n")
    write(folder / ".exrc")
    protection.vouch(folder / ".envrc")
    [note] = protection.end(network=False)
    assert note.startswith("taken back: .exrc (your editor runs it), kept in ")
    assert begin(protection, settled=False) == [folder / ".envrc"]
    write(folder / ".exrc")
    write(folder / ".envrc")
    [note] = protection.end(network=False)
    assert ".exrc" in note
    assert ".envrc" in note
    assert (folder / ".envrc").read_text() == "with consent\n"


def test_a_place_that_an_editor_saves_anew_during_a_command_is_the_owners(
    folder: Path, protection: Protection
) -> None:
    """A sealed file cannot be replaced from inside, so somebody outside did it."""
    write(folder / ".envrc", "first\n")
    protection.begin(seals=True, settled=True)
    (folder / "new").write_text("second\n")
    (folder / "new").replace(folder / ".envrc")
    assert protection.end(network=False) == []
    assert (folder / ".envrc").read_text() == "second\n"


def test_without_seals_everything_is_put_back_with_its_mode(
    folder: Path, home: Path, protection: Protection
) -> None:
    repository(folder)
    hook = folder / ".git" / "hooks" / "pre-push"
    hook.write_text("ours\n")
    hook.chmod(0o644)
    before = (folder / ".git" / "config").read_text()
    assert begin(protection, seals=False) == []
    hook.chmod(0o755)
    write(folder / ".git" / "hooks" / "pre-commit")
    git(folder, "config", "core.fsmonitor", "evil")
    (folder / ".envrc").unlink()
    shutil.rmtree(folder / ".github")
    [note] = protection.end(network=False)
    assert "use write_file" in note
    assert (folder / ".git" / "config").read_text() == before
    assert (
        (folder / ".envrc").read_text()
        == (folder / ".github" / "workflows" / "ci.yml").read_text()
        == "ours\n"
    )
    assert stat.S_IMODE(hook.stat().st_mode) == 0o644
    assert not (folder / ".git" / "hooks" / "pre-commit").exists()
    assert {"pre-commit", "config"} <= {*kept(home)}


@pytest.mark.parametrize("place", [".hone", ".claude/hone", "plain/home"])
def test_hones_home_in_the_folder_is_never_put_back(folder: Path, place: str) -> None:
    """Hone writes there while commands run."""
    home = folder / place
    write(home / "hone.db", "before\n")
    write(home / ".envrc", "before\n")
    write(folder / ".envrc", "before\n")
    protection = Protection((folder,), (home,), home, SystemClock())
    protection.begin(seals=False, settled=True)
    write(home / "hone.db", "after\n")
    write(home / ".envrc", "after\n")
    write(folder / ".envrc", "after\n")
    [note] = protection.end(network=False)
    assert note.startswith("taken back: .envrc (your shell runs it), kept in ")
    assert (home / "hone.db").read_text() == (home / ".envrc").read_text() == "after\n"
    assert (folder / ".envrc").read_text() == "before\n"


def test_git_works_in_a_repository_that_is_guarded(folder: Path, protection: Protection) -> None:
    repository(folder)
    protection.begin(seals=False, settled=True)
    (folder / "a").write_text("a\n")
    git(folder, "add", "a")
    git(folder, "commit", "-qm", "a")
    git(folder, "branch", "config")
    git(folder, "checkout", "-q", "-b", "hooks")
    (folder / "a").write_text("b\n")
    git(folder, "stash", "-q")
    git(folder, "stash", "pop", "-q")
    git(folder, "commit", "-qam", "b")
    git(folder, "rebase", "-q", "config")
    git(folder, "tag", "v1")
    git(folder, "gc", "-q")
    assert protection.end(network=False) == []
    assert git(folder, "status", "--porcelain") == ""


def test_a_repository_that_a_command_makes_stays_usable(
    folder: Path, home: Path, protection: Protection
) -> None:
    protection.begin(seals=True, settled=True)
    git(folder, "init", "-q")
    git(folder, "remote", "add", "origin", "https://example.org/x.git")
    write(folder / ".git" / "hooks" / "post-checkout")
    git(folder, "config", "core.hooksPath", "/tmp/evil")
    git(folder, "config", "alias.x", "!evil")
    [note] = protection.end(network=False)
    assert ".git/config (git runs it), .git/hooks/post-checkout (git runs it)" in note
    assert git(folder, "remote") == "origin\n"
    settings = git(folder, "config", "--local", "--list")
    assert "remote.origin.url=https://example.org/x.git" in settings
    assert "evil" not in settings
    assert begin(protection) == []
    git(folder, "config", "user.name", "Me")
    git(folder, "commit", "-q", "--allow-empty", "-m", "x")
    git(folder, "config", "core.sshCommand", "evil")
    assert ".git/config" in protection.end(network=False)[0]
    assert "user.name=Me" in git(folder, "config", "--local", "--list")
    # The owner adds a hook between two commands: from then on the repository is the owner's.
    write(folder / ".git" / "hooks" / "pre-push", "mine\n")
    assert len(begin(protection)) == 2
    assert protection.end(network=False) == []
    assert (folder / ".git" / "hooks" / "pre-push").read_text() == "mine\n"


@pytest.mark.parametrize("network", [True, False])
def test_a_clone_keeps_its_files_if_it_was_downloaded_and_may_be_deleted(
    folder: Path, tmp_path: Path, protection: Protection, network: bool
) -> None:
    other = repository(tmp_path / "other")
    write(other / ".vscode" / "tasks.json", "theirs\n")
    git(other, "add", "-A")
    git(other, "commit", "-qm", "tasks")
    protection.begin(seals=True, settled=True)
    git(folder, "clone", "-q", str(other), "clone")
    notes = protection.end(network=network)
    assert (notes == []) is network
    assert (folder / "clone" / ".envrc").exists() is network
    assert git(folder / "clone", "log", "--oneline").count("\n") == 2
    # It is the commands' own, so it is not sealed; but a change is taken back, unless all of it goes.
    assert begin(protection) == []
    write(folder / "clone" / ".envrc")
    assert len(protection.end(network=False)) == 1
    assert (folder / "clone" / ".envrc").exists() is network
    protection.begin(seals=True, settled=True)
    shutil.rmtree(folder / "clone")
    assert protection.end(network=False) == []
    assert not (folder / "clone").exists()


def test_a_worktree_and_a_submodule_stay_usable(folder: Path, protection: Protection) -> None:
    repository(folder)
    protection.begin(seals=False, settled=True)
    git(folder, "worktree", "add", "-q", "tree")
    assert protection.end(network=False) == []
    assert git(folder / "tree", "status", "--porcelain") == ""
    protection.begin(seals=True, settled=True)
    git(folder, "clone", "-q", "--no-checkout", ".", "outer")
    git(folder / "outer", "submodule", "add", "-q", str(folder), "inner")
    protection.end(network=True)
    assert git(folder / "outer" / "inner", "log", "--oneline").count("\n") == 1


@pytest.mark.parametrize(
    "plant",
    [
        lambda folder, outside: write(folder / "src" / ".git", f"gitdir: {outside}\n"),
        lambda folder, outside: (folder / "src" / ".git").symlink_to(outside),
        lambda folder, outside: (folder / "src" / ".vscode").symlink_to(outside),
        lambda folder, outside: (folder / "src" / ".envrc").symlink_to(outside / "config"),
        lambda folder, outside: shutil.copytree(outside, folder / "src" / ".git"),
        lambda folder, outside: shutil.copytree(outside, folder / "src", dirs_exist_ok=True),
        lambda folder, outside: shutil.copytree(outside, folder / ".git" / "modules" / "x"),
        lambda folder, outside: write(folder / ".git" / "worktrees" / "w" / "commondir", f"{outside}\n"),
        lambda folder, outside: write(folder / ".git" / "commondir", "../src\n"),
    ],
)
def test_no_way_to_another_git_folder_or_to_tasks_is_left(
    folder: Path, tmp_path: Path, protection: Protection, plant: object
) -> None:
    outside = tmp_path / "evil"
    git(tmp_path, "init", "-q", "--bare", str(outside))
    git(outside, "config", "core.fsmonitor", "touch /tmp/evil")
    repository(folder)
    write(folder / "src" / "main.py", "ours\n")
    protection.begin(seals=True, settled=True)
    plant(folder, outside)  # type: ignore[operator]
    [note] = protection.end(network=False)
    assert note.startswith("taken back: ")
    assert (folder / "src" / "main.py").read_text() == "ours\n"
    for place in (folder, folder / "src"):
        assert "fsmonitor" not in git(place, "config", "--list")
    assert not any((folder / "src" / name).exists() for name in (".vscode", ".envrc"))


def test_a_new_hook_does_not_make_the_owners_repository_the_commands(
    folder: Path, protection: Protection
) -> None:
    repository(folder)
    shutil.rmtree(folder / ".git" / "hooks")
    git(folder, "config", "alias.mine", "!mine")
    before = (folder / ".git" / "config").read_text()
    protection.begin(seals=True, settled=True)
    write(folder / ".git" / "hooks" / "pre-commit")
    [note] = protection.end(network=False)
    assert note.startswith("taken back: .git/hooks/pre-commit (git runs it), kept in ")
    assert (folder / ".git" / "config").read_text() == before
    sealed = begin(protection)
    assert {folder / ".git" / "config", folder / ".git" / "hooks"} <= {*sealed}


def test_known_places_cannot_be_crowded_out(
    folder: Path, protection: Protection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hone.sandbox.census.MOST", 30)
    repository(folder / "a" / "b" / "c")
    sealed = begin(protection)
    (folder / "a").rename(folder / "z")
    for number in range(100):
        (folder / f"crowd-{number}").mkdir()
    assert protection.end(network=False) == []
    again = begin(protection)
    assert [path.relative_to(folder / "z") for path in again] == [
        path.relative_to(folder / "a") for path in sealed
    ]
    write(folder / "z" / "b" / "c" / ".exrc")
    assert len(protection.end(network=False)) == 1


def test_a_folder_with_a_sealed_place_can_be_renamed_and_another_cannot_take_its_place(
    folder: Path, protection: Protection
) -> None:
    repository(folder / "project")
    protection.begin(seals=True, settled=True)
    (folder / "project").rename(folder / "renamed")
    write(folder / "project" / ".envrc")
    repository(folder / "third")
    [note] = protection.end(network=False)
    assert "project/.envrc" in note
    assert "renamed" not in note
    assert (folder / "renamed" / ".envrc").read_text() == "ours\n"
    assert not (folder / "project" / ".envrc").exists()
    assert folder / "renamed" / ".git" / "config" in begin(protection)


def test_hooks_and_settings_that_a_configuration_names_are_guarded(
    folder: Path, protection: Protection
) -> None:
    repository(folder)
    write(folder / "tools" / "hooks" / "pre-commit", "ours\n")
    write(folder / "more.conf", "")
    write(folder / "tools" / "code" / "tasks.json", "ours\n")
    (folder / ".vscode").symlink_to("tools/code")
    git(folder, "config", "core.hooksPath", "tools/hooks")
    git(folder, "config", "include.path", "../more.conf")
    sealed = {str(path.relative_to(folder)) for path in begin(protection)}
    assert {"tools/hooks", "more.conf", "tools/code", ".git/config", ".git/hooks", ".envrc"} <= sealed
    assert {*protection.begin(seals=True, settled=True).firm} == {
        folder / "more.conf",
        folder / "tools" / "hooks",
        folder / "tools" / "code",
    }


def test_where_a_setting_or_a_link_leads_nothing_appears(folder: Path, protection: Protection) -> None:
    repository(folder)
    git(folder, "config", "core.hooksPath", "tools/hooks")
    git(folder, "config", "include.path", "../more.conf")
    (folder / ".vscode").symlink_to("tools/code")
    protection.begin(seals=True, settled=True)
    for name in ("tools/hooks/pre-commit", "more.conf", "tools/code/tasks.json", "tools/mine"):
        write(folder / name)
    [note] = protection.end(network=False)
    assert all(name in note for name in ("tools/hooks", "more.conf", "tools/code"))
    assert sorted(os.listdir(folder / "tools")) == ["mine"]
    assert not (folder / "more.conf").exists()


def test_links_are_not_followed_while_something_is_moved_out(
    folder: Path, tmp_path: Path, protection: Protection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that becomes a link between looking and moving leads nowhere."""
    theirs = tmp_path / "theirs"
    write(theirs / ".envrc", "not yours\n")
    protection.begin(seals=True, settled=True)
    write(folder / "sub" / ".envrc")
    look = Surveyor.look

    def swapping(surveyor: Surveyor) -> Census:
        found = look(surveyor)
        with suppress(OSError):
            (folder / "sub").rename(folder / "gone")
            (folder / "sub").symlink_to(theirs)
        return found

    monkeypatch.setattr(Surveyor, "look", swapping)
    [note] = protection.end(network=False)
    assert note.startswith("could not be taken back, the owner has to look: sub/.envrc")
    assert (theirs / ".envrc").read_text() == "not yours\n"


NAMES = [
    ".envrc",
    ".git",
    "hooks",
    "config",
    ".github",
    "workflows",
    "x.yml",
    "a",
    "b",
    ".vscode",
    "tasks.json",
]
paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)
steps = st.lists(
    st.tuples(st.sampled_from(["write", "remove", "move", "link", "folder"]), paths, paths), max_size=8
)


def act(folder: Path, kind: str, path: str, other: str) -> None:
    target = folder / path
    with suppress(OSError, shutil.Error):
        match kind:
            case "write":
                write(target, f"{path} {other}")
            case "remove":
                shutil.rmtree(target) if target.is_dir() and not target.is_symlink() else target.unlink()
            case "move":
                os.rename(target, folder / other)
            case "link":
                target.symlink_to(folder / other)
            case "folder":
                target.mkdir(parents=True)


def sensitive(folder: Path) -> dict[str, str]:
    """Everything that counts, by what makes it sensitive. Git folders are judged by their contents."""
    found = {}
    for root, folders, names in os.walk(folder):
        for name in (*names, *(each for each in folders if os.path.islink(os.path.join(root, each)))):
            path = os.path.relpath(os.path.join(root, name), folder)
            if (
                is_sealed(path.split("/"))
                and ".git" not in path.split("/")
                and ".github" not in path.split("/")
            ):
                link = os.path.islink(os.path.join(root, name))
                found[path] = os.readlink(os.path.join(root, name)) if link else Path(root, name).read_text()
    return found


@given(before=steps, during=steps)
def test_whatever_a_command_does_no_sensitive_place_is_new_or_different(
    before: list[tuple[str, str, str]], during: list[tuple[str, str, str]]
) -> None:
    with TemporaryDirectory() as base:
        folder = Path(base, "folder").resolve()
        folder.mkdir()
        for step in before:
            act(folder, *step)
        protection = Protection((folder,), (), Path(base, "home"), SystemClock())
        protection.begin(seals=False, settled=True)
        known = sensitive(folder)
        for step in during:
            act(folder, *step)
        protection.end(network=False)
        after = sensitive(folder)
        assert {*after.values()} <= {*known.values()}
        assert {path for path in known if path not in after and known[path] not in after.values()} == set()


@pytest.mark.parametrize("many", [MANY, 1], ids=["by time", "by the kernel"])
@fewer(40)
@given(rounds=st.lists(steps, max_size=4))
def test_looking_again_finds_what_looking_for_the_first_time_does(
    many: int, rounds: list[list[tuple[str, str, str]]]
) -> None:
    with TemporaryDirectory() as base:
        surveyor = Surveyor(base, many=many)
        surveyor.look()
        for each in rounds:
            for step in each:
                act(Path(base), *step)
            again, anew = surveyor.look(), Surveyor(base).look()
            assert again.sites == anew.sites
            assert (again.git, again.repositories) == (anew.git, anew.repositories)


def test_a_folder_that_takes_the_place_of_another_is_read(folder: Path) -> None:
    write(folder / "one" / "file")
    write(folder / "two" / ".envrc")
    surveyor = Surveyor(str(folder), many=1)
    surveyor.look()
    surveyor.look()
    (folder / "one").rename(folder / "three")
    (folder / "two").rename(folder / "one")
    assert [*surveyor.look().sites] == ["one/.envrc"]


def test_nothing_is_looked_at_while_the_kernel_reports_no_change(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder / "deep" / "file")
    surveyor = Surveyor(str(folder), many=1)
    surveyor.look()
    surveyor.look()
    looked: list[str] = []
    real = os.lstat

    def counting(path: str, *, dir_fd: int | None = None) -> os.stat_result:
        looked.append(path)
        return real(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "lstat", counting)
    assert (len(surveyor.look().sites), looked) == (0, [])
    write(folder / "deep" / ".envrc")
    assert [*surveyor.look().sites] == ["deep/.envrc"]
    assert looked != []


@pytest.mark.parametrize("rows", ["", "9 1 0:9 / /mnt rw - nfs server rw\n"])
def test_where_others_can_change_a_folder_unseen_every_folder_is_looked_at(
    rows: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(rows)
    monkeypatch.setattr("hone.files.inotify.MOUNTS", str(mounts))
    with pytest.raises(OSError, match="unseen"):
        FolderAlarm(str(folder))


def test_folders_that_did_not_change_are_not_read_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        write(folder / f"d{number}" / "file", "x")
        old = 1_000_000_000
        os.utime(folder / f"d{number}", (old, old))
    monkeypatch.setattr("hone.sandbox.census.TICK", 0)
    surveyor = Surveyor(str(folder))
    surveyor.look()
    read: list[str] = []
    real = os.scandir

    def counting(path: str) -> Iterator[os.DirEntry[str]]:
        read.append(path)
        return real(path)

    monkeypatch.setattr(os, "scandir", counting)
    write(folder / "d7" / ".envrc")
    os.utime(folder / "d7", (1, 1))  # a command may set this time, but not the one that is looked at
    assert [*surveyor.look().sites] == ["d7/.envrc"]
    assert read == [f"{folder}/d7"]
