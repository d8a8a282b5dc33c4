"""Find the sensitive places in a folder, and find them again fast: only changed folders are read again.

A folder has changed if the last change of its entries is newer, a time that no command can set. In a large
tree the kernel is asked first whether anything changed at all. Folders of dependencies are left out: their
files run only for people who work in them.
"""

import os
import stat
import time
import weakref
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import TypeGuard

from msgspec import Struct

from hone.core.sensitive import CI, GIT, is_sealed, leads_to_sensitive
from hone.files.inotify import (
    IGNORED,
    IS_FOLDER,
    MOVED_FROM,
    MOVED_TO,
    NAMES,
    OVERFLOW,
    Inotify,
    is_local,
)
from hone.files.tree import TICK

MOST = 1_500
"""The most folders to check, upper ones first."""
MANY = 200
"""From this many folders on the kernel reports changes: if it reports none, nothing is checked."""
_SKIPPED = {
    *("node_modules", "site-packages", "vendor", ".venv", "venv", "__pycache__", ".tox", ".nox", ".cache"),
    *(".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"),
}
DIRECTIVES = ("hooks", "config", "config.worktree", "commondir")
_HOSTS = (".github", ".gitea", ".forgejo", ".gitlab")
"""Folders whose subfolders a CI server runs, if they are at the top of a repository."""


class Ground(StrEnum):
    """What a folder belongs to."""

    WORK = "work"
    GIT = "git"
    """A git folder."""
    MODULES = "modules"
    """The folder in which git keeps those of submodules, and the folders in between."""
    WORKTREES = "worktrees"


class Site(Struct, frozen=True):
    """A sensitive file or folder: its place below the root, the reason, and its identity: its own inode and
    that of its folder."""

    path: str
    reason: str
    mode: int
    inode: int
    within: int
    top: str = ""
    """For what CI runs: the folder that must be a repository's."""

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)


class SeenFolder(Struct, frozen=True):
    """The contents of one folder. It `is_fresh` if it had changed so recently that another change might look
    the same."""

    place: str
    ground: Ground
    changed: int
    inode: int
    is_fresh: bool
    sites: tuple[Site, ...]
    below: tuple[tuple[str, Ground, int], ...]
    is_git: bool
    is_repository: bool

    def holds_the_same(self, other: "SeenFolder") -> bool:
        """Tell whether the changes in between concern nobody here."""
        mine, others = (
            (each.inode, each.sites, each.below, each.is_git, each.is_repository) for each in (self, other)
        )
        return mine == others


class Census(Struct, frozen=True):
    """`git` are the git folders, `repositories` the folders that contain a .git, `folders` all of them."""

    sites: dict[str, Site] = {}
    git: frozenset[str] = frozenset()
    repositories: frozenset[str] = frozenset()
    folders: Mapping[str, SeenFolder] = {}

    def matters(self, site: Site) -> bool:
        """Tell whether a site matters. CI runs its files at the top of the tree and of a repository, and
        nowhere else."""
        return not site.top or site.top in self.repositories


class FolderAlarm:
    """Names the folders that have changed. Only a kernel that sees every change can promise silence."""

    def __init__(self, root: str) -> None:
        """Start. Raises OSError where the kernel cannot promise that."""
        if not is_local(root):
            raise OSError("others can change this folder unseen")
        self._device = os.stat(root).st_dev
        self._inotify = Inotify(NAMES)
        self._places: dict[int, str] = {}
        self._is_complete = True
        weakref.finalize(self, self._inotify.close)

    def add(self, folder: str) -> None:
        """Watch a folder. Called before the folder is read."""
        try:
            self._places[self._inotify.add(folder)] = folder
            self._is_complete = self._is_complete and os.stat(folder).st_dev == self._device
        except OSError:
            self._is_complete = False

    def changed(self) -> set[str] | None:
        """Return the folders that have changed since the last call; None if any may have."""
        reports = [*self._inotify.read()]
        if not self._is_complete or any(_is_unsure(each.mask) for each in reports):
            return None
        return {self._places[each.watch] for each in reports}


