"""Tell whether the process that left a mark still runs: each one holds a lock for as long as it lives."""

import os
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from hone.files.locks import acquire, is_locked, release

FOLDER = "provenance"


class ProcessMark:
    """The mark of this process in a home. Where locks do not work, nobody else can read marks either."""

    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER
        self._handle = -1

    @cached_property
    def id(self) -> str:
        """Take the lock, and return its name."""
        made = os.urandom(8).hex()
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._handle = acquire(self._folder / made)
        return made

    def is_alive(self, id: str) -> bool:
        return id == vars(self).get("id") or is_locked(self._folder / id)

    def sweep(self, id: str) -> None:
        """Remove the mark of a process that has ended."""
        with suppress(OSError):
            (self._folder / id).unlink()

    def close(self) -> None:
        if self._handle >= 0:
            self.sweep(self.id)
            release(self._handle)
        self._handle = -1
