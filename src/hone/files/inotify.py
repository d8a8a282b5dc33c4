"""Linux's inotify: the kernel reports what changes in watched folders, whatever mount it changes through."""

import ctypes
import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

MODIFY, ATTRIB, CLOSE_WRITE = 0x2, 0x4, 0x8
MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x40, 0x80, 0x100, 0x200
OVERFLOW, IGNORED, IS_FOLDER = 0x4000, 0x8000, 0x40000000

_CHANGES = MODIFY | ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE
_ONLY_FOLDERS, _NO_LINKS, _NOT_UNLINKED = 0x01000000, 0x02000000, 0x04000000
_MASK = _CHANGES | _ONLY_FOLDERS | _NO_LINKS | _NOT_UNLINKED
_HEAD = struct.Struct("iIII")
_READ = 1 << 20


class Event(NamedTuple):
    """`watch` is the number that `add` returned for the folder; `name` is empty for the folder itself."""

    watch: int
    mask: int
    name: str


class Inotify:
    """Raises OSError where there is none, or no more."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(self._libc, "inotify_init1"):
            raise OSError("this system has no inotify")
        self._add = self._libc.inotify_add_watch
        self._add.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32)
        self._file = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def add(self, folder: str) -> int:
        """Watch a folder, not what lies deeper. Raises OSError, with ENOSPC at the user's limit."""
        return self._checked(self._add(self._file, os.fsencode(folder), _MASK))

    def remove(self, watch: int) -> None:
        """Do nothing if the kernel has removed it already."""
        self._libc.inotify_rm_watch(self._file, watch)

    def read(self) -> Iterator[Event]:
        """Yield what is there, oldest first, without waiting."""
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

    @staticmethod
    def _checked(result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result
