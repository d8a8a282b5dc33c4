"""Track the files of a folder before a command, and find out what it did to them.

What git has unchanged stays with git. Everything else is copied before the first command, within limits;
before each further one, only what has changed since. Folders that a program fills (node_modules, virtual
environments) and files that git ignores are left out.
"""

import os
import stat
from collections.abc import Collection, Iterable, Mapping
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from hone.core.messages import digest
from hone.features.checkpoints import disk
from hone.features.checkpoints.folders import FolderList
from hone.features.checkpoints.git import GitWorktree
from hone.features.checkpoints.spool import Spool
from hone.features.checkpoints.values import UNREAD, PathKind, PathState
from hone.files.atomic import is_draft, open_file
from hone.files.watching import Changed, FolderWatch

LARGEST, MOST, ROOM = 2**20, 2_000, 64 * 2**20
"""The most bytes of a file to copy, the number of copies, and their bytes in total."""
SOME = 500
"""The most files to check one by one. If more have changed, git is asked again which of them it has."""
TOO_LARGE, TOO_MANY, CLOSED, GONE = "too large", "too many files", "not readable", "git no longer has it"
Signature = tuple[int, int, int, int, int]


class HeldFile(NamedTuple):
    """A file before a command. Its content is at a `place` in the spool, or git has it as an `object`, or it
    is `lost`."""

    signature: Signature
    digest: str = ""
    place: int = -1
    object: str = ""
    lost: str = ""

    @property
    def size(self) -> int:
        return self.signature[2]

    def state(self, digest: str) -> PathState:
        kind = PathKind.LINK if stat.S_ISLNK(self.signature[0]) else PathKind.FILE
        return PathState(kind, stat.S_IMODE(self.signature[0]), digest)


class PathDifference(Struct, frozen=True):
    """What a command did to a path. `content` is that before it, unless that is `lost`."""

    path: Path
    before: PathState | None
    after: PathState | None
    content: bytes = b""
    lost: str = ""


