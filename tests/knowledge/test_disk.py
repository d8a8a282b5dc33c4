"""Files below the home: nothing leads out of it, nothing is half written, and what cannot be done is said."""

import ctypes
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from threading import Event, Thread

import pytest

from hone.core.errors import Busy, Refused, StoreError
from hone.core.ledger import PublishedFile
from hone.core.messages import digest
from hone.core.visible import visible
from hone.files import atomic
from hone.files.tree import LOCK, FileKind, FileTree, Glance
from tests.conftest import Figures, Tier, requires
from tests.knowledge import disk_worker
from tests.knowledge.nasty import CANARY, inventory, nasty, plant, surround
from tests.tools.test_files import as_nobody, full_disk

DEEDS: dict[str, Callable[[FileTree, str], object]] = {
    "read": lambda disk, path: disk.read(path),
    "write": lambda disk, path: disk.write(path, b"new"),
    "glance": lambda disk, path: disk.glance(path),
    "folders": lambda disk, path: disk.folders(path),
    "listing": lambda disk, path: disk.listing(path),
    "remove": lambda disk, path: disk.remove(path),
}
PATH = "skills/a/references/x.md"


@pytest.fixture
def disk(tmp_path: Path) -> FileTree:
    return FileTree(tmp_path / "home")


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def glance(path: Path) -> Glance:
    status = path.lstat()
    return Glance(status.st_ino, status.st_mtime_ns, status.st_size)


def worker(home: Path, *arguments: str) -> list[str]:
    return [sys.executable, disk_worker.__file__, arguments[0], str(home), *arguments[1:]]


