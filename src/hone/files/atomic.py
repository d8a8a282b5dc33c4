"""Open files safely and replace them atomically and durably.

Opening never waits for a pipe and never follows a link; new files are private. New content is written to a
draft beside the file, which then replaces the file and is on disk when the call returns. The next draft in
the same folder removes the drafts of killed processes.
"""

import errno
import fcntl
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from io import BufferedIOBase, BufferedReader, BufferedWriter
from pathlib import Path

from hone.core.errors import StoreError
from hone.core.loading import import_object
from hone.core.visible import visible
from hone.files.locks import acquire, lock, release

MARKS = (".hone-", ".tmp")
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
UNFOLLOWED = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_NEW_NAME, _EXCHANGE = 1, 2
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def open_file(path: Path | str, *, follow: bool = False, folder: int | None = None) -> BufferedReader:
    """Open a file for reading, below the descriptor of a `folder` if there is one. Raises OSError."""
    handle = os.open(path, _READ if follow else _READ | os.O_NOFOLLOW, dir_fd=folder)
    try:
        return open(handle, "rb")
    except BaseException:  # a folder, for example
        os.close(handle)
        raise


def open_unnoted(name: str, folder: int) -> BufferedReader:
    """Open a file so that reading it leaves no trace: its access time then shows when others have read it.
    Raises OSError."""
    file = open_file(name, folder=folder)
    with suppress(OSError):  # it belongs to another user
        flags = fcntl.fcntl(file.fileno(), fcntl.F_GETFL)
        fcntl.fcntl(file.fileno(), fcntl.F_SETFL, flags | getattr(os, "O_NOATIME", 0))
    return file


def has_writer(handle: int) -> bool:
    """Tell whether any process has the file open for writing. In that case a lease is refused; otherwise it
    is released at once. Return False where there are no leases."""
    if not hasattr(fcntl, "F_SETLEASE"):
        return False
    try:
        # This signal arrives if somebody opens the file right now. It is ignored by default.
        fcntl.fcntl(handle, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def exchange(folder: int, one: str, other: str) -> bool:
    """Swap the names of two files in one step. Return False if this system cannot; then nothing changed.
    Raises FileNotFoundError if one is missing."""
    return _rename(folder, one, other, _EXCHANGE)


def rename_new(folder: int, one: str, other: str) -> bool:
    """Rename a file, unless the name is taken. Return False if this system cannot tell; then nothing changed.
    Raises FileExistsError."""
    return _rename(folder, one, other, _NEW_NAME)


def _rename(folder: int, one: str, other: str, how: int) -> bool:
    call, failed_with = _renaming()
    if call is None:
        return False
    if call(folder, os.fsencode(one), folder, os.fsencode(other), how) == 0:
        return True
    number = failed_with()
    if number in (errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), other)


@cache
def _renaming() -> tuple[Callable[..., int] | None, Callable[[], int]]:
    library = import_object("ctypes:CDLL")(None, use_errno=True)  # most starts write no file
    return getattr(library, "renameat2", None), import_object("ctypes:get_errno")


def create_file(path: Path | str, mode: int = 0o600, *, folder: int | None = None) -> int:
    """Create a file and return its descriptor. Raises FileExistsError rather than touch an existing one."""
    return os.open(path, _NEW, mode, dir_fd=folder)


def make_folder(path: Path) -> None:
    """Create a folder that only its owner can read, with its missing parents. Their names survive a power
    failure, and so does what is synced inside them. Raises OSError."""
    if path.is_dir():
        return
    missing = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for each in reversed(missing):
        with suppress(PermissionError):  # a folder that one may write to but not read
            sync_folder(each.parent)


@contextmanager
def locked(folder: Path, name: str) -> Iterator[None]:
    """Hold a lock in a private folder, which is created if necessary. Raises StoreError."""
    try:
        make_folder(folder)
        handle = acquire(folder / name)
    except OSError as error:
        raise StoreError(f"{visible(str(folder))} cannot be locked: {error.strerror}.") from error
    try:
        yield
    finally:
        release(handle)


def write(path: Path, data: bytes, *, over: bool = True, durable: bool = True) -> None:
    """Write a file that only its owner can read; its folder is created if missing. Raises OSError, also for
    an existing file unless it goes `over` it; then nothing was changed."""
    make_folder(path.parent)
    with draft(path.parent) as (file, new):
        file.write(data)
        sync(file) if durable else file.flush()
        new.replace(path) if over else os.link(new, path)
    if durable:
        settle(path)


