"""Numbers the system calls of a process that touch one folder, and kills it or fails the call at one of them.

strace numbers the calls of each thread apart, and from the start of the process; here one number names one
call of all threads, from the moment the work begins.
"""

import ctypes
import errno
import fcntl
import os
import signal
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct


class Kind(StrEnum):
    WRITE = "write"
    READ = "read"
    LOCK = "lock"


class Where(StrEnum):
    """How a call names its file."""

    HANDLE = "handle"
    PATH = "path"
    AT = "at"
    """A folder's handle, then a path."""


class Shape(NamedTuple):
    name: str
    kind: Kind
    where: Where


def _shapes(kind: Kind, where: Where, names: dict[int, str]) -> dict[int, Shape]:
    return {number: Shape(name, kind, where) for number, name in names.items()}


MODIFYING = {1: "write", 18: "pwrite64", 20: "writev", 40: "sendfile", 296: "pwritev", 326: "copy_file_range"}
SETTLING = {74: "fsync", 75: "fdatasync", 77: "ftruncate", 285: "fallocate", 91: "fchmod", 93: "fchown"}
NAMING = {82: "rename", 87: "unlink", 83: "mkdir", 84: "rmdir", 86: "link", 90: "chmod", 85: "creat"}
NAMING_AT = {
    264: "renameat",
    316: "renameat2",
    263: "unlinkat",
    258: "mkdirat",
    265: "linkat",
    268: "fchmodat",
}
SHAPES = {
    **_shapes(Kind.WRITE, Where.HANDLE, MODIFYING | SETTLING | {280: "utimensat"}),
    **_shapes(Kind.WRITE, Where.PATH, NAMING),
    **_shapes(Kind.WRITE, Where.AT, NAMING_AT),
    **_shapes(Kind.READ, Where.HANDLE, {0: "read", 17: "pread64", 217: "getdents64", 5: "fstat"}),
    **_shapes(Kind.READ, Where.AT, {257: "openat", 262: "newfstatat"}),
    **_shapes(Kind.LOCK, Where.HANDLE, {72: "fcntl", 73: "flock"}),
}
"""By their numbers on x86-64."""
WRITE, OPENAT, FCNTL, FLOCK = 1, 257, 72, 73
LOCKING = (5, 6, 7, 36, 37, 38)
"""What fcntl does when it asks for a lock, or lets one go."""
MAKES = os.O_CREAT | os.O_TRUNC
HERE = -100 & 0xFFFFFFFF

FULL = ("ENOSPC", "EDQUOT", "EIO")
CLOSED = ("EROFS", "EACCES", "EIO")
ERRORS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("write", "pwrite64", "writev", "fsync", "fdatasync", "ftruncate", "fallocate"), FULL),
    **dict.fromkeys(("mkdir", "mkdirat", "rename", "renameat", "renameat2", "link", "linkat"), FULL + CLOSED),
    **dict.fromkeys(("unlink", "unlinkat", "rmdir"), CLOSED),
    **dict.fromkeys(("fchmod", "chmod", "fchmodat", "utimensat"), ("EPERM", "EROFS", "EIO")),
    "create": (*FULL, *CLOSED, "EMFILE"),
    "openat": ("EIO", "EACCES", "EMFILE"),
    **dict.fromkeys(("read", "pread64", "getdents64", "fstat", "newfstatat"), ("EIO",)),
    "flock": ("ENOLCK", "EIO"),
    "fcntl": ("EIO",),
}
"""What a disk, a quota or a mount can answer to each."""

SYSCALL, GETREGS, SETREGS, SEIZE, INTERRUPT, INFO = 24, 12, 13, 0x4206, 0x4207, 0x420E
OPTIONS = 1 | 8 | 0x100000  # TRACESYSGOOD, TRACECLONE, EXITKILL
STOPPED = signal.SIGTRAP | 0x80
ENTRY = 1
WALL = 0x40000000
REGISTERS, RESULT, NUMBER = 27, 10, 15
NOWHERE = 2**64 - 1

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
libc.ptrace.restype = ctypes.c_long


class Blow(Struct, frozen=True):
    """At the call of this number, from 1 on: an error, by name, or a kill. One that lasts is met by all later
    calls of the kind as well, as on a disk that is full."""

    at: int
    error: str = ""
    lasting: bool = False


class Call(NamedTuple):
    name: str
    kind: Kind
    place: str


def ptrace(request: int, thread: int, address: int = 0, data: int | None = None) -> None:
    if libc.ptrace(request, thread, address, data) == -1:
        error = ctypes.get_errno()
        raise OSError(error, f"ptrace {request:#x}: {os.strerror(error)}")


def attach(worker: int) -> None:
    for thread in map(int, os.listdir(f"/proc/{worker}/task")):
        ptrace(SEIZE, thread, 0, OPTIONS)
        ptrace(INTERRUPT, thread)


