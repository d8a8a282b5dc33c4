"""Track the folders below a folder, and list again only those that have changed."""

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from hone.files.watching import MARKERS, WHOLE_NAMES

MOST = 100_000
"""The most names to list. Nobody works on a larger folder as one project."""
TICK = 20_000_000
"""Nanoseconds within which a folder may change twice and look the same."""


class TooMany(Exception):
    """There are more names below the folder than are listed."""


class _Listing(NamedTuple):
    changed: int
    fresh: bool
    """Whether it was listed so soon after a change that another one may have been missed."""
    mode: int
    folders: tuple[str, ...]
    files: tuple[str, ...]


_UNLISTED = _Listing(0, True, 0, (), ())


class FolderList:
    """`look` returns all folders with their modes, by relative path. Folders that a program fills, such as
    node_modules, are left out, and so is `hidden`. Raises TooMany and OSError."""

    def __init__(self, root: Path, hidden: Path, now: Callable[[], int] = time.time_ns) -> None:
        self._root = os.fspath(root)
        self._hidden = os.fspath(hidden)
        self._now = now
        self._known: dict[str, _Listing] = {}

    def look(self) -> dict[str, int]:
        todo, names, seen = [""], 0, dict[str, _Listing]()
        while todo:
            path = todo.pop()
            listing = self._list(path)
            if listing is None:
                continue
            seen[path] = listing
            names += len(listing.folders) + len(listing.files)
            if names > MOST:
                raise TooMany
            todo += [f"{path}/{name}" if path else name for name in listing.folders]
        self._known = seen
        return {path: listing.mode for path, listing in seen.items() if path}

    def files(self) -> list[str]:
        """Return what was in them at the last look, links and other things included."""
        return [
            f"{path}/{name}" if path else name
            for path, listing in self._known.items()
            for name in listing.files
        ]

    def _list(self, path: str) -> _Listing | None:
        place = os.path.join(self._root, path) if path else self._root
        try:
            status = os.lstat(place)
            if not stat.S_ISDIR(status.st_mode):
                return None
            mode, known = stat.S_IMODE(status.st_mode), self._known.get(path)
            if known and not known.fresh and known.changed == status.st_ctime_ns:
                return known._replace(mode=mode)
            return self._read(place, status)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except PermissionError:  # its content still exists, as far as is known
            return self._known.get(path, _UNLISTED)

    def _read(self, place: str, status: os.stat_result) -> _Listing | None:
        fresh = self._now() - status.st_ctime_ns < TICK
        folders, files = [], []
        with os.scandir(place) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    files.append(entry.name)
                elif entry.name not in WHOLE_NAMES and entry.path != self._hidden:
                    folders.append(entry.name)
        if not MARKERS.isdisjoint(files) and place != self._root:
            return None
        mode = stat.S_IMODE(status.st_mode)
        return _Listing(status.st_ctime_ns, fresh, mode, tuple(folders), tuple(files))
