"""Linux system calls that Python does not wrap. Part of the supervisor, so it must load fast."""

import ctypes
import os
import struct
from _socket import AF_INET, SOCK_DGRAM, socket

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 36, 38

_AT_FDCWD = -100
_AT_EMPTY_PATH, _AT_RECURSIVE = 0x1000, 0x8000
_OPEN_TREE_CLONE = 1
_MOVE_MOUNT_F_EMPTY_PATH = 4
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT, _MS_BIND = 1, 2, 4, 1 << 5, 1 << 12
_MS_REC, _MS_PRIVATE = 1 << 14, 1 << 18
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV, _ATTR_IDMAP = 1, 2, 4, 1 << 20
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
# These numbers are the same on every architecture.
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442

libc = ctypes.CDLL(None, use_errno=True)


class _Attributes(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns"))


def checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def system_call(what: str, number: int, *arguments: object) -> int:
    """Call the kernel. Integers are passed as machine words, everything else by ctypes' rules."""
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return checked(libc.syscall(ctypes.c_long(number), *words), what)


def control(option: int, value: int) -> None:
    checked(libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl {option}")


def unshare(flags: int) -> None:
    checked(libc.unshare(ctypes.c_int(flags)), "unshare")


def leave_mounts() -> None:
    """Make new mounts visible to this process and its children only."""
    unshare(CLONE_NEWNS)
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)


def become_mounter() -> None:
    """Leave the shared mounts as an ordinary user can: in a user namespace with the same identity. The next
    program to be started has no right to mount. Fails where there are no such namespaces."""
    uid, gid = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER | CLONE_NEWNS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "wb", buffering=0) as file:
            file.write(text.encode())
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)


def leave_network() -> None:
    """Enter an empty network. Needs root, or what `become_mounter` provides."""
    unshare(CLONE_NEWNET)
    asking = socket(AF_INET, SOCK_DGRAM)
    wanted = struct.pack("16sH14x", b"lo", _IFF_UP)
    checked(libc.ioctl(asking.fileno(), ctypes.c_ulong(_SIOCSIFFLAGS), wanted), "ioctl lo")
    asking.close()


def mount_tmpfs(path: str, options: str) -> None:
    _mount("tmpfs", path, "tmpfs", _MS_NOSUID | _MS_NODEV, options)


def close_tmpfs(path: str) -> None:
    """Make a tmpfs read-only from now on."""
    _mount(None, path, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    texts = [None if each is None else os.fsencode(each) for each in (source, target, kind, options)]
    checked(libc.mount(*texts[:3], ctypes.c_ulong(flags), texts[3]), f"mount {target}")


def clone_tree(path: str) -> int:
    """Return a copy of the mount at a path, as a descriptor that is not mounted anywhere yet."""
    flags = _OPEN_TREE_CLONE | _AT_RECURSIVE | os.O_CLOEXEC
    return system_call(f"open_tree {path}", _OPEN_TREE, _AT_FDCWD, os.fsencode(path), flags)


def map_owners(tree: int, namespace: int) -> None:
    """Map the owners of files in a tree by a user namespace. Fails if the file system does not support
    that."""
    _set_attributes(tree, _Attributes(_ATTR_IDMAP | _ATTR_NOSUID | _ATTR_NODEV, 0, 0, namespace))


def make_read_only(tree: int) -> None:
    _set_attributes(tree, _Attributes(_ATTR_RDONLY, 0, 0, 0))


def _set_attributes(tree: int, attributes: _Attributes) -> None:
    size = ctypes.sizeof(attributes)
    flags = _AT_EMPTY_PATH | _AT_RECURSIVE
    system_call("mount_setattr", _MOUNT_SETATTR, tree, b"", flags, ctypes.byref(attributes), size)


def attach_tree(tree: int, path: str) -> None:
    arguments = (tree, b"", _AT_FDCWD, os.fsencode(path), _MOVE_MOUNT_F_EMPTY_PATH)
    system_call(f"move_mount {path}", _MOVE_MOUNT, *arguments)
