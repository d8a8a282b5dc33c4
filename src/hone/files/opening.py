"""Resolve a path once, and use the result. Nothing is looked up by name a second time.

A place is the descriptor of a folder and a name in it. Its path is real: each folder on the way was opened by
its name in the folder above it, and our code resolved each link. So the path that is checked, labeled and
shown is the path that is read and written, whatever is swapped in the meantime.
"""

import errno
import os
import stat
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from msgspec import Struct

from hone.core.loading import import_object
from hone.core.visible import path_to_text
from hone.files.atomic import draft, open_file, sync, sync_folder

_LINKS = 40
"""The most links to resolve on one way, as in the kernel."""
_ENTER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPENAT2 = 437
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08


class Place(Struct):
    """A name in an open folder. `missing` are the folders between the two that do not exist yet."""

    path: Path
    folder: int
    name: str
    missing: tuple[str, ...] = ()
    status: os.stat_result | None = None

    @property
    def exists(self) -> bool:
        return self.status is not None

    @property
    def is_folder(self) -> bool:
        return self.status is not None and stat.S_ISDIR(self.status.st_mode)

    @property
    def is_file(self) -> bool:
        return self.status is not None and stat.S_ISREG(self.status.st_mode)

    @property
    def size(self) -> int:
        return self.status.st_size if self.status else 0

    def read(self, limit: int) -> bytes:
        """Return the content of a regular file. Raises OSError."""
        if self.status is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self.path))
        insist(self.status)  # merely opening a device can have an effect
        with open_file(self.name, folder=self.folder) as file:
            status = os.fstat(file.fileno())
            insist(status)
            if status.st_size > limit:
                raise OSError(
                    errno.EFBIG, f"it has {status.st_size:,} bytes, and at most {limit:,} are allowed"
                )
            self.status = status
            return file.read()

    def write(self, data: bytes) -> None:
        """Replace the whole file or nothing; keep its mode and owner. Raises OSError, also if the file was
        replaced since it was found."""
        with self._parent() as parent:
            old = look(self.name, parent)
            if _identity(old) != _identity(self.status):
                raise OSError(errno.EBUSY, "it was changed meanwhile; read it again")
            if old:
                insist(old)
                # Replacing needs no permission to write the file itself, but a read-only file must stay.
                os.close(os.open(self.name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=parent))
            with draft(parent, 0o600 if old else 0o666) as (file, new):
                if old:
                    _dress(file.fileno(), old)
                file.write(data)
                sync(file)
                os.replace(new, self.name, src_dir_fd=parent, dst_dir_fd=parent)
            with suppress(OSError):  # a folder that one may write to but not read
                sync_folder(parent)

    def neighbors(self) -> list[str]:
        """Return the names in its folder. Raises OSError."""
        with self._parent() as parent:
            return os.listdir(parent)

    def scan(self) -> int:
        """Open the folder for listing. Close it after use. Raises OSError."""
        return os.open(self.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=self.folder)

    @contextmanager
    def _parent(self) -> Iterator[int]:
        """Create the missing folders, and open the last one for listing and syncing."""
        here = _open_folder(".", self.folder)
        try:
            for name in self.missing:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=here)
                below = _open_folder(name, here)
                os.close(here)
                here = below
            yield here
        finally:
            os.close(here)


def _spell(base: Path, path: str) -> str:
    """Return a path in the file system's spelling, if it begins with `base` as the model was told it."""
    told = path_to_text(base)
    return f"{base}{path[len(told) :]}" if told != str(base) and path.startswith(told) else path


@contextmanager
def find_path(base: Path, path: str) -> Iterator[Place]:
    """Resolve a path that starts at `base`, an absolute folder. Raises OSError for a path through files, too
    many links or a folder without permission, and ValueError for a null byte."""
    whole = os.path.join(base, os.path.expanduser(_spell(base, path)))
    if "\0" in whole:
        raise ValueError("embedded null byte")
    place = _beneath(base, whole) or _walk(whole)
    try:
        yield place
    finally:
        os.close(place.folder)


def read_at(folder: int, name: str, limit: int) -> bytes | None:
    """Return the content of a regular file in an open folder; None if it is larger. Raises OSError."""
    insist(os.stat(name, dir_fd=folder, follow_symlinks=False))
    with open_file(name, folder=folder) as file:
        status = os.fstat(file.fileno())
        insist(status)
        return file.read() if status.st_size <= limit else None


