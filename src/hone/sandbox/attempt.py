"""Try to break out of the sandbox, and print each claim that does not hold.

This file runs inside the sandbox; its text is passed to the interpreter. It imports _socket instead of
socket, which takes ten times as long to load.
"""

import _socket
import os
import sys
from collections.abc import Callable


def reached(claim: str, action: Callable[..., object], *arguments: object) -> None:
    try:
        if action(*arguments) is not False:
            print(claim)
    except OSError:
        return


def talk(family: int, kind: int, address: str | tuple[str, int]) -> None:
    each = _socket.socket(family, kind)
    each.settimeout(2)
    each.connect(address)
    each.send(b"x")


def own(folder: str, name: str) -> None:
    """What a command must be able to do; an error ends the attempt."""
    path = f"{folder}/.hone-trial-{name}"
    with open(path, "x"):
        reached("RIGHTS", os.chmod, path, 0o4755)
    os.unlink(path)


def touch(bait: str) -> None:
    file = f"{bait}/file"
    reached("FILES", open, file)
    reached("FILES", open, file, "a")
    reached("FILES", open, f"{bait}/new", "x")
    reached("FILES", os.truncate, file, 0)
    reached("FILES", os.chmod, file, 0o600)
    reached("FILES", os.utime, file, (0, 0))


def see(path: str) -> bool:
    """Whether a hidden folder has anything in it, or a hidden file is there: a device covers it otherwise."""
    if os.path.isdir(path):
        return bool(os.listdir(path))
    with open(path, "rb"):
        return os.path.isfile(path)


def change(path: str, name: str) -> None:
    """Opens a sealed file to write, or makes one in a sealed folder; leaves everything as it was."""
    if not os.path.isdir(path):
        with open(path, "ab"):
            return
    made = f"{path}/.hone-trial-{name}"
    with open(made, "x"):
        os.unlink(made)


def look_around(pid: str, namespace: str) -> None:
    try:
        alone = os.readlink("/proc/self/ns/pid") != namespace
    except OSError:
        alone = False
    if not alone:
        reached("PROCESSES", os.kill, int(pid), 0)
        reached("PROCESSES", open, f"/proc/{pid}/environ")
        reached("PROCESSES", open, f"/proc/{pid}/cmdline")


def call_out(bait: str, name: str, port: str, datagrams: str) -> None:
    reached("PROCESSES", talk, _socket.AF_UNIX, _socket.SOCK_STREAM, f"{bait}/socket")
    reached("PROCESSES", talk, _socket.AF_UNIX, _socket.SOCK_STREAM, f"\0{name}")
    reached("NETWORK", talk, _socket.AF_INET, _socket.SOCK_STREAM, ("127.0.0.1", int(port)))
    # It may be sent to nobody: whether it came is seen outside.
    reached("SENT", talk, _socket.AF_INET, _socket.SOCK_DGRAM, ("127.0.0.1", int(datagrams)))


def main() -> None:
    bait, pid, namespace, port, datagrams, name, folder, tmp, count, *paths = sys.argv[1:]
    for path in filter(None, (folder, tmp)):
        own(path, name)
    touch(bait)
    for path in paths[: int(count)]:
        reached("FILES", see, path)
    for path in paths[int(count) :]:
        reached("FILES", change, path, name)
    look_around(pid, namespace)
    call_out(bait, name, port, datagrams)
    reached("RIGHTS", lambda: os.geteuid() == 0)
    reached("RIGHTS", os.chroot, "/")
    reached("RIGHTS", os.setuid, 0)
    print("fits")


if __name__ == "__main__":
    main()
