"""Label files, names and output: foreign if they hold text from elsewhere, wherever it is now."""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from hone.core.errors import HoneError
from hone.core.fingerprints import Span
from hone.core.messages import digest
from hone.core.trust import Trust
from hone.runtime.provenance.areas import Areas, Incomparable
from hone.runtime.provenance.corpus import find_unexplained
from hone.runtime.provenance.recording import LARGEST, decode, is_prose, is_trivial
from hone.runtime.provenance.records import FindReach, Records
from hone.runtime.provenance.sweep import Sweeper
from hone.runtime.provenance.view import TaintView, name

_FAULTS = (HoneError, OSError, ValueError, LookupError, MemoryError, RecursionError, Incomparable)


TOGETHER = 16
"""Lines to search for in older files at a time, longest first: one that is nowhere is enough."""


class ProvenanceLabels:
    """Whatever is unknown is foreign. It blocks while it reads, so call it in a thread."""

    def __init__(self, records: Records, areas: Areas, reach: FindReach) -> None:
        self._folders = records.folders
        self._views = records.views
        self._commits = records.commits
        self._sweeper = Sweeper(records.store, records.views, records.folders)
        self._areas = areas
        self._reach = reach

    def of_file(self, path: Path, data: bytes) -> Trust:
        return self._label(path, lambda: self._is_foreign_file(path, data))

    def of_folder(self, path: Path) -> Trust:
        return self._label(path, lambda: self._is_foreign_folder(path))

    def of_output(self, folder: Path, text: str) -> Trust:
        return self._label(folder, lambda: self._is_foreign_output(folder, text))

    def _label(self, path: Path, is_foreign: Callable[[], bool]) -> Trust:
        """Label a path. If it is foreign, check whether the owner has committed it since."""
        try:
            foreign = is_foreign() and not (self._commits.settle(path) and not is_foreign())
        except _FAULTS:
            foreign = True
        return Trust.FOREIGN if foreign else Trust.LOCAL

    def _is_foreign_folder(self, path: Path) -> bool:
        root = self._folders.root(path)
        return root is None or self._views.is_tainted_folder(path) or self._has_prose(path, root)

    def _is_foreign_file(self, path: Path, data: bytes) -> bool:
        root = self._folders.root(path)
        if root is None:
            return True
        view = self._views.get(root)
        windows = self._views.windows(path)
        inside = self._views.is_tainted_folder(path)
        if view.is_empty and not windows and not inside:
            return False
        content = digest(data)
        if content in self._views.trusted:
            return False
        if inside:
            return True
        changed = _changed(path)
        in_window = any(each.started <= changed <= (each.ended or changed) for each in windows)
        if in_window and content not in view.unchanged.get(name(path), ()):
            return True
        if content in view.paths.get(name(path), ()):
            return True
        if not is_trivial(data) and content in view.digests:
            return True
        if changed < view.earliest <= time.time_ns():
            return False
        if len(data) > LARGEST:
            return True
        spans = view.fingerprints.find(decode(data)).items()
        return self._is_tainted(view, root, {span: since for span, since in spans if since <= changed})

    def _is_foreign_output(self, folder: Path, text: str) -> bool:
        root = self._folders.root(folder)
        if root is None or self._views.is_tainted_folder(folder):
            return True
        reach = self._reach(folder)
        around = {found for each in (*reach.read, *reach.write) if (found := self._folders.root(each))}
        for each in {root, *around}:
            self._sweeper.sweep(folder if each == root else each)
            view = self._views.get(each)
            spans = view.fingerprints.find(text)
            if each == root:
                spans = self._areas.find(folder, text) | spans
            if view.is_full or self._is_tainted(view, each, spans):
                return True
        return False

    def _is_tainted(self, view: TaintView, root: Path, spans: Mapping[Span, int]) -> bool:
        """Tell whether one of the spans came from elsewhere and is in no older file."""
        if not view.unexplained.isdisjoint(spans):
            return True
        left = sorted(spans.keys() - view.explained, key=lambda span: -sum(map(len, span)))
        for start in range(0, len(left), TOGETHER):
            some = {span: spans[span] for span in left[start : start + TOGETHER]}
            unexplained = find_unexplained(some, root, self._views.trusted, self._views.is_tainted_folder)
            view.explained.update(some.keys() - unexplained)
            view.unexplained.update(unexplained)
            if unexplained:
                return True
        return False

    def _has_prose(self, folder: Path, root: Path) -> bool:
        """Tell whether a tainted file in a folder or below has a whole sentence as its name."""
        start = f"{name(folder)}/"
        return any(
            path.startswith(start) and is_prose(path.rpartition("/")[2])
            for path in self._views.get(root).paths
        )


def _changed(path: Path) -> int:
    """Return when anything about a file last changed."""
    return os.lstat(path).st_ctime_ns
