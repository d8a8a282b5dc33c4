"""A temporary folder for runs. One that a killed process left is removed by the next run."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISDIR

from hone.files.locks import acquire, release
from hone.sandbox.caches import cleared

MARK, LOCK = "hone-why-", ".lock"
YOUNG = 60.0
"""Seconds during which a new folder may not have its lock yet."""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a folder that only this user can enter, and remove it in the end."""
    base = Path(tempfile.gettempdir()).resolve()
    root = Path(tempfile.mkdtemp(prefix=MARK, dir=base))
    handle = acquire(root / LOCK)
    now = root.stat().st_mtime
    for left in base.glob(f"{MARK}*"):
        with suppress(OSError):
            _clear_left(left, now)
    try:
        yield root
    finally:
        release(handle)
        cleared(root)


def _clear_left(folder: Path, now: float) -> None:
    """Raise BlockingIOError if its process is still there."""
    found = folder.lstat()
    is_mine = S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    if not is_mine or now - found.st_mtime < YOUNG:
        return
    handle = acquire(folder / LOCK, wait=False)
    try:
        cleared(folder)
    finally:
        release(handle)
