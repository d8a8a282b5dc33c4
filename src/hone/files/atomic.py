"""A file that takes another one's place as a whole. What a killed process left of one goes with the next."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter
from pathlib import Path

MARKS = (".hone-", ".tmp")


@contextmanager
def draft(folder: Path, mode: int) -> Iterator[tuple[BufferedWriter, Path]]:
    """A new file, gone at the end unless it was moved away. It is locked as long as somebody writes it: one
    that is not belongs to nobody any more. Raises OSError."""
    sweep(folder)
    handle, path = _begin(folder, mode)
    with open(handle, "wb") as file:
        try:
            yield file, path
        finally:
            with suppress(OSError):  # moved away; or it stays, and goes with the next one
                path.unlink()


def _begin(folder: Path, mode: int) -> tuple[int, Path]:
    while True:
        path = folder / os.urandom(8).hex().join(MARKS)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with suppress(OSError):  # there are file systems without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        if not _is_swept(handle):
            return handle, path
        os.close(handle)  # somebody swept it away before it was locked


def _is_swept(handle: int) -> bool:
    try:
        return os.fstat(handle).st_nlink == 0
    except OSError:
        return False


def sweep(folder: Path) -> None:
    """Removes the drafts that nobody writes."""
    with suppress(OSError):  # a folder one may write to and not read
        for name in os.listdir(folder):
            if name.startswith(MARKS[0]) and name.endswith(MARKS[1]):
                _remove(folder / name)


def _remove(path: Path) -> None:
    with suppress(OSError):  # somebody else's, or locked, or gone by now
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
        finally:
            os.close(file)
