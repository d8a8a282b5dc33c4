"""Hold the tainted texts of a trusted folder in memory, in step with other processes."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock

from hone.core.fingerprints import Fingerprints, Span
from hone.stores.tainted import CommandWindow, TaintStore

MOST = 500_000
"""The most units below one trusted folder. Above that all output from it is foreign, since none may be
forgotten."""
Version = tuple[int, int, int]


def name(path: Path | str) -> str:
    """Return a path as text that a database can hold, whatever bytes are in it."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


@dataclass
class TaintView:
    """What is tainted below a folder."""

    root: str
    fingerprints: Fingerprints = field(default_factory=Fingerprints)
    digests: set[str] = field(default_factory=set)
    paths: dict[str, set[str]] = field(default_factory=dict)
    """For each tainted file, the digests of its contents."""
    unchanged: dict[str, set[str]] = field(default_factory=dict)
    """For files that a tainted command left unchanged, the digests of their contents."""
    blobs: set[str] = field(default_factory=set)
    partial: set[str] = field(default_factory=set)
    """Files with more lines than were recorded."""
    earliest: int = 0
    """The time when the first text was tainted."""
    explained: set[Span] = field(default_factory=set)
    unexplained: set[Span] = field(default_factory=set)
    last: int = 0
    version: Version = (-1, -1, -1)

    @property
    def is_empty(self) -> bool:
        return not self.earliest

    @property
    def is_full(self) -> bool:
        return len(self.fingerprints) > MOST

    def load(self, store: TaintStore) -> None:
        for id, text in store.texts(self.root, self.last):
            self.last = id
            if text.kind == "same":
                self.unchanged.setdefault(text.path, set()).add(text.digest)
                continue
            self.fingerprints.add(text.units, text.at)
            self.earliest = min(self.earliest or text.at, text.at)
            self.explained.clear()  # the new text may hold the same line, tainted at another time
            if text.kind == "file":
                self.digests.add(text.digest)
                self.paths.setdefault(text.path, set()).add(text.digest)
                self.blobs.add(text.blob)
                if not text.complete:
                    self.partial.add(text.path)


class TaintViews:
    """Returns views that are up to date."""

    def __init__(self, store: TaintStore) -> None:
        self._store = store
        self._lock = RLock()
        self._views: dict[str, TaintView] = {}
        self._version: Version = (-1, -1, -1)
        self._own = 0
        self._folders: frozenset[str] = frozenset()
        self._trusted: dict[str, str] = {}
        self._windows: Sequence[CommandWindow] = ()

    def get(self, root: Path) -> TaintView:
        key = name(root)
        with self._lock:
            self._refresh()
            view = self._views.setdefault(key, TaintView(key))
            if view.version != self._version:
                view.load(self._store)
                view.version = self._version
            return view

    def changed(self) -> None:
        """Note that this process has written: the database only reports what others wrote."""
        with self._lock:
            self._own += 1

    @property
    def folders(self) -> frozenset[str]:
        """The folders that are tainted as a whole."""
        with self._lock:
            self._refresh()
            return self._folders

    @property
    def trusted(self) -> dict[str, str]:
        """Return the digests of contents that the owner trusts, each with its path if it had one."""
        with self._lock:
            self._refresh()
            return self._trusted

    def windows(self, path: Path) -> list[CommandWindow]:
        """Return the tainted windows of commands that may have changed a file, or files below a folder."""
        with self._lock:
            self._refresh()
            return [each for each in self._windows if each.tainted and is_overlapping(each.place, name(path))]

    def is_tainted_folder(self, path: Path) -> bool:
        """Tell whether a path lies in a folder that is tainted as a whole."""
        folders = self.folders
        return bool(folders) and any(name(each) in folders for each in (path, *path.parents))

    def _refresh(self) -> None:
        if not self._store.exists:
            return
        version = (*self._store.version(), self._own)
        if version == self._version:
            return
        if version[1] != self._version[1]:
            self._views.clear()
            self._folders, self._trusted = self._store.folders(), self._store.trusted()
        self._windows = self._store.windows()
        self._version = version


def is_overlapping(one: str, other: str) -> bool:
    """Tell whether one path is the other, or lies in it."""
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")