@contextmanager
def working(home: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(worker(home, *arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.kill()
    assert process.returncode == -signal.SIGKILL


# Paths and links


def test_of_20_000_names_over_every_deed_none_leads_outside_and_none_raises_anything_else(
    tier: Tier, figures: Figures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, outside = surround(tmp_path)
    monkeypatch.chdir(outside)
    disk, before, handles = FileTree(home), inventory(tmp_path, without=home), os.listdir("/proc/self/fd")
    count, done, told = 0, 0, list[str]()
    for draw in tier.draws(short=1_000, full=20_000):
        count += 1
        name = nasty(draw.random, draw.index, outside)
        plant(home, outside)
        for deed in DEEDS.values():
            try:
                assert CANARY not in repr(deed(disk, name)).encode()
                done += 1
            except (Refused, StoreError) as error:
                told.append(str(error))
    assert inventory(tmp_path, without=home) == before
    assert os.listdir("/proc/self/fd") == handles
    assert [each for each in told if visible(each) != each or "\n" in each] == []
    assert count < 1_000 or min(done, sum("is a link" in each for each in told)) > count / 10
    note = (
        f"names and arguments over {len(DEEDS)} deeds ({done:,} done, {len(told):,} turned down), 0 uncaught"
    )
    figures.tally(count, note=note)


@pytest.mark.parametrize(
    "path", ["", "/", "a/", "/a", "a//b", "./a", "a/./b", "..", "a/../b", "a\\b", "a\0b", "a\nb", LOCK,
             "\ud800", "x" * 256, "a/" * 600 + "a", ".hone-1.tmp", "skills/.hone-1.tmp/a"], ids=ascii
)  # fmt: skip
def test_a_path_that_could_lead_elsewhere_is_refused(disk: FileTree, path: str, tmp_path: Path) -> None:
    for name in ("read", "write", "remove", "glance"):
        with pytest.raises(Refused, match="cannot be the path of a file here"):
            DEEDS[name](disk, path)
    with pytest.raises(Refused, match="cannot be the path of a file here"):
        disk.sight(["MEMORY.md", path])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("name", sorted(DEEDS))
def test_no_deed_follows_a_link_at_any_component(tmp_path: Path, name: str, depth: int) -> None:
    home, outside = surround(tmp_path)
    link = home.joinpath(*PATH.split("/")[:depth])
    if depth == 1:
        link.rename(home / "was")
    link.parent.mkdir(parents=True, exist_ok=True)
    for target in (outside, outside / "real", outside / "secret.txt", outside / "nowhere", link):
        link.symlink_to(target)
        before = inventory(tmp_path)
        if name == "glance" and link == home / PATH:
            assert FileTree(home).glance(PATH) == glance(link)
        else:
            with pytest.raises(
                StoreError, match=r"is a link, and Hone does not follow|is there already"
            ) as error:
                DEEDS[name](FileTree(home), PATH)
            assert str(link) in str(error.value)
        assert inventory(tmp_path) == before
        link.unlink()


def test_a_link_is_glanced_at_and_listed_as_what_it_is(tmp_path: Path) -> None:
    home, _ = surround(tmp_path)
    disk = FileTree(home)
    assert disk.glance("skills/link") == glance(home / "skills" / "link")
    assert disk.folders("skills") == {"real"}
    kinds = {found.path: found.kind for found in disk.listing("skills")}
    assert (
        kinds["skills/link"] is kinds["skills/loop"] is kinds["skills/real/references/link"] is FileKind.LINK
    )
    assert kinds["skills/pipe"] is FileKind.OTHER
    assert not any(path.startswith("skills/link/") for path in kinds)


def test_the_home_itself_may_be_reached_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    FileTree(tmp_path / "link").write("MEMORY.md", b"text")
    assert content(tmp_path / "real") == {"MEMORY.md": b"text"}


@pytest.mark.parametrize("place", ["skills", "skills/a", "skills/a/references"])
def test_of_10_000_writes_raced_by_a_folder_that_turns_into_a_link_none_lands_outside(
    tier: Tier, figures: Figures, tmp_path: Path, place: str
) -> None:
    home, outside = tmp_path / "home", tmp_path / "outside"
    disk, inner = FileTree(home), PATH.removeprefix(f"{place}/")
    disk.write(f"{PATH}.keep", b"inside")
    (outside / inner).parent.mkdir(parents=True, exist_ok=True)
    (outside / inner).write_bytes(CANARY)
    (home / "link").symlink_to(outside)
    before, stop = inventory(outside), Event()
    swap = Thread(target=swapping, args=(home / place, home / "link", stop, tier.random()))
    swap.start()
    count, written = tier.size(short=400, full=3_334), 0
    try:
        for number in range(count):
            with suppress(StoreError):
                disk.write(PATH, b"inside %d" % number)
                written += 1
            with suppress(StoreError):
                found = disk.read(PATH)
                assert found is None or found[0].startswith(b"inside")
            with suppress(StoreError):
                disk.remove(PATH)
    finally:
        stop.set()
        swap.join()
    assert inventory(outside) == before
    assert 0 < written < count
    figures.tally(count, note=f"writes raced at {place} ({written:,} written, the others turned down)")


def test_a_link_that_takes_a_files_place_after_it_was_looked_at_is_not_followed(
    disk: FileTree, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_bytes(CANARY)
    disk.write(PATH, b"inside")
    command = worker(tmp_path / "home", "swap", PATH, str(tmp_path / "secret"))
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert (tmp_path / "home" / PATH).is_symlink()
    assert (
        told == f"{tmp_path / 'home' / PATH} was moved or replaced this very moment; "
        "it was left as it is. Try again.\n"
    )


def swapping(folder: Path, link: Path, stop: Event, random: Random) -> None:
    """Each takes the other's place in one step, again and again, out of step with whoever writes."""
    exchange = ctypes.CDLL(None).renameat2
    while not stop.wait(random.random() / 2_000):
        exchange(-100, os.fsencode(folder), -100, os.fsencode(link), 2)


# What is no file, what cannot be read, what cannot be written


def odd(home: Path) -> dict[str, str]:
    """What lies where a file belongs, and what is said about it."""
    (home / "folder").mkdir(parents=True)
    os.mkfifo(home / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(home / "socket"))
    (home / "link").symlink_to("file")
    (home / "file").write_bytes(b"text")
    return {
        "folder": "is a folder, and a file belongs there; move it away. Nothing was changed.",
        "pipe": "is a device, a pipe or a socket, and a file belongs there; move it away. Nothing was chan",
        "socket": "is a device, a pipe or a socket, and a file belongs there",
        "link": "is a link, and Hone does not follow links there; put a file in its place. Nothing was chan",
        "file/x": "/file is a file, and a folder belongs there; move it away. Nothing was changed.",
    }


@pytest.mark.parametrize("name", ["read", "write", "remove"])
def test_what_is_no_file_is_named_and_left_alone(disk: FileTree, tmp_path: Path, name: str) -> None:
    sentences = odd(tmp_path / "home")
    before = inventory(tmp_path)
    for path, sentence in sentences.items():
        with pytest.raises(StoreError) as error:
            DEEDS[name](disk, path)
        assert sentence in str(error.value)
        assert str(tmp_path / "home") in str(error.value)
    assert inventory(tmp_path) == before


def test_a_lock_that_is_no_file_is_named_and_left_alone(disk: FileTree, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / LOCK).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="is a link"), disk.lock():
        pytest.fail("was locked")
    assert not (tmp_path / "elsewhere").exists()


def test_what_is_not_there_is_nothing_and_makes_nothing(disk: FileTree, tmp_path: Path) -> None:
    assert disk.read(PATH) is None
    assert disk.glance(PATH) is None
    assert disk.listing() == disk.listing("skills") == []
    assert disk.folders() == disk.folders("skills") == set()
    assert not disk.remove(PATH)
    assert disk.sight(["MEMORY.md", PATH]).seen == (None, None)
    assert list(tmp_path.iterdir()) == []


def test_a_file_over_the_limit_is_not_read(disk: FileTree) -> None:
    disk.write("MEMORY.md", b"12345")
    assert disk.read("MEMORY.md", limit=5)
    with pytest.raises(StoreError, match=r"MEMORY.md has more than 4 bytes.*Shorten it"):
        disk.read("MEMORY.md", limit=4)


@pytest.mark.rights
def test_what_is_closed_is_said_and_is_never_taken_for_nothing() -> None:
    with as_nobody() as area:
        home, disk = area / "home", FileTree(area / "home")
        for path in ("MEMORY.md", "skills/a/SKILL.md", "skills/b/SKILL.md"):
            disk.write(path, b"old")
        closed = [home / "MEMORY.md", home / "skills" / "a"]
        for place in closed:
            place.chmod(0)
        for name in ("read", "write", "remove"):
            for each in ("MEMORY.md", "skills/a/SKILL.md"):
                with pytest.raises(StoreError, match=r"is closed to you.*left as it is. Give yourself"):
                    DEEDS[name](disk, each)
        for name in ("glance", "listing"):
            with pytest.raises(StoreError, match="is closed to you"):
                DEEDS[name](disk, "skills/a/x")
        for place in closed:
            place.chmod(0o700)
        assert set(content(home).values()) == {b"old"}


@pytest.mark.rights
def test_in_a_read_only_folder_nothing_is_changed_and_that_is_said() -> None:
    with as_nobody() as place:
        home, disk = place / "home", FileTree(place / "home")
        disk.write("skills/a/SKILL.md", b"old")
        for folder in (home / "skills" / "a", home / "skills", home):
            folder.chmod(0o500)
        before = inventory(place)
        for name, path in (
            ("write", "skills/a/SKILL.md"),
            ("write", "skills/b/SKILL.md"),
            ("write", "MEMORY.md"),
            ("remove", "skills/a/SKILL.md"),
        ):
            with pytest.raises(StoreError, match="is closed to you, or its folder is; it was left as it is"):
                DEEDS[name](disk, path)
        with pytest.raises(StoreError, match=r"\.lock is closed to you"), disk.lock():
            pytest.fail("was locked")
        assert disk.read("skills/a/SKILL.md")
        assert inventory(place) == before


@pytest.mark.rights
def test_a_file_somebody_made_read_only_stays_as_it_is() -> None:
    with as_nobody() as place:
        disk = FileTree(place)
        disk.write("MEMORY.md", b"old")
        (place / "MEMORY.md").chmod(0o400)
        for name in ("write", "remove"):
            with pytest.raises(StoreError, match="is closed to you"):
                DEEDS[name](disk, "MEMORY.md")
        assert content(place) == {"MEMORY.md": b"old"}


def test_a_write_that_fails_in_the_middle_leaves_the_old_content_and_no_debris(
    disk: FileTree, tmp_path: Path
) -> None:
    disk.write("MEMORY.md", b"old")
    with full_disk(room=1_000):
        for path in ("MEMORY.md", "skills/new/references/a.md"):
            with pytest.raises(
                StoreError, match=r"There is no space left for .*; it was left as it is. Make room"
            ):
                disk.write(path, b"x" * 5_000)
    assert sorted(each.name for each in (tmp_path / "home").rglob("*")) == ["MEMORY.md", "skills"]
    assert content(tmp_path / "home") == {"MEMORY.md": b"old"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_and_a_read_only_one_leave_everything_as_it_was(tmp_path: Path) -> None:
    command = [requires("unshare"), "--mount", *worker(tmp_path, "fill", str(tmp_path))]
    *told, paths, contents = (
        subprocess.run(command, capture_output=True, check=True).stdout.decode().splitlines()
    )
    full = "There is no space left for {}; it was left as it is. Make room and try again."
    fixed = "{} lies on a read-only file system; it was left as it is."
    assert told == [
        full.format(tmp_path / "MEMORY.md"),
        full.format(tmp_path / "skills/b/references/c.md"),
        fixed.format(tmp_path / "MEMORY.md"),
        fixed.format(tmp_path / "skills/b/SKILL.md"),
        fixed.format(tmp_path / "MEMORY.md"),
        fixed.format(tmp_path / LOCK),
    ]
    assert paths == "['MEMORY.md', 'skills', 'skills/a', 'skills/a/SKILL.md']"
    assert contents == "[b'old', b'old']"


# The deeds


def test_what_was_written_is_read_and_is_for_the_owner_only(disk: FileTree, tmp_path: Path) -> None:
    path = tmp_path / "home" / PATH
    for data in (b"", b"first", b"\0\xff second\r\n"):
        print_ = disk.write(PATH, data)
        status = path.stat()
        assert print_ == PublishedFile(digest(data), status.st_ino, status.st_mtime_ns)
        assert disk.read(PATH) == (data, print_)
        assert disk.glance(PATH) == glance(path)
        assert stat.S_IMODE(status.st_mode) == 0o600
    assert abs(time.time_ns() - status.st_mtime_ns) < 3_600 * 10**9
    modes = {stat.S_IMODE(folder.stat().st_mode) for folder in path.parents[:4]}
    assert modes == {0o700}
    assert content(tmp_path / "home") == {PATH: b"\0\xff second\r\n"}


def test_an_edit_in_place_right_after_a_write_shows_at_a_glance(disk: FileTree, tmp_path: Path) -> None:
    for number in range(200):
        print_ = disk.write("MEMORY.md", b"%03d" % number)
        with open(tmp_path / "home" / "MEMORY.md", "r+b") as file:
            file.write(b"own")
        found = disk.glance("MEMORY.md")
        assert found
        assert (found.inode, found.modified) != (print_.inode, print_.modified)


def test_with_the_last_file_its_empty_folders_go_but_none_of_the_homes_own(
    disk: FileTree, tmp_path: Path
) -> None:
    for path in ("skills/a/SKILL.md", PATH, "projects/p/MEMORY.md", "MEMORY.md"):
        disk.write(path, b"text")
    left = []
    for path in (PATH, "skills/a/SKILL.md", "projects/p/MEMORY.md", "MEMORY.md"):
        assert disk.remove(path)
        assert not disk.remove(path)
        left.append(
            sorted(str(each.relative_to(tmp_path / "home")) for each in (tmp_path / "home").rglob("*"))
        )
    assert left[0] == ["MEMORY.md", "projects", "projects/p", "projects/p/MEMORY.md", "skills", "skills/a",
                       "skills/a/SKILL.md"]  # fmt: skip
    assert left[1] == ["MEMORY.md", "projects", "projects/p", "projects/p/MEMORY.md", "skills"]
    assert left[3] == ["projects", "skills"]


def test_a_removal_that_was_cut_off_is_finished_by_the_next(disk: FileTree, tmp_path: Path) -> None:
    (tmp_path / "home" / PATH).parent.mkdir(parents=True)
    (tmp_path / "home" / "skills/a/references/.hone-left.tmp").touch()
    assert not disk.remove(PATH)
    assert sorted(each.name for each in (tmp_path / "home").rglob("*")) == ["skills"]


def test_a_listing_has_all_files_by_path_and_says_when_they_are_too_many_or_too_deep(
    disk: FileTree, tmp_path: Path
) -> None:
    paths = ["skills/a/SKILL.md", PATH, "skills/a/references/b/c/d.md", "skills/b/SKILL.md"]
    for path in paths:
        disk.write(path, b"text")
    (tmp_path / "home" / "skills" / "a" / ".hone-left.tmp").touch()
    (tmp_path / "home" / "skills" / "a" / os.fsdecode(b"caf\xe9.md")).touch()
    (tmp_path / "home" / "skills" / "empty").mkdir()
    found = disk.listing("skills")
    assert [each.path for each in found if each.kind is FileKind.FILE] == sorted(paths)
    assert [each.path for each in found if each.kind is not FileKind.FILE] == ["skills/a/caf\udce9.md"]
    assert all(each.glance == disk.glance(each.path) for each in found if each.kind is FileKind.FILE)
    shallow = disk.listing("skills/a", depth=2)
    assert [each.path for each in shallow if each.kind is FileKind.FOLDER] == ["skills/a/references/b"]
    assert len(disk.listing("skills", most=5)) == 5
    with pytest.raises(StoreError, match=r"more files than Hone goes through \(4\); nothing was changed"):
        disk.listing("skills", most=4)


def test_folders_are_those_that_lie_there_and_no_files(disk: FileTree, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        disk.write(f"skills/{name}/SKILL.md", name.encode())
    (tmp_path / "home" / "skills" / "none").mkdir()
    (tmp_path / "home" / "skills" / "file").touch()
    assert disk.folders("skills") == {"a", "b", "c", "none"}


# Several at once, and kills


def test_two_processes_of_two_threads_lose_no_change_under_the_lock(
    disk: FileTree, tmp_path: Path, figures: Figures
) -> None:
    times = 50
    processes = [subprocess.Popen(worker(tmp_path / "home", "count", str(times))) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    wanted = len(processes) * disk_worker.THREADS * times
    found = disk.read("skills/sum/number")
    assert found
    assert int(found[0]) == wanted
    assert stat.S_IMODE((tmp_path / "home" / LOCK).stat().st_mode) == 0o600
    figures(f"{wanted} changes under the lock by {len(processes)} processes, 0 lost")


def test_the_lock_of_a_killed_process_is_free_and_a_removed_lock_file_locks_nobody_out(
    disk: FileTree, tmp_path: Path
) -> None:
    entered = Event()

    def enter() -> None:
        with disk.lock():
            entered.set()

    thread = Thread(target=enter)
    with working(tmp_path / "home", "hold") as process:
        thread.start()
        while not holds(tmp_path / "home" / LOCK):
            assert not entered.is_set()
        (tmp_path / "home" / LOCK).unlink()
        process.kill()
    thread.join(30)
    assert entered.is_set()
    assert (tmp_path / "home" / LOCK).is_file()


def holds(path: Path) -> bool:
    """Whether this process has the file open."""
    found = False
    for handle in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found = found or handle.readlink() == path
    return found


def test_a_lock_that_was_given_back_is_free_although_a_forked_child_has_its_descriptor(
    disk: FileTree,
) -> None:
    ours, theirs = os.pipe()
    with disk.lock():
        child = os.fork()
        if not child:
            os.close(theirs)
            os.read(ours, 1)
            os._exit(0)
    with disk.lock():
        os.close(theirs)
    assert os.waitpid(child, 0)[1] == 0
    os.close(ours)


def _save_in_place(file: Path) -> None:
    file.write_bytes(b"mine")


def _save_by_renaming(file: Path) -> None:
    file.with_name("other").write_bytes(b"mine")
    file.with_name("other").replace(file)


@pytest.mark.parametrize("can_exchange", [True, False])
@pytest.mark.parametrize("save", [_save_in_place, _save_by_renaming, Path.unlink])
def test_what_an_editor_saved_after_the_file_was_read_is_neither_replaced_nor_removed(
    disk: FileTree,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    save: Callable[[Path], None],
    can_exchange: bool,
) -> None:
    if not can_exchange:
        monkeypatch.setattr(atomic, "_rename", lambda *_: False)
    file = tmp_path / "home" / PATH
    known = disk.write(PATH, b"old", None)
    known = disk.write(PATH, b"new", known)
    save(file)
    there = file.read_bytes() if file.exists() else None
    with pytest.raises(Busy):
        disk.write(PATH, b"ours", known)
    if there is None:
        return
    with pytest.raises(Busy):
        disk.remove(PATH, known)
    with pytest.raises(Busy):
        disk.write(PATH, b"ours", None)
    assert (file.read_bytes(), [each.name for each in file.parent.iterdir()]) == (b"mine", [file.name])


def test_a_file_that_somebody_writes_is_neither_replaced_nor_removed_until_it_is_closed(
    disk: FileTree, tmp_path: Path
) -> None:
    known = disk.write(PATH, b"old")
    with open(tmp_path / "home" / PATH, "r+b") as editor:
        found = disk.look(PATH)
        assert found
        assert found.busy
        for deed in (lambda: disk.write(PATH, b"ours", known), lambda: disk.remove(PATH, known)):
            with pytest.raises(Busy):
                deed()
        editor.write(b"mine")
    found = disk.look(PATH)
    assert found
    assert (found.data, found.busy) == (b"mine", False)
    disk.write(PATH, b"ours", found.file)
    assert content(tmp_path / "home") == {PATH: b"ours"}


def test_reading_leaves_no_trace_and_others_do(disk: FileTree, tmp_path: Path) -> None:
    known = disk.write(PATH, b"old")
    if not disk.notes_reading():
        pytest.skip("this file system does not keep the time of a reading")
    for is_read in (False, True):
        disk.read(PATH)
        found = disk.look(PATH)
        assert found
        assert (found.read_at != known.modified) is is_read
        (tmp_path / "home" / PATH).read_bytes()


def test_a_write_is_on_the_disk_before_it_takes_the_place_and_so_is_the_place(
    disk: FileTree, tmp_path: Path
) -> None:
    disk.write(PATH, b"old")
    trace = ["--quiet=all", "--trace=fsync,/rename", "--decode-fds=path", "-o", str(tmp_path / "trace")]
    command = [requires("strace"), *trace, *worker(tmp_path / "home", "write", PATH)]
    subprocess.run(command, check=True)
    rows = [row for row in (tmp_path / "trace").read_text().splitlines() if str(tmp_path) in row]
    assert [row.partition("(")[0] for row in rows] in (
        ["fsync", "rename" + at, "fsync"] for at in ("at", "at2")
    )
    assert ".tmp>)" in rows[0]
    assert "/references>)" in rows[2]


def test_a_draft_in_use_is_left_alone_and_one_of_a_killed_process_goes_with_the_next_write(
    disk: FileTree, tmp_path: Path
) -> None:
    folder = tmp_path / "home" / "skills" / "a"
    disk.write("skills/a/SKILL.md", b"old")
    with working(tmp_path / "home", "die", str(folder)):
        disk.write("skills/a/b", b"")
        assert [each.read_bytes() for each in folder.glob(".hone-*.tmp")] == [b"half"]
        assert [each.path for each in disk.listing("skills/a") if ".tmp" in each.path] == []
    assert len(list(folder.glob(".hone-*.tmp"))) == 1
    disk.write("skills/a/b", b"")
    assert list(folder.glob(".hone-*.tmp")) == []
    assert content(folder) == {"SKILL.md": b"old", "b": b""}


def test_a_script_of_a_skill_can_be_run_by_its_path_and_nothing_else_can(tmp_path: Path) -> None:
    tree = FileTree(tmp_path / "home")
    script, text = b"#!/bin/sh\necho high tide\n", b"Read this.\n"
    modes = {}
    for path, data in (
        ("skills/tides/scripts/run.sh", script),
        ("skills/tides/scripts/notes.md", text),
        ("skills/tides/references/run.sh", script),
    ):
        tree.write(path, data)
        modes[path] = stat.S_IMODE((tmp_path / "home" / path).stat().st_mode)
    assert list(modes.values()) == [0o700, 0o600, 0o600]
