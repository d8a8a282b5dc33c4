"""Give up root: switch to a uid that owns nothing, and map the owner of the working folder to that uid.

A process that stays root keeps root's rights over files, whatever capabilities it drops. A process that is no
longer root cannot write to root's folder. So the folder is mounted again with its owner mapped. Files that
the command creates there belong to the folder's owner on disk, and the command owns nothing anywhere else.
"""

import os
import signal

from hone.sandbox import kernel

STAGE = "/tmp"
"""Seen by this process and the command only."""
_HIGHEST = 2**32 - 2


def stage(owned: list[str], lent: list[str], uid: int) -> None:
    """Mounts the owned trees, mapped, then the lent ones as they are, at STAGE/0, STAGE/1 …

    So bubblewrap can bind what the uid could not reach by its path. STAGE/passwd and STAGE/group know the uid
    by a name, because some programs do not start without one."""
    trees = [_mapped(path, uid) for path in owned] + [kernel.clone_tree(path) for path in lent]
    people = {path: _with_entry(path, uid) for path in ("/etc/passwd", "/etc/group")}
    kernel.mount_tmpfs(STAGE, "mode=0755,size=16m")
    for path, text in people.items():
        with open(f"{STAGE}/{os.path.basename(path)}", "wb", buffering=0) as file:
            file.write(text)
    for number, tree in enumerate(trees):
        target = f"{STAGE}/{number}"
        if os.path.isdir(tree):
            os.mkdir(target)
        else:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC))
        kernel.attach_tree(tree, target)
        os.close(tree)


def overlay(owned: list[str], uid: int) -> None:
    """Mounts the owned trees, mapped, where they are."""
    for path in owned:
        tree = _mapped(path, uid)
        kernel.attach_tree(tree, path)
        os.close(tree)


def drop(uid: int) -> None:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _with_entry(path: str, uid: int) -> bytes:
    entry = f"hone:x:{uid}:{uid}::/tmp/home:/bin/sh\n" if path == "/etc/passwd" else f"hone:x:{uid}:\n"
    with open(path, "rb") as file:
        return file.read().rstrip(b"\n") + b"\n" + entry.encode()


def _mapped(path: str, uid: int) -> int:
    tree = kernel.clone_tree(path)
    owner = os.stat(path)
    namespace = _namespace(_map(owner.st_uid, uid), _map(owner.st_gid, uid))
    kernel.map_owners(tree, namespace)
    os.close(namespace)
    return tree


def _map(owner: int, uid: int) -> str:
    """The owner and the uid change places, which leaves everybody else where they are."""
    low, high = sorted((owner, uid))
    swapped = {(owner, uid, 1), (uid, owner, 1)}
    rows = [*swapped, (0, 0, low), (low + 1, low + 1, high - low - 1)]
    rows.append((high + 1, high + 1, _HIGHEST - high))
    return "".join(f"{inside} {outside} {count}\n" for inside, outside, count in rows if count > 0)


def _namespace(uids: str, gids: str) -> int:
    """A user namespace that serves as a table of owners only: the process in it is gone at once."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            kernel.unshare(kernel.CLONE_NEWUSER)
            os.write(writer, b"1")
            signal.pause()
        finally:
            os._exit(1)
    os.close(writer)
    try:
        if not os.read(reader, 1):
            raise OSError("no user namespace can be made")
        for name, table in (("uid_map", uids), ("gid_map", gids)):
            with open(f"/proc/{child}/{name}", "wb", buffering=0) as file:
                file.write(table.encode())
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(reader)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
