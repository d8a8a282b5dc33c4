"""Compare command output with folders that are foreign as a whole: tainted dependencies, and untrusted
folders inside the working folder.

They are too large for fingerprints. Instead the kernel tells which of their files a command has opened, and
only those are compared.
"""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock

from hone.core.fingerprints import Fingerprints, Span, fingerprint, lines
from hone.files.reading import OpenWatch
from hone.files.watching import WHOLE_NAMES
from hone.runtime.provenance.recording import decode, is_opaque, read
from hone.runtime.provenance.records import Reach
from hone.runtime.provenance.view import TaintViews, name
from hone.runtime.trust import Folders

HEAD = 512
"""The bytes of a file that tell whether it is a program."""
MOST = 64
"""The most conversations for which nested folders are remembered."""
SHORTEST = 12
"""The fewest characters of a line that is compared as a whole."""
CLOSE = 2**20
"""The most bytes to compare word by word. If more was opened, whole lines are compared."""
FILES, BYTES = 6_000, 48 * 2**20
"""The most files and bytes to compare. If more was opened, the output is foreign."""
PROGRAMS = (
    *(".a", ".dll", ".dylib", ".exe", ".node", ".o", ".pyc", ".pyd", ".so", ".wasm"),
    *(".gif", ".ico", ".jpeg", ".jpg", ".map", ".png", ".ttf", ".webp", ".woff", ".woff2"),
)
"""Files to run or display. No program extracts text from them."""


@dataclass
class Area:
    """The foreign places inside one working folder, and which of their files were opened."""

    places: frozenset[str]
    watch: OpenWatch | None = None
    opened: set[str] = field(default_factory=set)
    missing: bool = False
    users: int = 0


class Incomparable(Exception):
    """More was opened than can be compared, or a file that text may be extracted from."""


class Areas:
    """The foreign areas of each working folder. Raises Incomparable if a comparison is impossible."""

    def __init__(self, folders: Folders, views: TaintViews) -> None:
        self._folders = folders
        self._views = views
        self._areas: dict[Path, Area] = {}
        self._nested: dict[tuple[Path, str], frozenset[str]] = {}
        self._lock = RLock()

    def begin(self, folder: Path, session: str, reach: Reach) -> bool:
        """Prepare for a command. Tell whether it can read anything foreign."""
        with self._lock:
            places = self._places(folder, session, reach) if self._folders.trusts(folder) else frozenset()
            area = self._areas.get(folder)
            if area is None or area.places != places:
                area = self._areas[folder] = _renew(area, places)
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
        """Return what a text shares with the foreign files that commands have opened."""
        with self._lock:
            area = self._areas.get(folder)
            if area is None or not area.places:
                return {}
            if area.users:  # after that, only Hone itself opens files
                _drain(area)
            return _common(text, _contents(area))

    def find_copies(self, folder: Path, texts: Mapping[Path, str]) -> set[Path]:
        """Return which of the texts contain lines of the foreign files that commands have opened."""
        with self._lock:
            area = self._areas.get(folder)
            if area is None or not area.places:
                return set()
            _drain(area)
            known = {line for data in _contents(area) for line in _long_lines(decode(data))}
        shared = {path: known.intersection(_long_lines(text)) for path, text in texts.items()}
        return {path for path, lines in shared.items() if any(map(fingerprint, lines))}

    def close(self) -> None:
        with self._lock:
            for area in self._areas.values():
                if area.watch:
                    area.watch.close()
            self._areas.clear()

    def find_untrusted(self, folder: Path, session: str, reach: Reach) -> frozenset[str]:
        """Return the untrusted folders inside a folder, and those that commands can read elsewhere. The
        search inside runs once per conversation."""
        with self._lock:
            if (folder, session) not in self._nested:
                found = self._folders.find_untrusted(folder, WHOLE_NAMES)
                if len(self._nested) > MOST:
                    self._nested.clear()
                self._nested[folder, session] = frozenset(map(name, found))
            outside = {name(each) for each in reach.read if not self._folders.trusts(each)}
            return self._nested[folder, session] | outside

    def find_common(self, folder: Path, reach: Reach, text: str) -> dict[Span, int]:
        """Return what a text shares with tainted folders, opened by a command or not."""
        within = (f"{name(folder)}/", *(name(each) for each in reach.write))
        places = frozenset(each for each in self._views.folders if each.startswith(within))
        return _common(text, [_content(path) for path in _all_files(places)]) if places else {}

    def _places(self, folder: Path, session: str, reach: Reach) -> frozenset[str]:
        root = self._folders.root(folder)
        within = (f"{name(folder)}/", *(name(each) for each in reach.write))
        partial = self._views.get(root).partial if root else set()
        tainted = {each for each in (*self._views.folders, *partial) if each.startswith(within)}
        return self.find_untrusted(folder, session, reach) | tainted


def _renew(old: Area | None, places: frozenset[str]) -> Area:
    """Watch the folders, and the folders of single files."""
    if old and old.watch:
        old.watch.close()
    users = old.users if old else 0
    if not places:
        return Area(places, users=users)
    folders = [each for each in places if os.path.isdir(each)]
    alone = {os.path.dirname(each) for each in places if os.path.isfile(each)}
    try:
        return Area(places, OpenWatch(folders, alone), users=users)
    except OSError:
        return Area(places, missing=True, users=users)


def _drain(area: Area) -> None:
    if area.watch:
        opened, missing = area.watch.drain()
        area.opened |= opened
        area.missing = area.missing or missing


def _is_in(path: str, places: frozenset[str]) -> bool:
    return path in places or any(path.startswith(f"{each}/") for each in places)


def _all_files(places: frozenset[str]) -> list[str]:
    found: list[str] = []
    for place in places:
        if not os.path.isdir(place):
            found.append(place)
        for folder, _, names in os.walk(place):
            found += [os.path.join(folder, each) for each in names]
            if len(found) > FILES:
                raise Incomparable
    return found


def _contents(area: Area) -> list[bytes]:
    """Return the content of the foreign files that were opened, or of all of them if that is unknown."""
    if area.missing:
        return [_content(path) for path in _all_files(area.places)]
    found = [_content(path) for path in area.opened if _is_in(path, area.places)]
    if any(map(is_opaque, found)) or len(found) > FILES or sum(map(len, found)) > BYTES:
        raise Incomparable
    return found


def _long_lines(text: str) -> set[str]:
    return {line.strip() for line in text.split("\n") if len(line) >= SHORTEST}


def _common(text: str, contents: Sequence[bytes]) -> dict[Span, int]:
    now = time.time_ns()
    if sum(map(len, contents)) <= CLOSE:
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
    """Return the content of a file; nothing for a program."""
    if path.endswith(PROGRAMS) and is_opaque(read(Path(path), HEAD) or b""):
        return b""
    return read(Path(path)) or b""