class Surveyor:
    """Searches one tree. `skipped` paths are not checked: Hone's home has separate writers, and nothing in it
    may be put back. From `many` folders on, the kernel watches them."""

    def __init__(self, root: str, skipped: Sequence[str] = (), many: int = MANY) -> None:
        self.root = root
        self._many = many
        self._skipped = [path for path in skipped if path.startswith(f"{root}/")]
        self._known: dict[str, SeenFolder] = {}
        self._places: list[str] = []
        self._states: list[tuple[int, int]] = []
        self._census: Census | None = None
        self._alarm: FolderAlarm | None = None
        self._is_watched = False

    def look(self) -> Census:
        again = {path: self._folder(path, self._known[path].ground) for path in self._changed()}
        if self._census is not None and self._is_all_the_same(again):
            if again:
                self._remember(self._known | again)
        else:
            self._remember(self._walk(again))
            self._census = Census(
                {site.path: site for each in self._known.values() for site in each.sites},
                frozenset(path for path, each in self._known.items() if each.is_git),
                frozenset(path for path, each in self._known.items() if each.is_repository),
                self._known,
            )
        return self._census

    def _is_all_the_same(self, again: dict[str, SeenFolder | None]) -> TypeGuard[dict[str, SeenFolder]]:
        """Tell whether nothing relevant has changed. Usually only irrelevant files have, and the tree need
        not be walked."""
        return all(found and found.holds_the_same(self._known[path]) for path, found in again.items())

    def _changed(self) -> set[str]:
        """Return the folders that have to be read again. This runs around every command."""
        reported = self._reported()
        if reported is not None:
            return (
                {path for path, seen in self._known.items() if seen.place in reported} if reported else set()
            )
        if self._is_unchanged():
            return set()
        found = set()
        for path, seen in self._known.items():
            try:
                status = os.lstat(seen.place)
                if status.st_ctime_ns != seen.changed or status.st_ino != seen.inode or seen.is_fresh:
                    found.add(path)
            except OSError:
                found.add(path)
        return found

    def _reported(self) -> set[str] | None:
        """Return what the kernel reports as changed; None if that must be checked. It watches a large tree
        from the second check on."""
        if self._alarm:
            return self._alarm.changed()
        if len(self._known) >= self._many and not self._is_watched:
            self._is_watched = True
            with suppress(OSError):
                self._alarm = FolderAlarm(self.root)
                for place in self._places:
                    self._alarm.add(place)
        return None

    def _is_unchanged(self) -> bool:
        """Compare all folders at once, which is faster than one by one."""
        try:
            states = [(status.st_ctime_ns, status.st_ino) for status in map(os.lstat, self._places)]
        except OSError:
            return False
        return states == self._states

    def _remember(self, known: dict[str, SeenFolder]) -> None:
        self._known = known
        self._places = [each.place for each in known.values()]
        self._states = [(-1 if each.is_fresh else each.changed, each.inode) for each in known.values()]

    def _walk(self, again: dict[str, SeenFolder | None]) -> dict[str, SeenFolder]:
        """Walk the tree. A known folder is always entered, under any name: a command that creates many others
        cannot crowd it out."""
        now = self._known | again
        known: dict[str, SeenFolder] = {}
        inodes = {seen.inode for seen in self._known.values()}
        queue: deque[tuple[str, Ground, int]] = deque([("", Ground.WORK, 0)])
        while queue:
            path, ground, inode = queue.popleft()
            if len(known) >= MOST and inode not in inodes:
                continue
            found = now.get(path)
            if found is None or found.ground is not ground:
                found = self._folder(path, ground)
            if found is not None:
                known[path] = found
                queue.extend(found.below)
        return known

    def _is_skipped(self, path: str) -> bool:
        """Tell whether it is one of them, or a sensitive place around one."""
        place = f"{self.root}/{path}"
        around = any(each == place or each.startswith(f"{place}/") for each in self._skipped)
        return around and (place in self._skipped or bool(is_sealed(path.split("/"))))

    def _folder(self, path: str, ground: Ground) -> SeenFolder | None:
        place = f"{self.root}/{path}" if path else self.root
        try:
            status = os.lstat(place)
            if not stat.S_ISDIR(status.st_mode):
                return None
            looked = time.time_ns()
            if self._alarm:
                self._alarm.add(place)
            with os.scandir(place) as entries:
                inner = {entry.name: entry for entry in entries}
        except OSError:
            return None
        return self._read(path, ground, inner, status, looked)

    def _read(
        self,
        path: str,
        ground: Ground,
        inner: dict[str, os.DirEntry[str]],
        status: os.stat_result,
        looked: int,
    ) -> SeenFolder:
        entered_as = ground
        looks_like_git = {"HEAD", "objects", "refs"} <= inner.keys()  # git checks contents, not the name
        is_named = ground is Ground.WORK and path.rpartition("/")[2] == ".git"
        if is_named or (ground is Ground.MODULES and looks_like_git):
            ground = Ground.GIT
        is_git = ground is Ground.GIT or looks_like_git
        sites: list[Site] = []
        below: list[tuple[str, Ground, int]] = []
        for name, entry in inner.items():
            full = f"{path}/{name}" if path else name
            if self._is_skipped(full):
                continue
            if reason := _reason(path, name, entry, ground, is_git):
                sites += _site(full, reason, entry, status.st_ino)
            elif _is_folder(entry):
                below += ((full, each, entry.inode()) for each in _descend(full, name, ground))
        is_repository = ground is Ground.WORK and ".git" in inner
        return SeenFolder(
            f"{self.root}/{path}" if path else self.root,
            entered_as,
            status.st_ctime_ns,
            status.st_ino,
            status.st_ctime_ns >= looked - TICK,
            tuple(sites),
            tuple(below),
            is_git,
            is_repository,
        )


def _is_unsure(mask: int) -> bool:
    """Tell whether names may be wrong after such a report: some are missing, or a folder went or was
    renamed."""
    moved = mask & IS_FOLDER and mask & (MOVED_FROM | MOVED_TO)
    return bool(mask & (OVERFLOW | IGNORED) or moved)


def _reason(path: str, name: str, entry: os.DirEntry[str], ground: Ground, is_git: bool) -> str:
    if name in DIRECTIVES and (is_git or ground is Ground.WORKTREES):
        return GIT
    if ground is not Ground.WORK:
        return ""
    if name == ".git":
        return "" if _is_folder(entry) else GIT
    reason = is_sealed((path.rpartition("/")[2], name))
    return reason or (leads_to_sensitive(name) if entry.is_symlink() else "")


def _descend(full: str, name: str, ground: Ground) -> Iterator[Ground]:
    """Yield the kind as which to enter a folder, if it is entered at all."""
    match ground:
        case Ground.WORK if name not in _SKIPPED:
            yield Ground.WORK
        case Ground.GIT if name in ("modules", "worktrees"):
            yield Ground.MODULES if name == "modules" else Ground.WORKTREES
        case Ground.MODULES:
            yield ground
        case Ground.WORKTREES if full.split("/")[-2] == "worktrees":
            yield ground


def _top(path: str) -> str:
    above = path.rpartition("/")[0]
    return above.rpartition("/")[0] if above.rpartition("/")[2] in _HOSTS else above


def _site(path: str, reason: str, entry: os.DirEntry[str], within: int) -> Iterator[Site]:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return
    yield Site(path, reason, status.st_mode, status.st_ino, within, _top(path) if reason == CI else "")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False
