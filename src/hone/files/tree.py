"""Read and write files below one folder, through its descriptor. Follows no links; writes are atomic."""

import errno
import os
import stat
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import lru_cache
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

from hone.core.errors import Busy, Refused, StoreError
from hone.core.ledger import PublishedFile
from hone.core.messages import digest
from hone.core.regex import regex
from hone.core.visible import one_line, visible
from hone.files.atomic import (
    FOLDER,
    UNFOLLOWED,
    draft,
    exchange,
    explain_failure,
    has_writer,
    is_draft,
    make_folder,
    open_file,
    open_unnoted,
    rename_new,
    settle,
    sweep,
    sync,
    sync_folder,
)
from hone.files.locks import acquire, lock, release

LOCK = ".lock"
SCRIPTS = "scripts"
"""A script in a folder of this name can be run by its path."""
LARGEST = 2**20
"""The most bytes of a file to read."""
MOST, DEEPEST = 2_000, 8
"""The most files of a listing, and the deepest nesting of folders."""

_UNFIT = regex(r"[\x00-\x1f\x7f\\\ud800-\udfff]")


class FileKind(StrEnum):
    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    OTHER = "device, a pipe or a socket"


class Glance(NamedTuple):
    """What identifies a file without reading it. `modified` is in nanoseconds."""

    inode: int
    modified: int
    size: int


Seen = tuple[tuple[int, ...] | int | None, ...]


class Sight(NamedTuple):
    """How places look, to detect later changes. `seen` has each one's metadata, None for nothing, the error
    number for an inaccessible one. `at` is the time of the look, `touched` that of the latest change, in
    nanoseconds."""

    seen: Seen
    at: int
    touched: int


TICK = 2_000_000_000
"""Nanoseconds within which a file may change twice and look the same, on the coarsest file system."""


class SavedFile(NamedTuple):
    """A file on disk. `read_at` is its access time in nanoseconds, which Hone's own reading does not change.
    `busy`: somebody is writing it right now, and `data` may be half of it."""

    data: bytes
    file: PublishedFile
    read_at: int
    busy: bool


ANY = PublishedFile("", 0, 0)
"""Replaces whatever is there."""
Over = PublishedFile | None


class FoundFile(NamedTuple):
    path: str
    kind: FileKind
    glance: Glance


