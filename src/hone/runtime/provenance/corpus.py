"""Search older files for a line: what stands in an older file did not come from elsewhere.

Programs repeat themselves. Without this, `from pathlib import Path` in a file that was written after reading
a web page would make every other file with that line foreign.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from hone.core.fingerprints import Span
from hone.core.messages import digest
from hone.files.atomic import open_file
from hone.files.watching import MARKERS, WHOLE_NAMES
from hone.runtime.provenance.view import name
from hone.runtime.trust import is_own_repository

FILES, BYTES, LARGEST = 8_000, 64 * 2**20, 2**19
"""The most files and bytes to search, and the most bytes of a file."""


def find_unexplained(
    spans: Mapping[Span, int], root: Path, trusted: Mapping[str, str], is_foreign: Callable[[Path], bool]
) -> set[Span]:
    """Return the spans that no older file below the root explains. A file explains a span if it contains it
    and has not changed since the span's time, or if its content is trusted. Files in foreign areas do not
    count."""
    left = {span: [piece.encode("utf-8", "replace") for piece in span] for span in spans}
    paths = frozenset(trusted.values())
    latest = max(spans.values(), default=0)
    for path, status in _files(root, is_foreign):
        known = name(path) in paths
        if not known and status.st_ctime_ns >= latest:
            continue
        data = _read(path)
        changed = 0 if known and digest(data) in trusted else status.st_ctime_ns
        for span in [span for span in left if changed < spans[span]]:
            if all(piece in data for piece in left[span]):
                del left[span]
        if not left:
            break
    return {*left}


def _files(root: Path, is_foreign: Callable[[Path], bool]) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield text files, upper folders first."""
    todo, files, size = [root], 0, 0
    for folder in todo:
        if is_foreign(folder) or (folder != root and is_own_repository(folder)):
            continue
        entries = _entries(folder)
        if folder != root and any(entry.name in MARKERS for entry in entries):
            continue
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in WHOLE_NAMES:
                        todo.append(Path(entry.path))
                    continue
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if entry.is_file(follow_symlinks=False) and 0 < status.st_size <= LARGEST:
                files, size = files + 1, size + status.st_size
                if files > FILES or size > BYTES:
                    return
                yield Path(entry.path), status


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []


def _read(path: Path) -> bytes:
    try:
        with open_file(path) as file:
            return file.read(LARGEST)
    except OSError:
        return b""
