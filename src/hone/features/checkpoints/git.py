"""Ask git which files of a folder it knows, and for their contents.

Nothing of the repository can run: no hook, no filter, no text conversion, no monitor, no fetch. Git only
reads its index and its objects here, and never compares a file with them; our code does, by what the index
noted when git last wrote the file.
"""

import os
import re
import subprocess
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from hone.core.regex import regex

PATIENCE = 20.0
"""Seconds that one call may take."""
_SETTINGS = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.untrackedCache": "false",
    "core.quotePath": "false",
}
_KEPT = regex(r"PATH|HOME|TMPDIR")
_ENTRY = regex(
    r"(\d{6}) ([0-9a-f]{40,64}) \d\t([^\0]+)\0  ctime: (\d+):(\d+)\n  mtime: (\d+):(\d+)\n"
    r"  dev: \d+\tino: (\d+)\n  uid: \d+\tgid: \d+\n  size: (\d+)\tflags: [0-9a-f]+\n",
    re.DOTALL,
)
_FILES = ("100644", "100755")
_ATTRIBUTES = ("filter", "working-tree-encoding", "ident", "eol")
_UNSET = (b"unspecified", b"unset")
_PLAIN = {b"eol": (*_UNSET, b"lf")}
"""Values of attributes with which a file has the bytes of git's object."""
_CONVERTING = regex(rb"(?i)^core\.(?:autocrlf (?!false$)|eol crlf$)", re.MULTILINE)
_INODES = 2**32
"""The index stores 32 bits of an inode's number."""


class Tracked(NamedTuple):
    """A file in the index. Times are in nanoseconds. Without an `object` it is a link, or a file whose bytes
    differ from git's."""

    object: str
    changed: int
    modified: int
    inode: int
    size: int

    def is_clean(self, status: os.stat_result, indexed: int) -> bool:
        """Tell, without reading it, whether a file is what git has. One that was modified when the index was
        written, or later, may have changed unnoticed."""
        seen = (status.st_ctime_ns, status.st_mtime_ns, status.st_ino % _INODES, status.st_size)
        return bool(self.object) and seen == self[1:] and self.modified < indexed


class GitWorktree:
    """The working tree around a folder, or a part of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._index = Path()

    @classmethod
    def around(cls, folder: Path) -> "GitWorktree | None":
        """Return the working tree; None if there is none, if git is not installed, or if git does not trust
        its owner."""
        if not any((each / ".git").exists() for each in (folder, *folder.parents)):
            return None
        found = cls(folder)
        return found if found.open() else None

    def open(self) -> bool:
        """Find the index. Tell whether there is one that git lets us read."""
        rows = (self._git("rev-parse", "--is-inside-work-tree", "--git-path", "index") or b"").split(b"\n", 1)
        self._index = self._folder / os.fsdecode(rows[-1].removesuffix(b"\n"))
        return rows[0] == b"true"

    def tracked(self) -> tuple[dict[str, Tracked], int]:
        """Return what the index knows about the files below the folder, by relative path, and when the index
        was written; 0 if no file can be considered unchanged."""
        rows = self._git("ls-files", "--stage", "--debug", "-z")
        endings = self._git("config", "--get-regexp", r"^core\.(autocrlf|eol)$", fine=(0, 1))
        if rows is None:
            return {}, 0
        try:
            indexed = os.stat(self._index).st_mtime_ns
        except OSError:
            indexed = 0
        if endings is None or _CONVERTING.search(endings):
            indexed = 0
        files = _parse(rows)
        for path in self._converted(files):
            files[path] = files[path]._replace(object="")
        return files, indexed

    def untracked(self) -> list[str]:
        """Return files that git neither knows nor ignores. A nested repository is a name with a final
        slash."""
        rows = self._git("ls-files", "--others", "--exclude-standard", "-z") or b""
        return [os.fsdecode(row) for row in rows.split(b"\0") if row]

    def ignored(self, paths: Iterable[str]) -> set[str]:
        """Return those of the paths that git ignores."""
        names = b"".join(os.fsencode(path) + b"\0" for path in paths)
        if not names:
            return set()
        rows = self._git("check-ignore", "--stdin", "-z", given=names, fine=(0, 1)) or b""
        return {os.fsdecode(row) for row in rows.split(b"\0") if row}

    def contents(self, objects: Iterable[str]) -> dict[str, bytes]:
        """Return contents by object id. What git no longer has is missing."""
        wanted = sorted(set(objects))
        if not wanted:
            return {}
        data = self._git("cat-file", "--batch", given="".join(f"{each}\n" for each in wanted).encode())
        return _unbatch(data or b"")

    def _converted(self, paths: Collection[str]) -> set[str]:
        """Return the files whose bytes are not those of git's object."""
        names = b"".join(os.fsencode(path) + b"\0" for path in paths)
        rows = self._git("check-attr", "--stdin", "-z", *_ATTRIBUTES, given=names) if names else b""
        if rows is None:
            return set(paths)
        if rows.count(b"\0unspecified\0") == len(paths) * len(_ATTRIBUTES):
            return set()
        words = rows.split(b"\0")
        return {
            os.fsdecode(path)
            for path, name, value in zip(words[::3], words[1::3], words[2::3], strict=False)
            if value not in _PLAIN.get(name, _UNSET)
        }

    def _git(self, *arguments: str, given: bytes = b"", fine: tuple[int, ...] = (0,)) -> bytes | None:
        """Return git's output; None if it cannot be asked."""
        settings = [word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}")]
        try:
            done = subprocess.run(
                ["git", "--no-optional-locks", *settings, *arguments],
                cwd=self._folder,
                env=_environment(),
                input=given,
                capture_output=True,
                timeout=PATIENCE,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout if done.returncode in fine else None


def _parse(rows: bytes) -> dict[str, Tracked]:
    """Parse the index as git prints it. An unexpected row makes the whole unusable."""
    text, at, files = os.fsdecode(rows), 0, {}
    for found in _ENTRY.finditer(text):
        if found.start() != at:
            return {}
        at = found.end()
        mode, object, path, *numbers = found.groups()
        ctime, ctime_ns, mtime, mtime_ns, inode, size = map(int, numbers)
        changed, modified = ctime * 10**9 + ctime_ns, mtime * 10**9 + mtime_ns
        files[path] = Tracked(object if mode in _FILES else "", changed, modified, inode, size)
    return files if at == len(text) else {}


def _unbatch(data: bytes) -> dict[str, bytes]:
    contents, at = {}, 0
    while at < len(data):
        end = data.index(b"\n", at)
        name, *about = data[at:end].decode("ascii", "replace").split()
        at = end + 1
        if len(about) == 2 and about[0] == "blob":
            size = int(about[1])
            contents[name] = data[at : at + size]
            at += size + 1
    return contents


def _environment() -> dict[str, str]:
    """Return git's environment. No protocol is allowed, so a missing object is not fetched."""
    kept = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
    return kept | {
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
