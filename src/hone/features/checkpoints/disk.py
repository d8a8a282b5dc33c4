"""Look at a path and restore it. No link is followed: neither the path itself nor a folder on the way.

A recorded path is real, so each folder on its way must still be a folder and not a link.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Self

from hone.core.messages import digest
from hone.features.checkpoints.values import UNREAD, PathKind, PathState
from hone.files.atomic import draft, open_file, sweep, sync, sync_folder

LARGEST = 64 * 2**20
"""The most bytes of a file to read and keep. The file tools write no larger ones."""
_ENTER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_KINDS = {stat.S_IFREG: PathKind.FILE, stat.S_IFLNK: PathKind.LINK, stat.S_IFDIR: PathKind.FOLDER}
_PIECE = 1 << 20
_NOWHERE = (FileNotFoundError, NotADirectoryError)


class Touched(OSError):
    """The path has changed since it was checked."""


def look(path: Path) -> PathState | None:
    """Return the state of a path. Raises OSError if it cannot be read."""
    try:
        with open_parent(path) as folder:
            return look_at(folder, path.name)
    except _NOWHERE:
        return None


def read(path: Path) -> tuple[PathState | None, bytes]:
    """Return the state of a path with its content, which is empty if it has none or is too large."""
    try:
        with open_parent(path) as folder:
            return read_at(folder, path.name)
    except _NOWHERE:
        return None, b""


def look_at(folder: int, name: str) -> PathState | None:
    """Return the state of a path in an open folder, with a digest that does not hold the content in
    memory."""
    found = _open_state(folder, name)
    if not isinstance(found, BufferedReader):
        return found
    with found:
        status = os.fstat(found.fileno())
        hashed = hashlib.sha256()
        while piece := found.read(_PIECE):
            hashed.update(piece)
    return PathState(PathKind.FILE, stat.S_IMODE(status.st_mode), hashed.hexdigest())


def read_at(folder: int, name: str) -> tuple[PathState | None, bytes]:
    found = _open_state(folder, name)
    if not isinstance(found, BufferedReader):
        is_link = found is not None and found.kind is PathKind.LINK
        return found, os.fsencode(os.readlink(name, dir_fd=folder)) if is_link else b""
    with found:
        status = os.fstat(found.fileno())
        data = found.read()
    return PathState(PathKind.FILE, stat.S_IMODE(status.st_mode), digest(data)), data


def _open_state(folder: int, name: str) -> PathState | BufferedReader | None:
    """Open a file to read; for anything else, return the state."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except _NOWHERE:
        return None
    kind, mode = _KINDS.get(stat.S_IFMT(status.st_mode), PathKind.OTHER), stat.S_IMODE(status.st_mode)
    if kind is PathKind.LINK:
        return PathState(kind, mode, digest(os.fsencode(os.readlink(name, dir_fd=folder))))
    if kind is PathKind.FILE and status.st_size <= LARGEST:
        return open_file(name, folder=folder)
    return PathState(kind, mode, "" if kind is PathKind.FOLDER else _unread(status))


def _unread(status: os.stat_result) -> str:
    seen = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return UNREAD + ":".join(map(str, seen))


def restore(path: Path, expected: PathState | None, target: PathState | None, content: bytes) -> None:
    """Replace `expected` with `target`; durable when this returns. Raises Touched if something else is there,
    and OSError; then nothing was changed."""
    with open_parent(path) as folder:
        if look_at(folder, path.name) != expected:
            raise Touched(errno.EBUSY, "it was changed this very moment")
        if needs_two_steps(expected, target):
            _remove(folder, path.name, expected)
            expected = None
        if target is None:
            _remove(folder, path.name, expected)
        elif target.kind is PathKind.FOLDER:
            _make_folder(folder, path.name, target.mode)
        elif target.kind is PathKind.LINK:
            os.symlink(content, os.fsencode(path.name), dir_fd=folder)
        else:
            _write(folder, path.name, expected, target.mode, content)
        sync_folder(folder)


def needs_two_steps(before: PathState | None, after: PathState | None) -> bool:
    """Tell whether the path is briefly missing during the replacement. Only a file can replace something in
    one step, and no folder."""
    if before is None or after is None:
        return False
    return PathKind.FOLDER in (before.kind, after.kind) or after.kind is PathKind.LINK


def _remove(folder: int, name: str, expected: PathState | None) -> None:
    if expected is None:
        return
    if expected.kind is PathKind.FOLDER:
        with _open_folder(folder, name) as inner:
            sweep(inner)
        os.rmdir(name, dir_fd=folder)
    else:
        os.unlink(name, dir_fd=folder)


def _make_folder(folder: int, name: str, mode: int) -> None:
    os.mkdir(name, mode, dir_fd=folder)
    with _open_folder(folder, name) as made:
        if stat.S_IMODE(os.fstat(made).st_mode) != mode:
            os.fchmod(made, mode)


@contextmanager
def _open_folder(folder: int, name: str) -> Iterator[int]:
    handle = os.open(name, _LIST, dir_fd=folder)
    try:
        yield handle
    finally:
        os.close(handle)


def _write(folder: int, name: str, expected: PathState | None, mode: int, content: bytes) -> None:
    with draft(folder) as (file, new):
        if expected is not None:
            _take_owner(file.fileno(), os.stat(name, dir_fd=folder, follow_symlinks=False))
        file.write(content)
        file.flush()
        os.fchmod(file.fileno(), mode)
        sync(file)
        if expected is None:
            os.link(new, name, src_dir_fd=folder, dst_dir_fd=folder)
        else:
            os.replace(new, name, src_dir_fd=folder, dst_dir_fd=folder)


def _take_owner(file: int, like: os.stat_result) -> None:
    with suppress(PermissionError):  # another user's file in a shared folder becomes ours
        os.fchown(file, like.st_uid, like.st_gid)


def sweep_beside(path: Path) -> None:
    """Remove a killed process's leftovers next to a path."""
    with suppress(OSError), open_parent(path) as folder:
        sweep(folder)


@contextmanager
def open_parent(path: Path) -> Iterator[int]:
    """Open the folder of a path. Raises OSError if a part of the way is missing or a link."""
    root = os.open("/", _ENTER)
    try:
        folder = _descend(root, path.parts[1:-1])
    finally:
        os.close(root)
    try:
        yield folder
    finally:
        os.close(folder)


def _descend(root: int, names: Sequence[str]) -> int:
    """Open a folder below another one, step by step, so that it can be listed."""
    here = os.dup(root)
    try:
        for name in names:
            below = os.open(name, _ENTER, dir_fd=here)
            os.close(here)
            here = below
        return os.open(".", _LIST, dir_fd=here)
    finally:
        os.close(here)


class FolderReader:
    """Opens files below a folder by relative path, given in order of their folders. Close it after use."""

    def __init__(self, root: Path) -> None:
        self._root = os.open(root, _ENTER)
        self._folder, self._handle = "", -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()
        os.close(self._root)

    def find(self, path: str) -> tuple[int, str]:
        """Return the descriptor of a path's folder, valid until the next call, and the name in it. Raises
        OSError."""
        folder, _, name = path.rpartition("/")
        if self._handle < 0 or folder != self._folder:
            self._leave()
            self._handle, self._folder = _descend(self._root, folder.split("/") if folder else ()), folder
        return self._handle, name

    def _leave(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
        self._handle = -1
