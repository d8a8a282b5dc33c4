"""Locks on files, between threads and processes. The kernel releases a lock when its process ends.

Waiting for a lock blocks the thread. Asynchronous code must wait in a separate thread.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

FOLDER = "locks"
"""The folder of a home with separate lock files."""
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def acquire(path: Path, *, wait: bool = True) -> int:
    """Lock the file at `path`, which is created if necessary, and return its descriptor for `release`. Raises
    OSError, which is BlockingIOError if another holder has the lock and `wait` is False."""
    while True:
        handle = os.open(path, _FLAGS, 0o600)
        try:
            lock(handle, wait=wait)
            if _is_at(path, handle):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # its last holder has removed the file, and the next one would lock another


def release(handle: int) -> None:
    with suppress(OSError):  # closing the descriptor then releases it
        fcntl.flock(handle, fcntl.LOCK_UN)  # a child that was forked in the meantime has that, too
    os.close(handle)


def lock(handle: int, *, wait: bool = True) -> None:
    """Lock an open file until it is closed. Raises as `acquire` does."""
    fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_locked(path: Path) -> bool:
    """Tell whether some process holds the lock. A killed process's file is not locked."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
    return False


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(handle))
    except FileNotFoundError:
        return False
