"""Unpack the files of a skill so that commands can run its scripts, when a database serves the skills.

A folder is named by the digest of its contents and compared with the ledger before each use, so a file that
somebody changed or added does not last. Commands can read these folders but not write them.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from hone.core.errors import StoreError
from hone.files.tree import FileKind, FileTree
from hone.knowledge.skills.facts import digest_files, split_facts, touches_scripts

LASTS = 30 * 86_400 * 10**9
"""Nanoseconds for which the files of another version stay."""


class LaidOutSkills:
    """Puts the files of skills below one folder. They are approved: the ledger's contents hold nothing
    pending."""

    def __init__(self, root: Path, now: Callable[[], int] = time.time_ns) -> None:
        self._root = root
        self._now = now

    async def describe(self, name: str, files: Mapping[str, bytes]) -> str:
        """Return the sentence that says where the files of a skill are; empty unless one of them can run."""
        if not touches_scripts({}, files):
            return ""
        try:
            place = await asyncio.to_thread(self.lay_out, name, files)
        except StoreError as error:
            return f"Its scripts cannot be run here: {error}"
        return f"To run its scripts, use its files in {place}/"

    def lay_out(self, name: str, files: Mapping[str, bytes]) -> Path:
        """Return the folder with exactly these files. Raises StoreError."""
        own, tree = split_facts(files)[0], FileTree(self._root)
        folder = f"{name}/{digest_files(files)[:32]}"
        with tree.lock():
            for path, data in own.items():
                found = tree.read(f"{folder}/{path}")
                if found is None or found[0] != data:
                    tree.write(f"{folder}/{path}", data)
            for each in tree.listing(folder):
                if each.path.removeprefix(f"{folder}/") not in own:
                    _remove(tree, each.path, each.kind)
            for version in tree.folders(name):
                if f"{name}/{version}" != folder:
                    self._remove_old(tree, f"{name}/{version}")
        return self._root / folder

    def _remove_old(self, tree: FileTree, folder: str) -> None:
        """Remove other versions, unless a conversation may still run scripts from them."""
        lying = tree.listing(folder)
        if all(each.glance.modified < self._now() - LASTS for each in lying):
            for each in lying:
                _remove(tree, each.path, each.kind)


def _remove(tree: FileTree, path: str, kind: FileKind) -> None:
    if kind is not FileKind.FILE:
        raise StoreError(f"{path} is a {kind}, and only files of skills belong there. Remove it.")
    tree.remove(path)
