"""Filter the system calls that neither bubblewrap nor Landlock can block.

In every sandbox: no set-user-id files (in root's folder they would give root's rights to anyone who runs
them), no new namespaces, no keyrings, no input into terminals. Under Landlock also: no sockets beyond those
requested, because Landlock allows UDP and the sockets of other programs, such as the message bus that starts
programs for a user; no memory shared with other programs; and changes of mode and times by path go to the
AttributeHelper. Part of the supervisor, so it must load fast.
"""

import ctypes
import errno
import os
import struct

from hone.sandbox import kernel

Step = tuple[int, int, int, int]
"""One instruction: code, jump if true, jump if false, operand."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ASK, _KILL, _ERRNO = 0x7FFF0000, 0x7FC00000, 0x80000000, 0x00050000
_SET_FILTER, _WITH_LISTENER = 1, 8
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_FOREIGN_NUMBERS = 0x40000000
"""From here on x86 counts the calls of another calling convention."""

_CREATES = os.O_CREAT | 0o20000000  # the bit of O_TMPFILE that is not O_DIRECTORY
_SET_ID = 0o6000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_INTERNET = (2, 10)

# name: numbers on x86_64 and on aarch64; -1 where there is no such call
CALLS = {
    "open": (2, -1),
    "creat": (85, -1),
    "openat": (257, 56),
    "openat2": (437, 437),
    "seccomp": (317, 277),
    "chmod": (90, -1),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "mknod": (133, -1),
    "mknodat": (259, 33),
    "chown": (92, -1),
    "lchown": (94, -1),
    "fchownat": (260, 54),
    "utime": (132, -1),
    "utimes": (235, -1),
    "futimesat": (261, -1),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
    "clone": (56, 220),
    "clone3": (435, 435),
    "unshare": (272, 97),
    "setns": (308, 268),
    "io_uring_setup": (425, 425),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "ioctl": (16, 29),
    "socket": (41, 198),
    "prlimit64": (302, 261),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
}
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""The column in CALLS, and the kernel's name of the architecture."""

_BY_PATH = ("chown", "lchown", "fchownat", "utime", "utimes", "futimesat", "file_setattr")
_ATTRIBUTES = ("setxattr", "lsetxattr", "setxattrat", "removexattr", "lremovexattr", "removexattrat")
_BY_CLERK = ("chmod", "fchmodat", "fchmodat2")
_SHARED_MEMORY = ("shmget", "shmat", "msgget", "semget", "mq_open")


def program(machine: str, *, fenced: bool, network: bool) -> bytes:
    """Return the filter. `fenced` is for Landlock, and only there does `network` matter. Raises KeyError for
    other machines."""
    column, architecture = MACHINES[machine]
    steps: list[Step] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        steps += [(_AT_LEAST, 0, 1, _FOREIGN_NUMBERS), _refuse(errno.ENOSYS)]
    for name, block in (*(_fence(network) if fenced else ()), *_everywhere()):
        number = CALLS[name][column]
        if number >= 0:
            steps += [(_EQUAL, 0, len(block), number), *block]
    steps.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def install(code: bytes, machine: str) -> int:
    """Install the filter for this process and everything it becomes. It must already be unable to gain
    privileges. Return the descriptor that delivers the calls for the helper to decide."""
    buffer = ctypes.create_string_buffer(code, len(code))
    filter = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))
    number = CALLS["seccomp"][MACHINES[machine][0]]
    return kernel.system_call("seccomp", number, _SET_FILTER, _WITH_LISTENER, ctypes.c_char_p(filter))


def _everywhere() -> list[tuple[str, list[Step]]]:
    """Return the blocks for every sandbox. The first block for a call decides, so a fence's blocks precede
    these."""
    bits = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "mknod": 1, "mknodat": 2}
    refused = ("clone3", "openat2", "io_uring_setup", "add_key", "request_key", "keyctl")
    return [
        *((name, _if_any_bit(argument, _SET_ID)) for name, argument in bits.items()),
        ("open", _if_creating(1, 2)),
        ("openat", _if_creating(2, 3)),
        ("clone", _if_any_bit(0, kernel.CLONE_NEWUSER)),
        ("unshare", _if_any_bit(0, kernel.CLONE_NEWUSER)),
        ("setns", [_refuse(errno.EPERM)]),
        ("ioctl", _if_among(1, (_TIOCSTI, _TIOCLINUX), _refuse(errno.EPERM), _PASS)),
        # Their arguments are in memory, invisible to a filter; programs fall back to the older calls.
        *((name, [_refuse(errno.ENOSYS)]) for name in refused),
    ]


def _fence(network: bool) -> list[tuple[str, list[Step]]]:
    no_socket = _refuse(errno.EACCES)
    return [
        *((name, [_refuse(errno.EPERM)]) for name in (*_BY_PATH, *_SHARED_MEMORY)),
        # As on a file system without them: programs continue without.
        *((name, [_refuse(errno.EOPNOTSUPP)]) for name in _ATTRIBUTES),
        *((name, [_ASKING]) for name in _BY_CLERK),
        ("utimensat", _if_pointer(1, _ASKING)),
        ("prlimit64", _if_any_bit(0, 0xFFFFFFFF)),
        ("socket", _if_among(0, _INTERNET, _PASS, no_socket) if network else [no_socket]),
    ]


def _refuse(number: int) -> Step:
    return (_RETURN, 0, 0, _ERRNO | number)


def _load(argument: int, *, upper: bool = False) -> Step:
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * argument + 4 * upper)


_PASS: Step = (_RETURN, 0, 0, _ALLOW)
_ASKING: Step = (_RETURN, 0, 0, _ASK)


def _if_any_bit(argument: int, bits: int) -> list[Step]:
    return [_load(argument), (_ANY_BIT, 0, 1, bits), _refuse(errno.EPERM), _PASS]


def _if_creating(flags: int, mode: int) -> list[Step]:
    """Return a check that applies only when a file is created, since only then does the mode matter."""
    return [_load(flags), (_ANY_BIT, 1, 0, _CREATES), _PASS, *_if_any_bit(mode, _SET_ID)]


def _if_among(argument: int, values: tuple[int, ...], then: Step, otherwise: Step) -> list[Step]:
    checks = [(_EQUAL, len(values) - number, 0, value) for number, value in enumerate(values)]
    return [_load(argument), *checks, otherwise, then]


def _if_pointer(argument: int, then: Step) -> list[Step]:
    lower, upper = _load(argument), _load(argument, upper=True)
    return [lower, (_EQUAL, 0, 2, 0), upper, (_EQUAL, 1, 0, 0), then, _PASS]
