"""Compare what commands print with files that are foreign as a whole: tainted dependencies, and folders
inside the working folder that are not trusted.

They are too large for fingerprints. Instead the kernel tells which of their files a command has opened, and
only those are compared.
"""

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock

from hone.core.fingerprints import Fingerprints, Span, fingerprint, lines
from hone.files.reading import OpenWatch
from hone.files.watching import WHOLE_NAMES
from hone.runtime.provenance.recording import decode, read
from hone.runtime.provenance.records import Reach
from hone.runtime.provenance.view import TaintViews, name
from hone.runtime.trust import Folders

CLOSE = 2**20
"""Bytes that are compared word by word. Where more was opened, lines are compared as a whole."""
FILES, BYTES = 6_000, 96 * 2**20
"""Files and bytes that are compared at most. Where more was opened, the output is foreign."""
BINARY = (
    *(".a", ".bin", ".dll", ".dylib", ".exe", ".gz", ".jar", ".jpg", ".node", ".o", ".png", ".pyc", ".pyd"),
    *(".so", ".wasm", ".whl", ".woff", ".woff2", ".zip"),
)


@dataclass
class Area:
    """What is foreign inside one working folder, and what of it was opened."""

    places: frozenset[str]
    watch: OpenWatch | None = None
    opened: set[str] = field(default_factory=set)
    missing: bool = False
    users: int = 0


class TooMuch(Exception):
    """More was opened than can be compared."""


class Areas:
    """Raises TooMuch where the comparison would take too long."""

    def __init__(self, folders: Folders, views: TaintViews) -> None:
        self._folders = folders
        self._views = views
        self._areas: dict[Path, Area] = {}
        self._nested: dict[tuple[Path, str], frozenset[str]] = {}
        self._lock = RLock()

    def begin(self, folder: Path, session: str, reach: Reach) -> bool:
        """Called before a command runs. Tell whether there is anything foreign that it can read."""
        with self._lock:
            places = self._places(folder, session, reach) if self._folders.trusts(folder) else frozenset()
            area = self._areas.get(folder)
            if area is None or area.places != places:
                area = self._areas[folder] = _watch(places)
            if places and not area.users:
                _drain(area)
                area.opened.clear()
                area.missing = area.watch is None
            area.users += 1
            return bool(places)

    def end(self, folder: Path) -> None:
        with self._lock:
            if area := self._areas.get(folder):
                area.users = max(0, area.users - 1)

    def find(self, folder: Path, text: str) -> dict[Span, int]:
        """Return what a text has in common with the foreign files that commands have opened."""
        with self._lock:
            area = self._areas.get(folder)
            if area is None or not area.places:
                return {}
            _drain(area)
            opened = _all_files(area.places) if area.missing else area.opened
            return _common(text, [path for path in opened if _is_in(path, area.places)])

    def close(self) -> None:
        with self._lock:
            for area in self._areas.values():
                if area.watch:
                    area.watch.close()
            self._areas.clear()

    def _places(self, folder: Path, session: str, reach: Reach) -> frozenset[str]:
        """Nested folders without an answer are looked for once per conversation."""
        if (folder, session) not in self._nested:
            self._nested = {(folder, session): frozenset(_untrusted(folder, self._folders))}
        root = self._folders.root(folder)
        within = (f"{name(folder)}/", *(name(each) for each in reach.write))
        partial = self._views.get(root).partial if root else set()
        tainted = {each for each in (*self._views.folders, *partial) if each.startswith(within)}
        outside = {name(each) for each in reach.read if not self._folders.trusts(each)}
        return self._nested[folder, session] | tainted | outside


def _watch(places: frozenset[str]) -> Area:
    """Watch the folders, and those of single files."""
    if not places:
        return Area(places)
    folders = frozenset(each if os.path.isdir(each) else os.path.dirname(each) for each in places)
    try:
        return Area(places, OpenWatch(folders))
    except OSError:
        return Area(places, missing=True)


def _drain(area: Area) -> None:
    if area.watch:
        opened, missing = area.watch.drain()
        area.opened |= opened
        area.missing = area.missing or missing


def _is_in(path: str, places: frozenset[str]) -> bool:
    return path in places or any(path.startswith(f"{each}/") for each in places)


def _untrusted(folder: Path, folders: Folders) -> Iterable[str]:
    """Yield the folders inside a trusted one that have their own answer, or none."""
    todo = [folder]
    while todo:
        here = todo.pop()
        if here != folder and not folders.trusts(here):
            yield name(here)
            continue
        try:
            with os.scandir(here) as entries:
                todo += [
                    Path(each.path)
                    for each in entries
                    if each.name not in WHOLE_NAMES and each.is_dir(follow_symlinks=False)
                ]
        except OSError:
            continue


def _all_files(places: frozenset[str]) -> list[str]:
    found: list[str] = []
    for place in places:
        if not os.path.isdir(place):
            found.append(place)
        for folder, _, names in os.walk(place):
            found += [os.path.join(folder, each) for each in names]
            if len(found) > FILES:
                raise TooMuch
    return found


def _common(text: str, paths: Iterable[str]) -> dict[Span, int]:
    contents = [data for path in paths if (data := _content(path))]
    size = sum(map(len, contents))
    if len(contents) > FILES or size > BYTES:
        raise TooMuch
    now = time.time_ns()
    if size <= CLOSE:
        known = Fingerprints()
        for data in contents:
            known.add(fingerprint(decode(data)), now)
        return known.find(text)
    wanted = lines(text)
    return {
        (line,): now
        for data in contents
        for line in wanted.intersection(each.strip() for each in decode(data).split("\n"))
    }


def _content(path: str) -> bytes:
    return b"" if path.endswith(BINARY) else read(Path(path)) or b""
