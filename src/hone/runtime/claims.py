"""Hold kernel locks for the worker of a home and for running turns. Each lock ends with its process; none
times out."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hone.files.atomic import hold_file, make_folder
from hone.files.locks import FOLDER, acquire, is_locked, release

WORKER = "worker.pid"
"""The file that names the worker's process."""


@contextmanager
def hold_worker(home: Path) -> Iterator[bool]:
    """Become the worker of this home. Yield False if there is one."""
    with hold_file(home / FOLDER / WORKER) as handle:
        if handle is not None:
            os.truncate(handle, 0)
            os.write(handle, f"{os.getpid()}\n".encode())
        yield handle is not None


def find_worker(home: Path) -> int | None:
    """Return the process that is this home's worker; None if there is none."""
    path = home / FOLDER / WORKER
    with suppress(OSError, ValueError):
        return int(path.read_text("ascii")) if is_locked(path) else None
    return None


def stop_worker(home: Path) -> int | None:
    """Ask the worker to end in order, and return its process; None if there is none. The lock is checked
    again once there is a handle on the process."""
    found = find_worker(home)
    if found is None:
        return None
    with suppress(OSError), _hold_process(found) as send:
        if find_worker(home) == found:
            send(signal.SIGTERM)
            return found
    return None


@contextmanager
def _hold_process(number: int) -> Iterator[Callable[[int], None]]:
    """Yield a function that signals a process. On Linux it never reaches another process that got the same
    number."""
    if not hasattr(os, "pidfd_open"):
        yield lambda kind: os.kill(number, kind)
        return
    handle = os.pidfd_open(number)
    try:
        yield lambda kind: signal.pidfd_send_signal(handle, kind)
    finally:
        os.close(handle)


class Presence:
    """Tells other processes on this home that a turn of the user's is running, with one file per process. On
    a read-only home it tells nobody, and hears nothing."""

    def __init__(self, home: Path, process: int | None = None) -> None:
        self._folder = home / FOLDER
        self._path = self._folder / f"turn-{process or os.getpid()}.lock"
        self._handle: int | None = None

    def enter(self) -> None:
        if self._handle is None:
            with suppress(OSError):
                make_folder(self._folder)
                self._handle = acquire(self._path, wait=False)

    def leave(self) -> None:
        if self._handle is not None:
            with suppress(OSError):  # nobody holds a lock on a leftover file
                self._path.unlink()
            release(self._handle)
            self._handle = None

    def is_elsewhere(self) -> bool:
        """Tell whether another process runs a turn of the user's."""
        with suppress(OSError):
            return any(is_locked(path) for path in self._folder.glob("turn-*.lock") if path != self._path)
        return False
