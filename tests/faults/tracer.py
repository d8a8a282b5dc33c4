"""Counts the system calls of a child, over all its threads, and kills it as it enters one of them.

strace numbers the calls of each thread apart, and from the start of the process: so it cannot name every call
after a certain moment.
"""

import ctypes
import os
import signal
import struct
from contextlib import suppress
from typing import Literal

Kind = Literal["writes", "any"]

WRITES = {
    **{1: "write", 18: "pwrite64", 40: "sendfile", 296: "pwritev", 326: "copy_file_range", 328: "pwritev2"},
    **{26: "msync", 74: "fsync", 75: "fdatasync", 162: "sync", 277: "sync_file_range", 306: "syncfs"},
    **{76: "truncate", 77: "ftruncate", 285: "fallocate", 133: "mknod", 259: "mknodat", 85: "creat"},
    **{82: "rename", 264: "renameat", 316: "renameat2", 87: "unlink", 263: "unlinkat"},
    **{83: "mkdir", 258: "mkdirat", 84: "rmdir", 86: "link", 265: "linkat", 88: "symlink", 266: "symlinkat"},
    **{90: "chmod", 91: "fchmod", 268: "fchmodat", 92: "chown", 93: "fchown", 260: "fchownat"},
    **{132: "utime", 235: "utimes", 261: "futimesat", 280: "utimensat", 73: "flock"},
    **{188: "setxattr", 190: "fsetxattr"},
}
"""By their numbers on x86-64."""
OPENS = {2: ("open", 1), 257: ("openat", 2)}
"""A write if it makes or empties the file; with the place of its flags."""
SAY = 20
"""The worker speaks with writev, and nothing else makes that call."""

SYSCALL, SEIZE, INTERRUPT, INFO = 24, 0x4206, 0x4207, 0x420E
OPTIONS = 1 | 8 | 0x100000  # TRACESYSGOOD, TRACECLONE, EXITKILL
STOPPED = signal.SIGTRAP | 0x80
ENTRY = 1
WALL = 0x40000000

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
libc.ptrace.restype = ctypes.c_long


def ptrace(request: int, thread: int, address: int = 0, data: int | None = None) -> None:
    if libc.ptrace(request, thread, address, data) == -1:
        error = ctypes.get_errno()
        raise OSError(error, f"ptrace {request:#x}: {os.strerror(error)}")


def entered(thread: int) -> tuple[int, tuple[int, ...]] | None:
    """The call a stopped thread is about to make, with its arguments; None if it comes out of one."""
    room = ctypes.create_string_buffer(88)
    ptrace(INFO, thread, len(room), ctypes.addressof(room))
    number, *arguments = struct.unpack_from("<7Q", room, 24)
    return (number, tuple(arguments)) if room.raw[0] == ENTRY else None


def written(number: int, arguments: tuple[int, ...]) -> str:
    """What is written with; empty if nothing is."""
    if number in OPENS:
        name, place = OPENS[number]
        return name if arguments[place] & (os.O_CREAT | os.O_TRUNC) else ""
    return WRITES.get(number, "")


def attach(worker: int) -> None:
    for thread in map(int, os.listdir(f"/proc/{worker}/task")):
        ptrace(SEIZE, thread, 0, OPTIONS)
        ptrace(INTERRUPT, thread)


class Count:
    """Of the calls from `attach` on until the worker speaks."""

    def __init__(self, kind: Kind, when: int) -> None:
        self.calls: list[str] = []
        self._kind, self._when = kind, when
        self._over = False

    def reached(self, number: int, arguments: tuple[int, ...]) -> bool:
        """Whether this is the call to be killed at."""
        name = written(number, arguments) if self._kind == "writes" else str(number)
        self._over = self._over or number == SAY
        if name and not self._over:
            self.calls.append(name)
            self._over = len(self.calls) == self._when
            return self._over
        return False


def trace(worker: int, kind: Kind, when: int) -> tuple[list[str], int]:
    """Until the worker has ended: the calls that were counted, and how it did. It is killed at the one with
    the number `when`, before that is carried out."""
    count = Count(kind, when)
    thread, status = os.waitpid(-1, WALL)
    while thread != worker or os.WIFSTOPPED(status):
        if os.WIFSTOPPED(status):
            with suppress(ProcessLookupError):  # it was killed meanwhile
                pass_by(worker, thread, status, count)
        thread, status = os.waitpid(-1, WALL)
    return count.calls, os.waitstatus_to_exitcode(status)


def pass_by(worker: int, thread: int, status: int, count: Count) -> None:
    """A thread has stopped at a call, at its own beginning, or for a signal that it should get."""
    sent, event = os.WSTOPSIG(status), status >> 16
    if sent == STOPPED and (call := entered(thread)) and count.reached(*call):
        os.kill(worker, signal.SIGKILL)
    ptrace(SYSCALL, thread, 0, 0 if sent == STOPPED or event else sent)
