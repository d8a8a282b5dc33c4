"""One worker a home, by a lock that ends with its process. The file says which process that is."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hone.core.errors import StoreError
from hone.files.locks import acquire, is_locked, release
from hone.runtime.claims import FOLDER

FILE = "worker.pid"


@contextmanager
def hold(home: Path) -> Iterator[bool]:
    """Be the worker of this home. False if there is one."""
    path = _path(home)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle: int | None = acquire(path, wait=False)
    except BlockingIOError:
        handle = None
    except OSError as error:
        raise StoreError(f"{path} cannot be used: {error.strerror}.") from error
    if handle is None:
        yield False
        return
    os.truncate(handle, 0)
    os.write(handle, f"{os.getpid()}\n".encode())
    try:
        yield True
    finally:
        with suppress(OSError):  # a file that stays excludes nobody
            path.unlink()
        release(handle)


def find_worker(home: Path) -> int | None:
    """Return the process that is the worker of this home; None if there is none."""
    path = _path(home)
    with suppress(OSError, ValueError):
        return int(path.read_text("ascii")) if is_locked(path) else None
    return None


def stop_worker(home: Path) -> int | None:
    """Tell the worker to end in order, and return its process; None if there is none. The handle is opened
    before the lock is looked at once more: a number that was given to another process is not signaled."""
    found = find_worker(home)
    if found is None:
        return None
    try:
        process = os.pidfd_open(found)
    except OSError:
        return None
    try:
        if find_worker(home) != found:
            return None
        signal.pidfd_send_signal(process, signal.SIGTERM)
        return found
    except OSError:
        return None
    finally:
        os.close(process)


def _path(home: Path) -> Path:
    return home / FOLDER / FILE