class FolderSnapshot:
    """Call `refresh` before a command and `compare` after it. Both block, so call them in a thread. Raises
    OSError, and TooMany for a folder with too many files."""

    def __init__(self, root: Path, home: Path) -> None:
        self.root = root
        self._prefix = f"{root}/"
        self._spool = Spool(home / "checkpoints")
        self._list = FolderList(root, home)
        self._watch: FolderWatch | None = None
        self._git: GitWorktree | None = None
        self._held: dict[str, HeldFile] = {}
        self._folders: dict[str, int] = {}
        self._count = self._bytes = 0

    def refresh(self) -> None:
        """Treat what has changed since the last command as the work of the user or another tool."""
        if self._watch is None:
            self._list.look()  # first of all, check for too many
            self._watch = FolderWatch(self.root)
            self._scan()
        changed = self._watch.drain()
        if changed.overflow or len(changed.paths) > SOME or self._spool.size > 2 * ROOM:
            self._scan()
            changed = self._watch.drain()
        before, self._folders = self._folders, self._list.look()
        self._update(self._reach(changed, before))

    def compare(self) -> list[PathDifference]:
        """Return what has changed since `refresh`."""
        if self._watch is None:
            return []
        changed = self._watch.drain()
        known, before = self._held.copy(), self._folders
        self._folders = self._list.look()
        paths = self._reach(changed, before)
        contents = self._recall({path: known[path] for path in paths if path in known})
        self._update(paths)
        found = (self._differ(path, known.get(path), contents) for path in sorted(paths))
        gone, made = self._folder_changes(before)
        # A file that replaces a folder, or the reverse, is first a removal and then a creation.
        return [*gone, *(each for each in found if each), *made]

    def close(self) -> None:
        self._spool.close()
        if self._watch:
            self._watch.close()
        self._watch = None

    def _scan(self) -> None:
        """Check every file, and copy what git does not have."""
        self._spool.clear()
        self._held, self._count, self._bytes = {}, 0, 0
        self._folders = self._list.look()
        listed = set(self._list.files())
        self._git = GitWorktree.around(self.root)
        if self._git is None:
            self._hold_all(listed)
            return
        tracked, indexed = self._git.tracked()
        loose = set()
        for path in listed & tracked.keys():
            status = self._status(path)
            if status and tracked[path].is_clean(status, indexed):
                self._held[path] = HeldFile(_signature(status), object=tracked[path].object)
            else:
                loose.add(path)
        self._hold_all(loose | self._untracked(self._git, listed))

    def _untracked(self, git: GitWorktree, listed: Collection[str]) -> set[str]:
        names = git.untracked()
        nested = tuple(name for name in names if name.endswith("/"))
        inside = {path for path in listed if path.startswith(nested)} if nested else set()
        return inside | set(names).intersection(listed)

    def _reach(self, changed: Changed, before: Mapping[str, int]) -> set[str]:
        """Return every path that may have changed: reported ones, those in deleted or moved folders, and
        those in new ones."""
        paths = {path for path in changed.paths if not is_draft(path.rpartition("/")[2])}
        gone = {*(before.keys() - self._folders.keys()), *(paths & before.keys())}
        new = {*(self._folders.keys() - before.keys()), *(paths & self._folders.keys())}
        if gone:
            paths |= {path for path in self._held if _is_inside(path, gone)}
        if new:
            paths |= {path for path in self._list.files() if _is_inside(path, new)}
        if changed.overflow:
            paths |= {path for path in self._list.files() if path not in self._held}
            paths |= {path for path, held in self._held.items() if not self._is_same(path, held)}
        return paths

    def _update(self, paths: Iterable[str]) -> None:
        """Copy the current content of these paths."""
        whole = set(paths)
        known = whole & self._held.keys()
        for path in known:
            self._drop(path)
        there = {path for path in whole - known if self._status(path)}
        ignored = self._git.ignored(there) if self._git else set()
        self._hold_all(known | (there - ignored))

    def _hold_all(self, paths: Collection[str]) -> None:
        """Copy contents, the most recently changed first, since not all may fit."""
        found = [(status.st_mtime_ns, path, status) for path in paths if (status := self._status(path))]
        fitting: list[str] = []
        for _, path, status in sorted(found, key=itemgetter(0), reverse=True):
            is_file = stat.S_ISREG(status.st_mode)
            if is_file and status.st_size > LARGEST:
                self._held[path] = HeldFile(_signature(status), lost=TOO_LARGE)
            elif len(fitting) < MOST:
                fitting.append(path)
            elif is_file or stat.S_ISLNK(status.st_mode):
                self._held[path] = HeldFile(_signature(status), lost=TOO_MANY)
        with disk.FolderReader(self.root) as reader:
            for path in sorted(fitting):
                held = self._hold(reader, path)
                if held:
                    self._held[path] = held
                    self._count += held.place >= 0
                    self._bytes += held.size if held.place >= 0 else 0

    def _hold(self, reader: disk.FolderReader, path: str) -> HeldFile | None:
        """Copy one content. Return None for anything but a file or a link."""
        try:
            folder, name = reader.find(path)
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            signature = _signature(status)
            if stat.S_ISLNK(status.st_mode):
                data = os.fsencode(os.readlink(name, dir_fd=folder))
            elif not stat.S_ISREG(status.st_mode):
                return None
            elif lost := self._excess(status.st_size):
                return HeldFile(signature, lost=lost)
            else:
                with open_file(name, folder=folder) as file:
                    signature, data = _signature(os.fstat(file.fileno())), file.read(LARGEST + 1)
        except FileNotFoundError:
            return None
        except OSError:
            closed = self._status(path)
            return HeldFile(_signature(closed), lost=CLOSED) if closed else None
        if len(data) != signature[2]:  # being written right now
            return HeldFile(signature, lost=CLOSED)
        return HeldFile(signature, digest(data), self._spool.put(data))

    def _excess(self, size: int) -> str:
        if size > LARGEST:
            return TOO_LARGE
        return TOO_MANY if self._count >= MOST or self._bytes + size > ROOM else ""

    def _drop(self, path: str) -> None:
        held = self._held.pop(path, None)
        if held and held.place >= 0:
            self._count -= 1
            self._bytes -= held.size

    def _recall(self, known: Mapping[str, HeldFile]) -> dict[str, bytes]:
        """Return the contents before a command, as far as they exist and fit."""
        contents, room = {}, ROOM
        for path, held in known.items():
            if held.place >= 0:
                contents[path] = self._spool.get(held.place, held.size)
                room -= held.size
        wanted: dict[str, str] = {}
        for path, held in known.items():
            if held.object and held.size <= room and len(wanted) < MOST:
                wanted[path] = held.object
                room -= held.size
        found = self._git.contents(wanted.values()) if self._git and wanted else {}
        for path, object in wanted.items():
            if object in found and len(found[object]) == known[path].size:
                contents[path] = found[object]
        return contents

    def _differ(
        self, path: str, before: HeldFile | None, contents: Mapping[str, bytes]
    ) -> PathDifference | None:
        """Compare a path with what is known about it. Return None if it is the same, or left out."""
        now, place = self._held.get(path), self.root / path
        if before == now or (before and now and before.signature == now.signature):
            return None
        after, lost = self._after(place, now)
        if before is None:
            return PathDifference(place, None, after, lost=lost)
        if path not in contents:
            lost = before.lost or (GONE if before.size <= LARGEST else TOO_LARGE)
            return PathDifference(place, before.state(before.digest), after, lost=lost)
        state = before.state(before.digest or digest(contents[path]))
        return None if state == after else PathDifference(place, state, after, contents[path], lost)

    def _after(self, place: Path, now: HeldFile | None) -> tuple[PathState | None, str]:
        """Return the state after a command. An unreadable one is not known again: it is lost."""
        if now is None or now.digest:
            return now and now.state(now.digest), ""
        try:
            return disk.look(place), ""
        except OSError:
            return now.state(UNREAD), CLOSED

    def _folder_changes(self, before: Mapping[str, int]) -> tuple[list[PathDifference], list[PathDifference]]:
        """Return the removed and the new folders, without those that git ignores."""
        after = self._folders
        changed = before.keys() ^ after.keys()
        ignored = self._git.ignored(f"{path}/" for path in changed) if self._git else set()
        seen = [path for path in sorted(changed) if f"{path}/" not in ignored]
        gone = [
            PathDifference(self.root / path, _folder(before[path]), None) for path in seen if path in before
        ]
        made = [
            PathDifference(self.root / path, None, _folder(after[path])) for path in seen if path in after
        ]
        return gone, made

    def _is_same(self, path: str, held: HeldFile) -> bool:
        status = self._status(path)
        return status is not None and _signature(status) == held.signature

    def _status(self, path: str) -> os.stat_result | None:
        try:
            return os.lstat(self._prefix + path)
        except OSError:
            return None


def _folder(mode: int) -> PathState:
    return PathState(PathKind.FOLDER, mode)


def _is_inside(path: str, folders: Collection[str]) -> bool:
    at = path.rfind("/")
    while at > 0:
        if path[:at] in folders:
            return True
        at = path.rfind("/", 0, at)
    return False


def _signature(status: os.stat_result) -> Signature:
    return status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
