"""Claim work with a kernel lock. The lock ends with the process that holds it; it never times out."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hone.core.errors import StoreError
from hone.files.locks import acquire, is_locked, release

FOLDER = "locks"


@contextmanager
def claim(home: Path, name: str) -> Iterator[bool]:
    """False if somebody else has it, in this process or another. The file goes with the claim."""
    path = _path(home, name)
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
    try:
        yield True
    finally:
        with suppress(OSError):  # a file that stays excludes nobody
            path.unlink()
        release(handle)


def is_claimed(home: Path, name: str) -> bool:
    return is_locked(_path(home, name))


def sweep(home: Path, wanted: Collection[str]) -> None:
    """Takes away the files that killed processes left, but for those that somebody may be about to claim."""
    with suppress(OSError, StoreError):  # a file that stays excludes nobody
        for path in (home / FOLDER).glob("*.lock"):
            if path.stem not in wanted:
                with claim(home, path.stem):
                    continue


def _path(home: Path, name: str) -> Path:
    return home / FOLDER / f"{name}.lock"
