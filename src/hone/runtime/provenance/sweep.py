"""Find by time what changed, unnoticed, while tainted commands ran.

A file can be written through another hard link, and a process can be killed before it records what its
command did. No program can set the time of a change, so a file that changed in such a window is found later.
"""

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import RLock

from hone.core.messages import digest
from hone.files.watching import MARKERS, WHOLE_NAMES
from hone.runtime.provenance.recording import TaintOrigin, read, taint_file
from hone.runtime.provenance.view import TaintView, TaintViews, name
from hone.runtime.trust import Folders
from hone.stores.tainted import CommandWindow, TaintedText, TaintStore


class Sweeper:
    def __init__(self, store: TaintStore, views: TaintViews, folders: Folders) -> None:
        self._store = store
        self._views = views
        self._folders = folders
        self._lock = RLock()

    def sweep(self, folder: Path) -> None:
        """Record what tainted windows in a folder still owe, and forget those that have ended."""
        with self._lock:
            windows = self._views.windows(folder)
            if not windows:
                return
            places = {each.place for each in windows}
            found = [text for place in places for text in self._find(place, windows)]
            wholes = [whole for place in places for whole in self._find_wholes(place, windows)]
            if found:
                self._store.add(found)
            if wholes:
                self._store.taint_folders(wholes)
            self._store.forget([each for each in windows if each.ended])
            self._views.changed()

    def _find(self, place: str, windows: Sequence[CommandWindow]) -> Iterator[TaintedText]:
        own = [each for each in windows if each.place == place]
        for path, changed in _changes(Path(place), min(each.started for each in own)):
            hit = next((each for each in own if each.started <= changed <= (each.ended or changed)), None)
            data = read(path) if hit else None
            if hit and data is not None and not self._is_recorded(path, digest(data)):
                yield taint_file(path, data, None, TaintOrigin(hit.session, hit.started))

    def _find_wholes(self, place: str, windows: Sequence[CommandWindow]) -> Iterator[str]:
        """Yield dependency folders in which folders changed."""
        known = self._views.folders
        own = [(each.started, each.ended or time.time_ns()) for each in windows if each.place == place]
        for whole in _wholes(place):
            if name(whole) not in known and any(
                start <= os.lstat(folder).st_ctime_ns <= end
                for folder, _, _ in os.walk(whole)
                for start, end in own
            ):
                yield name(whole)

    def _is_recorded(self, path: Path, content: str) -> bool:
        root = self._folders.root(path)
        view = self._views.get(root) if root else TaintView("")
        known = (view.paths.get(name(path), ()), view.unchanged.get(name(path), ()), self._views.trusted)
        return any(content in each for each in known)


def _changes(place: Path, since: int) -> Iterator[tuple[Path, int]]:
    """Yield files that changed since a time, each with the time of its change."""
    if place.is_file():
        yield place, os.lstat(place).st_ctime_ns
        return
    todo = [os.fspath(place)]
    while todo:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name not in WHOLE_NAMES:
                            todo.append(entry.path)
                    elif (changed := entry.stat(follow_symlinks=False).st_ctime_ns) >= since:
                        yield Path(entry.path), changed
        except OSError:
            continue


def _wholes(place: str) -> Iterator[str]:
    """Yield the folders that count as a whole, except repositories."""
    for folder, names, files in os.walk(place):
        if folder != place and not MARKERS.isdisjoint(files):
            names.clear()
            yield folder
        found = [each for each in names if each in WHOLE_NAMES]
        names[:] = [each for each in names if each not in WHOLE_NAMES]
        yield from (os.path.join(folder, each) for each in found if each not in (".git", ".hg"))
