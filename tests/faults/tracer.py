"""A process between a test and the worker it wants killed: `python -I tracer.py KIND WHEN COMMAND…`.

The worker says `due` and waits for a line. From then on until it says `over`, the calls of all its threads
are counted, `writes` or `any`, and it is killed as it enters the one with the number WHEN; at none if zero.
What the worker says is passed on, and one more line has the names of the calls that were counted.

strace counts from the start of a process and in each thread apart, so that it cannot name every call.
"""

import ctypes
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator

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


def stops(worker: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The calls of all threads, each as it is entered, until the worker has ended."""
    while True:
        thread, status = os.waitpid(-1, WALL)
        if not os.WIFSTOPPED(status):
            if thread == worker:
                return
            continue
        sent, event = os.WSTOPSIG(status), status >> 16
        try:
            if sent == STOPPED and (call := entered(thread)):
                yield call
            ptrace(SYSCALL, thread, 0, 0 if sent == STOPPED or event else sent)
        except ProcessLookupError:
            continue  # it was killed meanwhile


def trace(kind: str, when: int, worker: int) -> list[str]:
    counted: list[str] = []
    over = False
    for number, arguments in stops(worker):
        over = over or number == SAY
        name = written(number, arguments) if kind == "writes" else str(number)
        if over or not name:
            continue
        counted.append(name)
        if len(counted) == when:
            os.kill(worker, signal.SIGKILL)
            over = True
    return counted


def main(kind: str, when: str, *command: str) -> None:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdin
        assert worker.stdout
        said = worker.stdout.readline()
        attach(worker.pid)
        worker.stdin.write(b"\n")
        worker.stdin.flush()
        counted = trace(kind, int(when), worker.pid)
        sys.stdout.write((said + worker.stdout.read()).decode() + " ".join(counted) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
