"""Find which files below a folder have changed since the last check, without reading any of them.

Linux reports changes to every watched folder, at no cost per file. If inotify is missing or its limits are
reached, the state of each file is compared instead: inode, size and the time of its last change of any kind,
which no program can set. A file that is written through another hard link is reported under that name only.
"""

import errno
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Lock

from msgspec import Struct

from hone.files import inotify
from hone.files.inotify import Inotify

WHOLE_NAMES = frozenset(
    (".git", ".hg", "node_modules", "bower_components", "__pypackages__", "__pycache__", ".tox", ".nox")
)
"""Folders that a program fills and no person edits file by file."""
MARKERS = frozenset(("pyvenv.cfg", "CACHEDIR.TAG"))
"""A folder with one of these files is a virtual environment or a cache."""
SLACK = 20_000_000
"""Nanoseconds by which the time of a change may lag behind the clock, on systems that do not say."""
_COARSE = 5
"""The number of the clock that Linux uses for changes of files."""
State = tuple[int, int, int]


def file_time() -> int:
    """Return the time in nanoseconds that a change would get right now; on some systems a little less."""
    return time.clock_gettime_ns(_COARSE) if sys.platform == "linux" else time.time_ns() - SLACK


class Changed(Struct, frozen=True):
    """What was written, created, deleted or moved, as relative paths: files, links, and folders that were
    moved away, each of which stands for all that was in it.

    inside:    the same within folders that count as a whole (`WHOLE_NAMES`, `MARKERS`)
    folders:   folders that are new
    overflow:  the kernel dropped reports; found by time instead, so deleted files are missing
    """

    paths: frozenset[str] = frozenset()
    inside: frozenset[str] = frozenset()
    overflow: bool = False
    folders: frozenset[str] = frozenset()


class FolderWatch:
    """Collects changes below a folder from now on. `share` makes another one that separately tracks what it
    has returned; both use the same kernel reports. It blocks while it looks, so call it in a thread."""

    def __init__(self, folder: Path, tree: "WatchedTree | None" = None) -> None:
        self.folder = folder
        self._found: set[str] = set()
        self._new: set[str] = set()
        self._overflow = False
        self._tree = tree or WatchedTree(folder)
        self._tree.join(self)

    def drain(self) -> Changed:
        """Return what has changed since the last call."""
        with self._tree.lock:
            self._tree.pump()
            found, self._found = self._found, set()
            new, self._new = self._new, set()
            overflow, self._overflow = self._overflow, False
            inside = {path for path in found if self._tree.whole(path)}
            folders = frozenset(path for path in new if not self._tree.whole(path))
        return Changed(frozenset(found - inside), frozenset(inside), overflow, folders)

    def whole(self, path: str) -> str:
        """Return the folder around a relative path that counts as a whole, or an empty string."""
        with self._tree.lock:
            return self._tree.whole(path)

    def share(self) -> "FolderWatch":
        with self._tree.lock:
            self._tree.pump()  # for those who were here before
        return FolderWatch(self.folder, self._tree)

    def close(self) -> None:
        """Stop watching. May be called again. The last user ends the watch."""
        self._tree.leave(self)

    def report(self, paths: set[str], folders: set[str], *, overflow: bool) -> None:
        self._found |= paths
        self._new |= folders
        self._overflow = self._overflow or overflow