def append(path: Path, line: bytes) -> None:
    """Append to a file that only its owner can read, with one write, since others may append, too."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, line)
    finally:
        os.close(handle)


def append_durably(path: Path, line: bytes) -> None:
    """Append a line to a file of lines, after cutting off a killed process's incomplete one."""
    with open(path, "rb+") as file:
        data = file.read()
        file.truncate(data.rfind(b"\n") + 1)
        file.seek(0, os.SEEK_END)
        file.write(line)
        sync(file)


@contextmanager
def draft(folder: Path | int, mode: int = 0o600) -> Iterator[tuple[BufferedWriter, Path]]:
    """Yield a new file, deleted at the end unless it was moved away. It is locked while it is being written:
    an unlocked one belongs to nobody. A folder may be a descriptor; then the path starts there."""
    sweep(folder)
    handle, path, at = _begin(folder, mode)
    with open(handle, "wb") as file:
        try:
            yield file, path
        finally:
            with suppress(OSError):  # moved away; otherwise the next one removes it
                os.unlink(path, dir_fd=at)


def sweep(folder: Path | int) -> None:
    """Remove drafts that nobody is writing."""
    with suppress(OSError):  # a folder that one may write to but not read
        for path, at in (_place(folder, name) for name in os.listdir(folder) if is_draft(name)):
            with suppress(OSError), open_file(path, folder=at) as file:  # somebody else's, locked, or gone
                lock(file.fileno(), wait=False)
                os.unlink(path, dir_fd=at)


def is_draft(name: str) -> bool:
    return name.startswith(MARKS[0]) and name.endswith(MARKS[1])


def sync(file: BufferedIOBase) -> None:
    """Flush a file to disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path | int) -> None:
    """Make changed names in a folder survive a power failure. Raises OSError."""
    if isinstance(folder, int):
        os.fsync(folder)
        return
    handle = os.open(folder, FOLDER)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """Flush all files and names below a folder to disk. Raises OSError."""
    for top, _, files, handle in os.fwalk(folder):
        for name in files:
            with open_file(name, folder=handle) as file:
                os.fsync(file.fileno())
        sync_folder(Path(top))


def settle(path: Path, folder: int | None = None) -> None:
    """Sync the folder of a file that was written or removed. Raises StoreError, although the file was
    changed."""
    try:
        sync_folder(path.parent if folder is None else folder)
    except OSError as error:
        raise StoreError(
            f"{visible(str(path))} was changed, but a power cut may take that back ({error.strerror})."
        ) from error


def _begin(folder: Path | int, mode: int) -> tuple[int, Path, int | None]:
    while True:
        path, at = _place(folder, os.urandom(8).hex().join(MARKS))
        handle = create_file(path, mode, folder=at)
        with suppress(OSError):  # some file systems have no locks
            lock(handle)
        if not _is_swept(handle):
            return handle, path, at
        os.close(handle)  # it was swept away before it was locked


def _place(folder: Path | int, name: str) -> tuple[Path, int | None]:
    return (Path(name), folder) if isinstance(folder, int) else (folder / name, None)


def _is_swept(handle: int) -> bool:
    try:
        return os.fstat(handle).st_nlink == 0
    except OSError:
        return False


@contextmanager
def hold_file(path: Path) -> Iterator[int | None]:
    """Yield the handle of a lock on a file, or None if another process has it. The file is removed with the
    lock."""
    try:
        make_folder(path.parent)
        handle: int | None = acquire(path, wait=False)
    except BlockingIOError:
        handle = None
    except OSError as error:
        raise StoreError(f"{path} cannot be used: {error.strerror}.") from error
    if handle is None:
        yield None
        return
    try:
        yield handle
    finally:
        with suppress(OSError):  # a leftover file locks nothing
            path.unlink()
        release(handle)


def explain_failure(place: str, error: OSError) -> str:
    """Return a sentence about a file that was left unchanged."""
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return f"There is no space left for {place}; it was left as it is. Make room and try again."
        case errno.EROFS:
            return f"{place} lies on a read-only file system; it was left as it is."
        case errno.EACCES | errno.EPERM:
            return (
                f"{place} is closed to you, or its folder is; it was left as it is. "
                "Give yourself the right to read and write it and try again."
            )
        case errno.EIO:
            return f"The disk failed while {place} was read or written; it was left as it is."
        case errno.ELOOP | errno.ENOTDIR | errno.ENOENT | errno.EEXIST | errno.ENOTEMPTY:
            return f"{place} was moved or replaced this very moment; it was left as it is. Try again."
    return f"{place} cannot be used: {(error.strerror or str(error)).lower()}. It was left as it is."