class FileTree:
    """All paths are relative, with slashes. Every method raises Refused for an impossible path and StoreError
    for a failure; then nothing was changed. `now` is the clock of the files."""

    def __init__(self, root: Path, now: Callable[[], int] = time.time_ns) -> None:
        self._root = root
        self._now = now

    def read(self, path: str, limit: int = LARGEST) -> tuple[bytes, PublishedFile] | None:
        """Return the content, None if there is no file. An unreadable file is an error."""
        saved = self.look(path, limit)
        return saved and (saved.data, saved.file)

    def look(self, path: str, limit: int = LARGEST) -> SavedFile | None:
        """Return the content with the metadata that shows who reads and writes the file."""
        names = parts(path)
        with self._plainly(names):
            try:
                file = self._opened(names)
            except FileNotFoundError:
                return None
            with file:
                busy = has_writer(file.fileno())
                status = os.fstat(file.fileno())
                self._insist(names, status, FileKind.FILE)
                data = file.read(limit + 1)
                busy = (
                    busy or has_writer(file.fileno()) or _glance(os.fstat(file.fileno())) != _glance(status)
                )
        if len(data) > limit:
            raise StoreError(
                f"{self._named(names)} has more than {limit:,} bytes, and no more are read. Shorten it."
            )
        found = PublishedFile(digest(data), status.st_ino, status.st_mtime_ns)
        return SavedFile(data, found, status.st_atime_ns, busy)

    def notes_reading(self) -> bool:
        """Tell whether this file system records when a file was read."""
        with self._plainly(()), self._folder((), make=True) as root, draft(root) as (file, name):
            file.write(b"?")
            file.flush()
            os.utime(file.fileno(), ns=(1, 1))
            with open_file(name, folder=root) as again:
                again.read()
            return os.fstat(file.fileno()).st_atime_ns != 1

    def write(self, path: str, data: bytes, over: Over = ANY) -> PublishedFile:
        """Replace the file as a whole. Missing folders are created. `over` is what to replace, None for
        nothing: raises Busy if another file is there by now, or if somebody is writing it."""
        names = parts(path)
        with self._plainly(names):
            try:
                with self._folder(names[:-1], make=True) as folder:
                    return self._replace(folder, names, data, over)
            except (OSError, StoreError):
                with suppress(OSError, StoreError):  # leftovers that cannot be removed now may stay
                    self._prune(names[:-1])
                raise

    def remove(self, path: str, over: Over = ANY) -> bool:
        """Remove a file, and the folders that this empties, up to a folder of the root. Return False if there
        was no file. A repeated call removes what could not be removed before. Raises Busy like `write`."""
        names = parts(path)
        with self._plainly(names):
            removed = self._unlink(names, over)
            self._prune(names[:-1])
        return removed

    def remove_folder(self, path: str) -> bool:
        """Remove an empty folder, even one of the root's own. Tell whether it is gone."""
        names = parts(path)
        with self._plainly(names):
            try:
                with self._folder(names[:-1]) as folder:
                    os.rmdir(names[-1], dir_fd=folder)
                    sync_folder(folder)
            except FileNotFoundError:
                return True
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                return False
        return True

    def has_drafts(self, path: str) -> bool:
        """Tell whether a draft may be next to a file: one in progress, or a leftover."""
        names = parts(path)
        with suppress(OSError), self._folder(names[:-1]) as folder:
            return any(map(is_draft, os.listdir(folder)))
        return True

    def tidy(self, path: str) -> None:
        """Remove a killed process's drafts next to a file."""
        names = parts(path)
        with suppress(OSError, StoreError), self._folder(names[:-1]) as folder:
            sweep(folder)

    def listing(self, path: str = "", *, most: int = MOST, depth: int = DEEPEST) -> Sequence[FoundFile]:
        """Return everything below a folder, by path; empty if there is no folder. Folders are included only
        if they are too deep to enter. Too many entries are an error, never left out."""
        names = parts(path) if path else ()
        found: list[FoundFile] = []
        with self._plainly(names), suppress(FileNotFoundError), self._folder(names) as folder:
            self._gather(folder, names, len(names) + depth, most, found)
        return sorted(found)

    def folders(self, path: str = "", known: Collection[str] = ()) -> set[str]:
        """Return the names of the folders directly below a folder; none if there is no folder. `known` ones
        are not checked again: anything with their name counts as a folder."""
        names = parts(path) if path else ()
        with self._plainly(names):
            try:
                with self._folder(names) as folder:
                    lying = set(os.listdir(folder))
                    others = {name for name in lying.difference(known) if not _is_folder(name, folder)}
                    return lying - others
            except FileNotFoundError:
                return set()

    def glance(self, path: str) -> Glance | None:
        """Look at whatever is there, even a link."""
        names = parts(path)
        with self._plainly(names):
            try:
                with self._folder(names[:-1]) as folder:
                    return _glance(os.stat(names[-1], dir_fd=folder, follow_symlinks=False))
            except FileNotFoundError:
                return None

    def sight(self, paths: Sequence[str], *, usable: bool = False) -> Sight:
        """Look at many places at once without opening them: nothing is read. `usable`: a place without
        permission to read and write counts as inaccessible."""
        for path in paths:
            parts(path)
        now = self._now()
        with self._plainly(()):
            try:
                with self._folder(()) as root:
                    seen: Seen = tuple(_look(path, root, usable=usable) for path in paths)
            except FileNotFoundError:
                seen = (None,) * len(paths)
        return Sight(seen, now, max((each[-1] for each in seen if isinstance(each, tuple)), default=0))

    @contextmanager
    def lock(self, *, wait: bool = True) -> Iterator[None]:
        """Wait until nobody else, thread or process, holds the lock, or raise Busy. A killed process releases
        it."""
        with self._plainly((LOCK,)), self._folder((), make=True) as root:
            if status := _lstat(LOCK, root):
                self._insist((LOCK,), status, FileKind.FILE)
            try:
                handle = acquire(self._root / LOCK, wait=wait)
            except BlockingIOError as error:
                raise Busy(f"{self._named((LOCK,))} is held by another process.") from error
        try:
            yield
        finally:
            release(handle)

    @contextmanager
    def _folder(self, names: Sequence[str], *, make: bool = False) -> Iterator[int]:
        """Yield the descriptor of a folder. Raises FileNotFoundError."""
        if make:
            make_folder(self._root)
        here = os.open(self._root, FOLDER)
        try:
            for at in range(len(names)):
                below = self._enter(here, names[: at + 1], make=make)
                os.close(here)
                here = below
            yield here
        finally:
            os.close(here)

    def _enter(self, here: int, names: Sequence[str], *, make: bool) -> int:
        try:
            return os.open(names[-1], FOLDER | os.O_NOFOLLOW, dir_fd=here)
        except FileNotFoundError:
            if not make:
                raise
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP):
                self._insist(names, os.stat(names[-1], dir_fd=here, follow_symlinks=False), FileKind.FOLDER)
            raise
        with suppress(FileExistsError):
            os.mkdir(names[-1], 0o700, dir_fd=here)
            sync_folder(here)
        return self._enter(here, names, make=False)

    def _opened(self, names: Sequence[str]) -> BufferedReader:
        with self._folder(names[:-1]) as folder:
            # Merely opening a device can have an effect.
            self._insist(names, os.stat(names[-1], dir_fd=folder, follow_symlinks=False), FileKind.FILE)
            return open_unnoted(names[-1], folder)

    def _replace(self, folder: int, names: Sequence[str], data: bytes, over: Over) -> PublishedFile:
        self._writable(folder, names)
        runs = SCRIPTS in names[:-1] and data.startswith(b"#!")
        with draft(folder, 0o700 if runs else 0o600) as (file, name):
            file.write(data)
            file.flush()
            # The kernel's clock may stand still for milliseconds; an edit right after this one must be
            # visible.
            # As long as both times are equal, nobody has read the file.
            now = time.time_ns()
            os.utime(file.fileno(), ns=(now, now))
            status = os.fstat(file.fileno())  # before an editor can write it
            sync(file)
            if over is ANY or not self._put(folder, str(name), names, over):
                os.replace(name, names[-1], src_dir_fd=folder, dst_dir_fd=folder)
        settle(self._root.joinpath(*names), folder)
        return PublishedFile(digest(data), status.st_ino, status.st_mtime_ns)

    def _put(self, folder: int, new: str, names: Sequence[str], over: Over) -> bool:
        """Put a draft in place of `over`. Return False if this system cannot compare and swap in one step;
        then nothing was changed, and `over` is still there."""
        try:
            if over is None:
                if rename_new(folder, new, names[-1]):
                    return True
                if _lstat(names[-1], folder):
                    raise self._saved_meanwhile(names)
                return False
            if exchange(folder, new, names[-1]):
                self._keep_or_return(folder, new, names, over)
                return True
            self._insist_untouched(folder, names, over)
        except (FileNotFoundError, FileExistsError) as error:
            raise self._saved_meanwhile(names) from error
        return False

    def _keep_or_return(self, folder: int, new: str, names: Sequence[str], over: Over) -> None:
        """Check what a draft has swapped places with. If an editor has just saved it, or is about to, swap
        back."""
        try:
            with open_unnoted(new, folder) as old:
                with suppress(OSError):  # so that nobody sweeps it away
                    lock(old.fileno(), wait=False)
                self._insist_same(old.fileno(), names, over)
        except (OSError, Busy):
            exchange(folder, new, names[-1])
            raise

    def _insist_untouched(self, folder: int, names: Sequence[str], over: Over) -> None:
        with open_unnoted(names[-1], folder) as old:
            self._insist_same(old.fileno(), names, over)

    def _insist_same(self, handle: int, names: Sequence[str], over: Over) -> None:
        status = os.fstat(handle)
        is_same = over is not None and (status.st_ino, status.st_mtime_ns) == (over.inode, over.modified)
        if not is_same or has_writer(handle):
            raise self._saved_meanwhile(names)

    def _saved_meanwhile(self, names: Sequence[str]) -> Busy:
        return Busy(f"{self._named(names)} is being saved by another program; Hone writes it later.")

    def _writable(self, folder: int, names: Sequence[str]) -> bool:
        """Tell whether the file may be replaced; False if there is none."""
        try:
            self._insist(names, os.stat(names[-1], dir_fd=folder, follow_symlinks=False), FileKind.FILE)
            # Replacing needs no permission to write the file itself, but a read-only file must stay as it is.
            os.close(os.open(names[-1], os.O_WRONLY | UNFOLLOWED, dir_fd=folder))
        except FileNotFoundError:
            return False
        return True

    def _unlink(self, names: Sequence[str], over: Over) -> bool:
        try:
            with self._folder(names[:-1]) as folder:
                if not self._writable(folder, names):
                    return False
                if over is not ANY:
                    self._insist_untouched(folder, names, over)
                os.unlink(names[-1], dir_fd=folder)
                settle(self._root.joinpath(*names), folder)
        except FileNotFoundError:
            return False
        return True

    def _prune(self, names: Sequence[str]) -> None:
        """Remove empty folders, but none of the root's own."""
        for last in range(len(names) - 1, 0, -1):
            try:
                with self._folder(names[:last]) as folder:
                    with self._folder(names[: last + 1]) as inner:
                        sweep(inner)
                    os.rmdir(names[last], dir_fd=folder)
                    sync_folder(folder)
            except FileNotFoundError:
                continue
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                return

    def _gather(
        self, folder: int, names: Sequence[str], depth: int, most: int, found: list[FoundFile]
    ) -> None:
        with os.scandir(folder) as entries:
            for entry in entries:
                path, status = (*names, entry.name), _lstat(entry.name, folder)
                if status is None or _is_ours(entry.name):
                    continue
                if stat.S_ISDIR(status.st_mode) and len(path) < depth and _fits(entry.name):
                    with suppress(FileNotFoundError):
                        inner = self._enter(folder, path, make=False)
                        try:
                            self._gather(inner, path, depth, most, found)
                        finally:
                            os.close(inner)
                elif len(found) < most:
                    kind = _kind(status) if _fits(entry.name) else FileKind.OTHER
                    found.append(FoundFile("/".join(path), kind, _glance(status)))
                else:
                    raise StoreError(
                        f"{self._named(names)} has more files than Hone goes through ({most:,}); "
                        "nothing was changed. Move some away."
                    )

    def _insist(self, names: Sequence[str], status: os.stat_result, wanted: FileKind) -> None:
        kind = _kind(status)
        if kind is FileKind.LINK:
            raise StoreError(
                f"{self._named(names)} is a link, and Hone does not follow links there; "
                f"put a {wanted} in its place. Nothing was changed."
            )
        if kind is not wanted:
            raise StoreError(
                f"{self._named(names)} is a {kind}, and a {wanted} belongs there; "
                "move it away. Nothing was changed."
            )

    def _named(self, names: Sequence[str]) -> str:
        return visible(str(self._root.joinpath(*names)))

    @contextmanager
    def _plainly(self, names: Sequence[str]) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(explain_failure(self._named(names), error)) from error


