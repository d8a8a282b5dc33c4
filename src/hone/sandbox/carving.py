"""Seal and hide places by mounting over them, in a mount namespace that only the command sees.

Part of the supervisor, for Landlock: its rules cannot take anything away inside a folder they allow.
"""

import os

from hone.sandbox import kernel


def carve(mounts: list[str]) -> None:
    """Mount over places. Each is a kind (see `mounts`) and a path, outer ones before inner ones. Mount
    sources come from the original tree, so that something can be shown inside a hidden place."""
    pairs = [tuple(each.split(":", 1)) for each in mounts]
    trees = [_source(kind, path) for kind, path in pairs]
    for (_, path), tree in zip(pairs, trees, strict=True):
        if tree < 0:
            kernel.mount_tmpfs(path, "mode=0755,size=1m")
        else:
            _place(tree, path)
    for kind, path in pairs:
        if kind == "hide" and os.path.isdir(path):
            kernel.close_tmpfs(path)


def _source(kind: str, path: str) -> int:
    """Return what to mount, or -1 for an empty folder."""
    if kind == "hide":
        return -1 if os.path.isdir(path) else kernel.clone_tree(os.devnull)
    tree = kernel.clone_tree(path)
    if kind in ("seal", "lend"):
        kernel.make_read_only(tree)
    return tree


def _place(tree: int, path: str) -> None:
    """Mount a tree at a path. Inside a hidden place, the path has to be created again."""
    if not os.path.lexists(path):
        if os.path.isdir(tree):
            os.makedirs(path, 0o755)
        else:
            os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC))
    kernel.attach_tree(tree, path)
    os.close(tree)