@dataclass
class Watch:
    """Of one process, and of its calls below one folder."""

    worker: int
    root: Path
    mouth: int
    blow: Blow | None = None
    calls: list[Call] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    """How many calls there were each time it spoke."""
    _failing: set[int] = field(default_factory=set)

    def run(self) -> int:
        """Until the process has ended; says how."""
        thread, status = os.waitpid(-1, WALL)
        while thread != self.worker or os.WIFSTOPPED(status):
            if os.WIFSTOPPED(status):
                with suppress(ProcessLookupError):  # it was killed meanwhile
                    self._pass(thread, status)
            thread, status = os.waitpid(-1, WALL)
        return os.waitstatus_to_exitcode(status)

    @property
    def has_struck(self) -> bool:
        return self.blow is not None and len(self.calls) >= self.blow.at

    def counts(self, place: str) -> bool:
        return place.startswith(f"{self.root}/")

    def speaks(self) -> None:
        """Called when the process is about to say something."""

    def begins(self, thread: int, call: Call, arguments: Sequence[int]) -> None:
        """Called before a call below the folder is made."""

    def ends(self, thread: int, result: int) -> None:
        """Called after any call of a thread, also one that lies elsewhere."""

    def handle(self, number: int) -> str:
        """Return where /proc shows the file or folder of a descriptor, or the working folder."""
        handle = number & 0xFFFFFFFF
        return f"/proc/{self.worker}/{'cwd' if handle == HERE else f'fd/{handle}'}"

    def text(self, address: int) -> str:
        return self.memory(address, 4096).split(b"\0")[0].decode(errors="replace")

    def memory(self, address: int, size: int) -> bytes:
        with open(f"/proc/{self.worker}/mem", "rb", buffering=0) as memory:
            memory.seek(address)
            return memory.read(size)

    def _pass(self, thread: int, status: int) -> None:
        """A thread has stopped at a call, at its own beginning, or for a signal that it should get."""
        sent, event = os.WSTOPSIG(status), status >> 16
        if sent == STOPPED:
            self._look(thread)
        ptrace(SYSCALL, thread, 0, 0 if sent == STOPPED or event else sent)

    def _look(self, thread: int) -> None:
        room = ctypes.create_string_buffer(88)
        ptrace(INFO, thread, len(room), ctypes.addressof(room))
        if room.raw[0] == ENTRY:
            number, *arguments = struct.unpack_from("<7Q", room, 24)
            if number == WRITE and arguments[0] == self.mouth:
                self.marks.append(len(self.calls))
                self.speaks()
            elif number in SHAPES and (call := self._call(number, arguments)):
                self._meet(thread, call)
                self.begins(thread, call, arguments)
            return
        self.ends(thread, struct.unpack_from("<q", room, 24)[0])
        if thread in self._failing and self.blow:
            self._failing.remove(thread)
            self._set(thread, RESULT, 2**64 - getattr(errno, self.blow.error))

    def _call(self, number: int, arguments: list[int]) -> Call | None:
        name, kind, where = SHAPES[number]
        if number == OPENAT and arguments[2] & MAKES:
            name, kind = "create", Kind.WRITE
        if (number == FCNTL and arguments[1] not in LOCKING) or self._lets_go(number, arguments):
            return None
        place = self._place(where, arguments)
        return Call(name, kind, place[len(str(self.root)) + 1 :]) if self.counts(place) else None

    def _lets_go(self, number: int, arguments: list[int]) -> bool:
        """Whether a lock is given back. No disk refuses that, and SQLite would shut itself out if one did."""
        if number == FLOCK:
            return bool(arguments[1] & fcntl.LOCK_UN)
        return number == FCNTL and struct.unpack("=h", self.memory(arguments[2], 2)) == (fcntl.F_UNLCK,)

    def _place(self, where: Where, arguments: list[int]) -> str:
        """Empty if there is no such handle."""
        try:
            match where:
                case Where.HANDLE:
                    return os.readlink(self.handle(arguments[0]))
                case Where.PATH:
                    return os.path.join(os.readlink(self.handle(HERE)), self.text(arguments[0]))
            path = self.text(arguments[1])
            return path if path.startswith("/") else f"{os.readlink(self.handle(arguments[0]))}/{path}"
        except OSError:
            return ""

    def _meet(self, thread: int, call: Call) -> None:
        blow = self.blow
        self.calls.append(call)
        if blow is None or not self.has_struck:
            return
        first = self.calls[blow.at - 1]
        if len(self.calls) > blow.at and not (
            blow.lasting and call.kind is first.kind and blow.error in ERRORS.get(call.name, ())
        ):
            return
        if blow.error:
            self._set(thread, NUMBER, NOWHERE)
            self._failing.add(thread)
        else:
            os.kill(self.worker, signal.SIGKILL)

    def _set(self, thread: int, register: int, value: int) -> None:
        room = (ctypes.c_uint64 * REGISTERS)()
        ptrace(GETREGS, thread, 0, ctypes.addressof(room))
        room[register] = value
        ptrace(SETREGS, thread, 0, ctypes.addressof(room))
