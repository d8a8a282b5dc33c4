"""Change file modes and times for a command under Landlock, which does not restrict them.

The filter suspends the command in the system call and notifies the supervisor, which runs this module. It
opens the file itself, checks where the file is, and makes the change through the same descriptor. So no link
and no rename can redirect the change.
"""

import array
import errno
import fcntl
import os
import struct
import time
from _socket import CMSG_SPACE, SCM_RIGHTS, SOL_SOCKET, socket

from hone.sandbox.seccomp import CALLS, MACHINES

_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_NOTICE = struct.Struct("=QIIiIQ6Q")
_ANSWER = struct.Struct("=QqiI")
_HERE = -100
_NO_FOLLOW, _EMPTY_PATH = 0x100, 0x1000
_NOW, _OMIT = (1 << 30) - 1, (1 << 30) - 2
_SET_ID = 0o6000


def hand_over(channel: socket, listener: int) -> None:
    channel.sendmsg([b"1"], [(SOL_SOCKET, SCM_RIGHTS, array.array("i", [listener]))])


def take_over(channel: socket) -> int | None:
    """Return the listener, or None if the command will never send one."""
    _, messages, _, _ = channel.recvmsg(1, CMSG_SPACE(4))
    numbers = array.array("i")
    for _, _, data in messages:
        numbers.frombytes(data[:4])
    return numbers[0] if numbers else None


def find_areas(writable: list[str], mounts: list[str]) -> dict[str, bool]:
    """Tell whether a change is allowed in each of these folders; the innermost one around a file decides. The
    helper does not see what was mounted for the command alone, so it is told (see `carving`)."""
    pairs = [each.split(":", 1) for each in mounts]
    return {**dict.fromkeys(writable, True), **{path: kind == "own" for kind, path in pairs if kind != "pin"}}


class AttributeHelper:
    """Makes changes for the command. If the command was made to run as the uid `dropped`, the helper has more
    rights than it, so it checks owners, too."""

    def __init__(self, listener: int, areas: dict[str, bool], machine: str, dropped: int | None) -> None:
        self.listener = listener
        self.areas = areas
        self.dropped = dropped
        column, _ = MACHINES[machine]
        self.names = {numbers[column]: name for name, numbers in CALLS.items()}

    def serve(self) -> None:
        """Handle one call."""
        notice = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(self.listener, _RECEIVE, notice)
        except OSError:  # the caller is gone
            return
        identity, pid, _, number, _, _, *arguments = _NOTICE.unpack(notice)
        try:
            self._perform(self.names[number], _Caller(self.listener, identity, pid), arguments)
            code = 0
        except OSError as error:
            code = error.errno or errno.EPERM
        try:
            fcntl.ioctl(self.listener, _SEND, _ANSWER.pack(identity, 0, -code, 0))
        except OSError:
            return

    def _perform(self, name: str, caller: "_Caller", arguments: list[int]) -> None:
        folder, path, mode, flags, *_ = [_HERE, *arguments] if name == "chmod" else arguments
        flags = flags if name in {"fchmodat2", "utimensat"} else 0
        file = caller.open(struct.unpack("=i", struct.pack("=I", folder & 0xFFFFFFFF))[0], path, flags)
        try:
            self._check(file)
            if name == "utimensat":
                os.utime(f"/proc/self/fd/{file}", ns=caller.times(mode, file))
            else:
                _refuse_if(bool(mode & _SET_ID))
                os.chmod(f"/proc/self/fd/{file}", mode & 0o7777)
        finally:
            os.close(file)

    def _check(self, file: int) -> None:
        place = os.readlink(f"/proc/self/fd/{file}")
        around = [each for each in self.areas if place == each or place.startswith(f"{each}/")]
        area = max(around, key=len, default="")
        _refuse_if(not self.areas.get(area, False))
        # A relative path shows the owner as the command sees it, any other path the one on disk.
        owners = (os.stat(area).st_uid, self.dropped)
        _refuse_if(self.dropped is not None and os.fstat(file).st_uid not in owners)


def _refuse_if(wrong: bool) -> None:
    if wrong:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


class _Caller:
    """The process that waits in its call, and its memory."""

    def __init__(self, listener: int, identity: int, pid: int) -> None:
        self.listener = listener
        self.identity = identity
        self.pid = pid

    def open(self, folder: int, address: int, flags: int) -> int:
        """Open the file that the call names, as a descriptor that only permits looking."""
        path = self._read(address, 4096).partition(b"\0")[0]
        if not path and not flags & _EMPTY_PATH:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        start = os.open(
            f"/proc/{self.pid}/{'cwd' if folder == _HERE else f'fd/{folder}'}", os.O_PATH | os.O_CLOEXEC
        )
        try:
            follow = os.O_NOFOLLOW if flags & _NO_FOLLOW else 0
            file = os.open(path, os.O_PATH | os.O_CLOEXEC | follow, dir_fd=start) if path else os.dup(start)
        finally:
            os.close(start)
        # The process number may be reused by now; then all of this was about another process.
        fcntl.ioctl(self.listener, _IS_VALID, struct.pack("=Q", self.identity))
        return file

    def times(self, address: int, file: int) -> tuple[int, int]:
        fields = struct.unpack("=qqqq", self._read(address, 32)) if address else (0, _NOW, 0, _NOW)
        status = os.fstat(file)
        before = (status.st_atime_ns, status.st_mtime_ns)
        return (_moment(fields[0], fields[1], before[0]), _moment(fields[2], fields[3], before[1]))

    def _read(self, address: int, size: int) -> bytes:
        """Read at least to the end of the page: a path may be at the very end of readable memory."""
        memory = os.open(f"/proc/{self.pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(memory, size, address)
        except OSError:
            return os.pread(memory, 4096 - address % 4096, address)
        finally:
            os.close(memory)


def _moment(seconds: int, part: int, before: int) -> int:
    if part == _OMIT:
        return before
    if part == _NOW:
        return time.time_ns()
    return seconds * 1_000_000_000 + part
