"""Whatever changes below a folder is reported: by any operation, in any sandbox, with and without inotify."""

import asyncio
import mmap
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.clock import SystemClock
from hone.files.inotify import Inotify
from hone.files.watching import FolderWatch, WatchedTree
from hone.sandbox.choice import Sandbox
from hone.sandbox.examining import known_modes
from hone.sandbox.output import Output, Spill
from hone.sandbox.process import run
from tests.conftest import requires
from tests.sandbox.areas import area

NAMES = ("a", "b", "c", "a/d", "a/e", "b/d", "b/d/f", "node_modules/x", ".git/objects")
NUMBERS = ("one", "two")
FILES = tuple(f"{folder}/{name}" for folder in NAMES for name in NUMBERS)


def write(root: Path, one: str, other: str) -> None:
    (root / one).parent.mkdir(parents=True, exist_ok=True)
    (root / one).write_text(other)


def store_mapped(root: Path, one: str, other: str) -> None:
    """Through memory, after the descriptor was closed."""
    write(root, one, "0123456789")
    with open(root / one, "r+b") as file:
        memory = mmap.mmap(file.fileno(), 10)
    memory[:3] = b"new"
    memory.close()


def rename(root: Path, one: str, other: str) -> None:
    (root / other).parent.mkdir(parents=True, exist_ok=True)
    (root / one).rename(root / other)


def rename_folder(root: Path, one: str, other: str) -> None:
    target = root / Path(other).parent
    if not target.exists() and not target.is_relative_to((root / one).parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        (root / one).parent.rename(target)


def remove(root: Path, one: str, other: str) -> None:
    (root / one).unlink()


def remove_folder(root: Path, one: str, other: str) -> None:
    shutil.rmtree((root / one).parent)


def link(root: Path, one: str, other: str) -> None:
    (root / other).symlink_to(one)


def change_mode(root: Path, one: str, other: str) -> None:
    (root / one).chmod(0o600)


Act = Callable[[Path, str, str], None]
ACTS: tuple[Act, ...] = (
    write,
    write,
    write,
    store_mapped,
    rename,
    rename_folder,
    remove,
    remove_folder,
    link,
    change_mode,
)
Steps = list[tuple[Act, str, str] | None]
steps: st.SearchStrategy[Steps] = st.lists(
    st.one_of(st.tuples(st.sampled_from(ACTS), st.sampled_from(FILES), st.sampled_from(FILES)), st.none()),
    max_size=40,
)


def states(root: Path) -> dict[str, tuple[int, int, int]]:
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            status = os.lstat(os.path.join(folder, name))
            path = os.path.relpath(os.path.join(folder, name), root)
            found[path] = (status.st_ino, status.st_ctime_ns, status.st_size)
    return found


@pytest.mark.parametrize("inotify", [True, False], ids=["inotify", "compared"])
@given(steps=steps)
def test_every_file_that_changed_is_reported(inotify: bool, steps: Steps) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        if not inotify:
            patch.setattr(Inotify, "add", refuse)
        root = Path(name)
        write(root, "a/one", "before")
        watch = FolderWatch(root)
        before = states(root)
        for step in [*steps, None]:
            if step is not None:
                act, one, other = step
                try:
                    act(root, one, other)
                except OSError:
                    continue
                continue
            changed = watch.drain()
            reported = changed.paths | changed.inside
            now = states(root)
            missed = {
                path
                for path in before.keys() | now.keys()
                if before.get(path) != now.get(path) and not is_covered(path, reported)
            }
            assert not missed
            assert all(path.startswith(("node_modules", ".git")) for path in changed.inside)
            assert not any(path.startswith(("node_modules", ".git")) for path in changed.paths)
            assert not changed.overflow
            before = now
        assert watch.drain().paths == frozenset()
        watch.close()


def is_covered(path: str, reported: frozenset[str]) -> bool:
    """A folder that was moved away stands for what was in it."""
    return path in reported or any(str(parent) in reported for parent in Path(path).parents)


def refuse(*_: object) -> int:
    raise OSError(28, "no watches left")


def test_what_the_kernel_dropped_is_found_by_time(tmp_path: Path) -> None:
    write(tmp_path, "a/one", "before")
    watch = FolderWatch(tmp_path)
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for number in range(limit // 2 + 1):
        os.rename(tmp_path / f"a/{NUMBERS[number % 2]}", tmp_path / f"a/{NUMBERS[1 - number % 2]}")
    write(tmp_path, "a/two", "after")
    write(tmp_path, "new/folder/file", "after")
    changed = watch.drain()
    assert changed.overflow
    assert {"a/two", "new/folder/file"} <= changed.paths
    write(tmp_path, "new/folder/file", "again")
    assert watch.drain().paths == {"new/folder/file"}


def test_two_users_of_one_watch_each_learn_everything_once(tmp_path: Path) -> None:
    one = FolderWatch(tmp_path)
    write(tmp_path, "before", "x")
    other = one.share()
    write(tmp_path, "after", "x")
    assert other.drain().paths == {"after"}
    assert one.drain().paths == {"before", "after"}
    one.close()
    write(tmp_path, "last", "x")
    assert other.drain().paths == {"last"}
    other.close()


def test_a_virtual_environment_counts_as_a_whole_from_its_first_file_on(tmp_path: Path) -> None:
    watch = FolderWatch(tmp_path)
    write(tmp_path, "env/pyvenv.cfg", "home = /usr/bin")
    write(tmp_path, "env/lib/python3.11/site-packages/six.py", "x = 1")
    write(tmp_path, "pyvenv.cfg", "a folder in which somebody works is none")
    write(tmp_path, "main.py", "x = 1")
    changed = watch.drain()
    assert changed.inside == {"env/pyvenv.cfg", "env/lib/python3.11/site-packages/six.py"}
    assert changed.paths == {"pyvenv.cfg", "main.py"}
    assert watch.whole("env/lib/x.py") == "env"
    assert watch.whole("src/x.py") == ""


@pytest.fixture
def place() -> Iterator[Path]:
    with area(os.geteuid()) as path:
        yield path


@pytest.mark.rights
@pytest.mark.parametrize("number", range(2))
def test_changes_made_in_a_sandbox_are_reported(number: int, place: Path) -> None:
    requires("bwrap")
    mode = [*known_modes(), None][number]
    if mode is None:
        pytest.skip("there is only one mode here")
    folder = place / "folder"
    write(folder, "old/file", "before")
    os.chmod(folder / "old", 0o777)
    os.chmod(folder / "old/file", 0o666)
    spec = Sandbox().spec(folder, place / "scratch")
    watch = FolderWatch(folder)
    command = "echo after > old/file; mkdir -p new/deep; echo x > new/deep/file; mv new moved"
    launch = mode.wrap(["/bin/sh", "-c", command], spec)
    output = Output(Spill(Path(os.devnull), ""))
    ended = asyncio.run(run(launch, output=output, clock=SystemClock(), timeout=60))
    assert ended.code == 0, ended.output
    assert watch.drain().paths >= {"old/file", "moved/deep/file"}
    watch.close()


def test_a_tree_that_nobody_uses_any_more_is_closed(tmp_path: Path) -> None:
    tree = WatchedTree(tmp_path)
    watch = FolderWatch(tmp_path, tree)
    watch.close()
    watch.close()
    assert tree._inotify is None
