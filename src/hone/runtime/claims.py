"""Who works on what: a kernel lock that goes with the process that holds it, not a time that can expire."""

import fcntl
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hone.core.errors import StoreError

FOLDER = "locks"


@contextmanager
def claim(home: Path, name: str) -> Iterator[bool]:
    """False if somebody else has it, in this process or another. The file goes with the claim."""
    path = home / FOLDER / f"{name}.lock"
    try:
        handle = _locked(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be used: {error.strerror}.") from error
    if handle is None:
        yield False
        return
    try:
        yield True
    finally:
        with suppress(OSError):  # a file that stays excludes nobody
            path.unlink()
        os.close(handle)


def sweep(home: Path, wanted: Collection[str]) -> None:
    """Takes away the files that killed processes left, but for those that somebody may be about to claim."""
    with suppress(OSError, StoreError):  # a file that stays excludes nobody
        for path in (home / FOLDER).glob("*.lock"):
            if path.stem not in wanted:
                with claim(home, path.stem):
                    continue


def _locked(path: Path) -> int | None:
    """A file that its last holder has taken away meanwhile excludes nobody any more: then again."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(handle).st_nlink:
                return handle
        except BlockingIOError:
            os.close(handle)
            return None
        except OSError:
            os.close(handle)
            raise
        os.close(handle)
