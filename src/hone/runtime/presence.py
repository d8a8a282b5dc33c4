"""Tell other processes on this home that a turn of the user's is under way: by a lock that ends with it."""

import os
from contextlib import suppress
from pathlib import Path

from hone.files.locks import acquire, is_locked, release
from hone.runtime.claims import FOLDER


class Presence:
    """One file a process. A home that cannot be written tells nobody, and hears of nobody."""

    def __init__(self, home: Path, process: int | None = None) -> None:
        self._folder = home / FOLDER
        self._path = self._folder / f"turn-{process or os.getpid()}.lock"
        self._handle: int | None = None

    def enter(self) -> None:
        if self._handle is None:
            with suppress(OSError):
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._handle = acquire(self._path, wait=False)

    def leave(self) -> None:
        if self._handle is not None:
            with suppress(OSError):  # a file that stays is locked by nobody
                self._path.unlink()
            release(self._handle)
            self._handle = None

    def is_elsewhere(self) -> bool:
        """Tell whether the user's turn is on in another process."""
        with suppress(OSError):
            return any(is_locked(path) for path in self._folder.glob("turn-*.lock") if path != self._path)
        return False
