"""Move files out of a folder, copy them, and put them back, through descriptors.

No link is followed: a command that still runs may swap folders for links at any time.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from hone.files.atomic import FOLDER, create_file, open_file

LARGEST, MOST = 4 * 2**20, 500
"""The most bytes and files of a copy of one place."""


class Kept(Struct, frozen=True):
    """A copy of a file, a link or a folder; `data` is a file's content or a link's target."""

    mode: int
    data: bytes = b""


Copy = dict[str, Kept]
"""By path relative to the place, which is ""."""


@contextmanager
def opened(root: str, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the descriptor of a path's folder, and the name in it. Raises OSError."""
    *above, name = path.split("/")
    here = os.open(root, FOLDER | os.O_NOFOLLOW)
    try:
        for each in above:
            if make and not _exists(each, here):
                os.mkdir(each, 0o700, dir_fd=here)
            below = os.open(each, FOLDER | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = below
        yield here, name
    finally:
        os.close(here)


def read(root: str, path: str, limit: int = LARGEST) -> bytes | None:
    """Return the content of a regular file; None if there is none, or it is too long."""
    try:
        with opened(root, path) as (folder, name):
            return _read(name, folder, limit)
    except OSError:
        return None


def names_in(root: str, path: str) -> list[str]:
    """Return the names in a folder; none if it is not a folder."""
    try:
        with opened(root, path) as (folder, name):
            here = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            try:
                return os.listdir(here)
            finally:
                os.close(here)
    except OSError:
        return []


def write_new(root: str, path: str, kept: Kept) -> None:
    """Raise OSError if something is there."""
    with opened(root, path, make=True) as (folder, name):
        if stat.S_ISLNK(kept.mode):
            os.symlink(kept.data, name, dir_fd=folder)
        elif stat.S_ISDIR(kept.mode):
            os.mkdir(name, stat.S_IMODE(kept.mode), dir_fd=folder)
        else:
            with open(create_file(name, folder=folder), "wb") as file:
                file.write(kept.data)
                os.fchmod(file.fileno(), stat.S_IMODE(kept.mode) & 0o777)


def copy(root: str, path: str) -> Copy | None:
    """Return a copy; None if it is too large to keep."""
    found: Copy = {}
    left = [LARGEST]
    try:
        with opened(root, path) as (folder, name):
            whole = _copy(name, folder, "", found, left)
    except OSError:
        return {}
    return found if whole else None


def take_out(root: str, path: str, target: Path) -> None:
    """Move whatever is there to the target, which must not exist yet. Raises OSError."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with opened(root, path) as (folder, name):
        there = os.open(target.parent, FOLDER)
        try:
            _move(name, folder, target.name, there)
        finally:
            os.close(there)


def _move(name: str, folder: int, new: str, there: int) -> None:
    try:
        os.rename(name, new, src_dir_fd=folder, dst_dir_fd=there)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _carry(name, folder, new, there)


def _carry(name: str, folder: int, new: str, there: int) -> None:
    """Move to another file system. Anything but a file, folder or link is removed: it has no content."""
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if stat.S_ISDIR(mode):
        os.mkdir(new, 0o700, dir_fd=there)
        source = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=folder)
        target = os.open(new, FOLDER | os.O_NOFOLLOW, dir_fd=there)
        try:
            for each in os.listdir(source):
                _carry(each, source, each, target)
        finally:
            os.close(source)
            os.close(target)
        os.rmdir(name, dir_fd=folder)
        return
    if stat.S_ISLNK(mode):
        os.symlink(os.readlink(name, dir_fd=folder), new, dir_fd=there)
    elif stat.S_ISREG(mode):
        _pour(name, folder, new, there)
    os.unlink(name, dir_fd=folder)


def _pour(name: str, folder: int, new: str, there: int) -> None:
    with open_file(name, folder=folder) as source, open(create_file(new, folder=there), "wb") as target:
        while data := source.read(2**20):
            target.write(data)


def _copy(name: str, folder: int, path: str, found: Copy, left: list[int]) -> bool:
    """Copy a place. Return False if it is too large."""
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if len(found) >= MOST:
        return False
    if stat.S_ISLNK(mode):
        found[path] = Kept(mode, os.fsencode(os.readlink(name, dir_fd=folder)))
    elif stat.S_ISREG(mode):
        data = _read(name, folder, left[0])
        if data is None:
            return False
        left[0] -= len(data)
        found[path] = Kept(mode, data)
    elif stat.S_ISDIR(mode):
        found[path] = Kept(mode)
        here = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=folder)
        try:
            names = sorted(os.listdir(here))
            return all(_copy(each, here, f"{path}/{each}" if path else each, found, left) for each in names)
        finally:
            os.close(here)
    return True


def _read(name: str, folder: int, limit: int) -> bytes | None:
    with open_file(name, folder=folder) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return None
        data = file.read(limit + 1)
    return data if len(data) <= limit else None


def _exists(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