@lru_cache(maxsize=4096)  # the same files are looked at with each turn
def parts(path: str) -> tuple[str, ...]:
    """Split a path into names. Raises Refused for a path that could lead elsewhere."""
    names = tuple(path.split("/"))
    if len(path) > 1_000 or not all(map(_fits, names)) or any(map(_is_ours, names)):
        raise Refused(
            f'"{one_line(path, 200)}" cannot be the path of a file here: give names with single slashes '
            "between them, no . or .. among them, no backslash and no control character."
        )
    return names


def _fits(name: str) -> bool:
    return name not in ("", ".", "..") and not _UNFIT.search(name) and len(name.encode()) <= 255


def _is_ours(name: str) -> bool:
    return name == LOCK or is_draft(name)


def _kind(status: os.stat_result) -> FileKind:
    kinds = {stat.S_IFREG: FileKind.FILE, stat.S_IFDIR: FileKind.FOLDER, stat.S_IFLNK: FileKind.LINK}
    return kinds.get(stat.S_IFMT(status.st_mode), FileKind.OTHER)


def _glance(status: os.stat_result) -> Glance:
    return Glance(status.st_ino, status.st_mtime_ns, status.st_size)


def _is_folder(name: str, folder: int) -> bool:
    status = _lstat(name, folder)
    return status is not None and stat.S_ISDIR(status.st_mode) and _fits(name)


def _lstat(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _look(path: str, root: int, *, usable: bool) -> tuple[int, ...] | int | None:
    try:
        status = os.stat(path, dir_fd=root, follow_symlinks=False)
        if usable and not os.access(path, os.R_OK | os.W_OK, dir_fd=root, effective_ids=True):
            return errno.EACCES
    except FileNotFoundError:
        return None
    except OSError as error:
        return error.errno or errno.EIO
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