def look(name: str, folder: int) -> os.stat_result | None:
    """Return the status of a name, without following a link; None if nothing is there."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def insist(status: os.stat_result) -> None:
    """Raise OSError unless this is a regular file."""
    if stat.S_ISDIR(status.st_mode):
        raise OSError(errno.EISDIR, "it is a folder")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is a device, a pipe or a socket")


def _beneath(base: Path, whole: str) -> Place | None:
    """Resolve a path below the base without links, in one system call; else return None."""
    clean = os.path.normpath(whole)
    inside = clean.startswith(f"{base}{os.sep}") and os.path.realpath(base) == str(base)
    if not inside or ".." in Path(whole).parts:
        return None
    head, name = os.path.split(os.path.relpath(clean, base))
    folder = _openat2(base, head or ".")
    if folder is None:
        return None
    status = look(name, folder)
    if status and stat.S_ISLNK(status.st_mode):
        os.close(folder)
        return None
    return Place(Path(clean), folder, name, (), status)


def _openat2(base: Path, below: str) -> int | None:
    """Open a folder below the base, refusing links. Return None if the kernel cannot or will not."""
    call = _system_call()
    if call is None:
        return None
    try:
        root = os.open(base, _ENTER)
    except OSError:
        return None
    how = struct.pack("=QQQ", _ENTER, 0, _BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS)
    try:
        found = call(_OPENAT2, root, os.fsencode(below), how, len(how))
    finally:
        os.close(root)
    return found if found >= 0 else None


@cache
def _system_call() -> Callable[..., int] | None:
    """Load libc with the first path: most starts open none."""
    if sys.platform != "linux":
        return None
    call: Callable[..., int] = import_object("ctypes:CDLL")(None).syscall
    return call


def _walk(whole: str) -> Place:
    """Open one folder after the other, from the root, and resolve links in our own code."""
    ahead = [name for name in whole.split("/") if name not in ("", ".")]
    ahead.reverse()
    way = [(os.open("/", _ENTER), "")]
    links = 0
    try:
        while ahead:
            name = ahead.pop()
            here = way[-1][0]
            if name == "..":
                if len(way) > 1:
                    os.close(way.pop()[0])
                continue
            status = look(name, here)
            if status is None:
                return _place(way, name, (*reversed(ahead),), None)
            if stat.S_ISLNK(status.st_mode):
                links += 1
                if links > _LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                target = os.readlink(name, dir_fd=here)
                if target.startswith("/"):
                    while len(way) > 1:
                        os.close(way.pop()[0])
                ahead += [each for each in reversed(target.split("/")) if each not in ("", ".")]
            elif not ahead:
                return _place(way, name, (), status)
            else:
                way.append((os.open(name, _ENTER, dir_fd=here), name))
        return _itself(way)
    finally:
        for folder, _ in way:
            os.close(folder)


def _place(
    way: Sequence[tuple[int, str]], name: str, below: Sequence[str], status: os.stat_result | None
) -> Place:
    if ".." in below:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    names = (name, *below)
    path = Path("/", *(each for _, each in way[1:]), *names)
    return Place(path, os.dup(way[-1][0]), names[-1], names[:-1], status)


def _itself(way: Sequence[tuple[int, str]]) -> Place:
    """Return the place of a path that ends at a folder on its way, such as `a/..` or the root."""
    path = Path("/", *(each for _, each in way[1:]))
    return Place(path, os.dup(way[-1][0]), ".", (), os.fstat(way[-1][0]))


def _open_folder(name: str, folder: int) -> int:
    """Open a folder for listing, or at least for entering: some can be written but not listed."""
    try:
        return os.open(name, os.O_RDONLY | _ENTER & ~getattr(os, "O_PATH", 0), dir_fd=folder)
    except PermissionError:
        return os.open(name, _ENTER, dir_fd=folder)


def _identity(status: os.stat_result | None) -> tuple[int, ...] | None:
    return status and (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _dress(file: int, like: os.stat_result) -> None:
    with suppress(PermissionError):  # another user's file in a shared folder becomes ours
        os.fchown(file, like.st_uid, like.st_gid)
    os.fchmod(file, stat.S_IMODE(like.st_mode))