class WatchedTree:
    """Watches all folders below one, for all its users."""

    def __init__(self, root: Path) -> None:
        self.lock = Lock()
        self._root = os.fspath(root)
        self._users: list[FolderWatch] = []
        self._folders: dict[int, str] = {}
        self._watches: dict[str, int] = {}
        self._marked: set[str] = set()
        self._states: dict[str, State] = {}
        self._known: set[str] = set()
        self._new: set[str] = set()
        self._since = file_time()
        self._inotify: Inotify | None = None
        try:
            self._inotify = Inotify()
            for _ in self._walk(""):
                pass
        except OSError:
            self._compare_states()
        self._new.clear()

    def join(self, user: FolderWatch) -> None:
        with self.lock:
            self._users.append(user)

    def leave(self, user: FolderWatch) -> None:
        with self.lock:
            self._users = [each for each in self._users if each is not user]
            if not self._users and self._inotify:
                self._inotify.close()
                self._inotify = None

    def pump(self) -> None:
        """Pass new changes on to all users. The caller holds the lock."""
        since, self._since = self._since, file_time()
        try:
            found, overflow = self._receive(since) if self._inotify else (self._compare_states(), False)
        except OSError:  # the limit of watches: continue without them
            found, overflow = self._changed_after(since), True
            self._compare_states()
        new, self._new = self._new, set()
        for user in self._users:
            user.report(found, new, overflow=overflow)

    def whole(self, path: str) -> str:
        """Return the outermost folder around a path that counts as a whole, the path itself included."""
        names = path.split("/")
        for count, name in enumerate(names, 1):
            if name in WHOLE_NAMES or (self._marked and "/".join(names[:count]) in self._marked):
                return "/".join(names[:count])
        return ""

    def _receive(self, since: int) -> tuple[set[str], bool]:
        assert self._inotify is not None
        found: set[str] = set()
        for watch, mask, name in self._inotify.read():
            if mask & inotify.OVERFLOW:
                return found | self._changed_after(since), True
            if mask & inotify.IGNORED:
                self._watches.pop(self._folders.pop(watch, ""), None)
            elif name and watch in self._folders:
                path = _join(self._folders[watch], name)
                if mask & inotify.IS_FOLDER:
                    found.update(self._follow(path, mask))
                else:
                    self._note(path)
                    found.add(path)
        return found, False

    def _follow(self, path: str, mask: int) -> Iterator[str]:
        """Follow a new folder. One that came from elsewhere may already hold anything, and so may one that
        becomes accessible."""
        if mask & (inotify.CREATE | inotify.MOVED_TO) or (
            mask & inotify.ATTRIB and path not in self._watches
        ):
            yield from self._walk(path)
        elif mask & inotify.MOVED_FROM:
            yield path
            for each in [each for each in self._watches if each == path or each.startswith(f"{path}/")]:
                watch = self._watches.pop(each)
                self._folders.pop(watch, None)
                if self._inotify:
                    self._inotify.remove(watch)

    def _walk(self, top: str) -> Iterator[str]:
        """Watch a folder and its subfolders, each before it is listed; yield their files. Raises OSError only
        at the limit of watches."""
        todo = [top]
        while todo:
            folder = todo.pop()
            if folder not in self._known:
                self._known.add(folder)
                self._new.add(folder)
            place = os.path.join(self._root, folder)
            if self._inotify and not self._add(folder, place):
                continue
            for name, is_folder in _entries(place):
                if is_folder:
                    todo.append(_join(folder, name))
                else:
                    path = _join(folder, name)
                    self._note(path)
                    yield path

    def _add(self, folder: str, place: str) -> bool:
        assert self._inotify is not None
        try:
            watch = self._inotify.add(place)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.ENOMEM, errno.EBADF) or not folder:
                raise
            return False  # gone again, a link by now, or inaccessible
        self._folders[watch] = folder
        self._watches[folder] = watch
        return True

    def _note(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        if name in MARKERS and folder:
            self._marked.add(folder)

    def _changed_after(self, since: int) -> set[str]:
        """Watch new folders, and find by time what the kernel did not report."""
        if self._inotify:
            for _ in self._inotify.read():  # older than the window in question
                pass
            self._watches.clear()  # names may be wrong by now; the walk finds them again
        paths = list(self._walk(""))
        return {path for path in paths if (state := self._state(path)) and state[1] >= since}

    def _compare_states(self) -> set[str]:
        if self._inotify:
            self._inotify.close()
            self._inotify = None
        before = self._states
        found = ((path, self._state(path)) for path in self._walk(""))
        self._states = {path: state for path, state in found if state}
        gone = before.keys() - self._states.keys()
        return {path for path, state in self._states.items() if before.get(path) != state} | gone

    def _state(self, path: str) -> State | None:
        try:
            status = os.lstat(os.path.join(self._root, path))
        except OSError:
            return None
        return status.st_ino, status.st_ctime_ns, status.st_size


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _entries(place: str) -> list[tuple[str, bool]]:
    """Names in a folder, each with whether it is a folder. Links are not followed."""
    try:
        with os.scandir(place) as entries:
            return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    except OSError:
        return []
