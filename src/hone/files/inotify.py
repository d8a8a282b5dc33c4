"""Linux's inotify: the kernel reports what changes in watched folders, whatever mount it changes through."""

import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

from hone.core.loading import import_object

MODIFY, ATTRIB, CLOSE_WRITE, OPEN = 0x2, 0x4, 0x8, 0x20
MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x40, 0x80, 0x100, 0x200
OVERFLOW, IGNORED, IS_FOLDER = 0x4000, 0x8000, 0x40000000

NAMES = ATTRIB | MOVED_FROM | MOVED_TO | CREATE | DELETE
"""Events about the folder itself."""
CHANGES = MODIFY | ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE
READS = OPEN | MOVED_TO | CREATE
_ONLY_FOLDERS, _NO_LINKS, _NOT_UNLINKED = 0x01000000, 0x02000000, 0x04000000
MOUNTS = "/proc/self/mountinfo"
_LOCAL = ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "jfs", "tmpfs", "overlay")
_HEAD = struct.Struct("iIII")
_READ = 1 << 20


class Event(NamedTuple):
    """`watch` is the number that `add` returned for the folder; `name` is empty for the folder itself."""

    watch: int
    mask: int
    name: str


class Inotify:
    """Reports the events in `mask`. Raises OSError where there is no inotify, or no more of it."""

    def __init__(self, mask: int = CHANGES) -> None:
        self._mask = mask | _ONLY_FOLDERS | _NO_LINKS | _NOT_UNLINKED
        self._libc = import_object("ctypes:CDLL")(None, use_errno=True)  # most starts watch nothing
        self._errno = import_object("ctypes:get_errno")
        if not hasattr(self._libc, "inotify_init1"):
            raise OSError("this system has no inotify")
        self._file = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def add(self, folder: str) -> int:
        """Watch a folder, not what lies deeper. Raises OSError, with ENOSPC at the user's limit."""
        return self._checked(self._libc.inotify_add_watch(self._file, os.fsencode(folder), self._mask))

    def remove(self, watch: int) -> None:
        """Stop watching. Do nothing if the kernel has done so already."""
        self._libc.inotify_rm_watch(self._file, watch)

    def read(self) -> Iterator[Event]:
        """Yield the available events, oldest first, without waiting."""
        while data := self._read():
            at = 0
            while at < len(data):
                watch, mask, _, length = _HEAD.unpack_from(data, at)
                at += _HEAD.size
                name = data[at : at + length].rstrip(b"\0")
                at += length
                yield Event(watch, mask, os.fsdecode(name))

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def _read(self) -> bytes:
        try:
            return os.read(self._file, _READ)
        except BlockingIOError:
            return b""

    def _checked(self, result: int) -> int:
        if result < 0:
            number = self._errno()
            raise OSError(number, os.strerror(number))
        return result


def is_local(folder: str) -> bool:
    """Tell whether this kernel sees every change to a folder. On network file systems and on folders shared
    by a virtual machine, others can make unseen changes."""
    device = os.stat(folder).st_dev
    key = f"{os.major(device)}:{os.minor(device)}"
    with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
        rows = [line.split(" ") for line in file]
    return any(row[2] == key and row[row.index("-") + 1] in _LOCAL for row in rows)
