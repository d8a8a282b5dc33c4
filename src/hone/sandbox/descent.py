"""Give up root: switch to a uid that owns nothing, and map the owner of the working folder to that uid.

A process that stays root keeps root's rights over files, whatever capabilities it drops. A process that is no
longer root cannot write to root's folder. So the folder is mounted again with its owner mapped. Files that
the command creates there belong to the folder's owner on disk, and the command owns nothing anywhere else.
"""

import os
import signal

from hone.sandbox import kernel

STAGE = "/tmp"
"""Only this process and the command see it."""
_HIGHEST = 2**32 - 2


def stage(trees: list[str], uid: int) -> None:
    """Mounts the trees, mapped, at STAGE/0, STAGE/1 … Each is `own:` or `lend:` and its path; a lent one may
    lie on a file system that cannot map, and is then mounted as it is.

    So bubblewrap can bind what the uid could not reach by its path. STAGE/passwd and STAGE/group know the uid
    by a name, because some programs do not start without one."""
    mapping = _Mapping(uid)
    clones = [_staged(each, mapping) for each in trees]
    people = {path: _with_entry(path, uid) for path in ("/etc/passwd", "/etc/group")}
    kernel.mount_tmpfs(STAGE, "mode=0755,size=16m")
    for path, text in people.items():
        with open(f"{STAGE}/{os.path.basename(path)}", "wb", buffering=0) as file:
            file.write(text)
    for number, tree in enumerate(clones):
        target = f"{STAGE}/{number}"
        if os.path.isdir(tree):
            os.mkdir(target)
        else:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC))
        kernel.attach_tree(tree, target)
        os.close(tree)
    mapping.close()


def overlay(owned: list[str], uid: int) -> None:
    """Mount the owned trees in place, mapped."""
    mapping = _Mapping(uid)
    for path in owned:
        tree = mapping.clone(path)
        kernel.attach_tree(tree, path)
        os.close(tree)
    mapping.close()


def drop(uid: int) -> None:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _with_entry(path: str, uid: int) -> bytes:
    entry = f"hone:x:{uid}:{uid}::/tmp/home:/bin/sh\n" if path == "/etc/passwd" else f"hone:x:{uid}:\n"
    with open(path, "rb") as file:
        return file.read().rstrip(b"\n") + b"\n" + entry.encode()


def _staged(tree: str, mapping: "_Mapping") -> int:
    kind, _, path = tree.partition(":")
    try:
        return mapping.clone(path)
    except OSError:
        if kind == "own":
            raise
        return kernel.clone_tree(path)


class _Mapping:
    """Clones trees so that their owner appears as the uid. Trees of the same owner share a table."""

    def __init__(self, uid: int) -> None:
        self.uid = uid
        self.namespaces: dict[tuple[int, int], int] = {}

    def clone(self, path: str) -> int:
        owner = os.stat(path)
        key = (owner.st_uid, owner.st_gid)
        if key not in self.namespaces:
            self.namespaces[key] = _namespace(_map(key[0], self.uid), _map(key[1], self.uid))
        tree = kernel.clone_tree(path)
        try:
            kernel.map_owners(tree, self.namespaces[key])
        except OSError:
            os.close(tree)
            raise
        return tree

    def close(self) -> None:
        for each in self.namespaces.values():
            os.close(each)


def _map(owner: int, uid: int) -> str:
    """Swap the owner and the uid, which leaves everybody else unchanged."""
    low, high = sorted((owner, uid))
    swapped = {(owner, uid, 1), (uid, owner, 1)}
    rows = [*swapped, (0, 0, low), (low + 1, low + 1, high - low - 1)]
    rows.append((high + 1, high + 1, _HIGHEST - high))
    return "".join(f"{inside} {outside} {count}\n" for inside, outside, count in rows if count > 0)


def _namespace(uids: str, gids: str) -> int:
    """Return a user namespace that only serves as a table of owners: its process ends at once."""
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
