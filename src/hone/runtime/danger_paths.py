"""Judge a command by the paths that it deletes, writes or makes accessible to others."""

import os
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from hone.core.regex import regex
from hone.runtime.carriers import found_paths
from hone.runtime.simple import Simple

HISTORY = "deletes a repository's history"
EVERYTHING = "deletes everything in a folder"
OUTSIDE = "deletes files or folders outside the working folder"
UNNAMED = "deletes whatever another program names"
ELSEWHERE = "deletes files on another machine"
DEVICE = "writes to a device"
WRITES = "writes a file outside the working folder"
MOVES = "moves files away from outside the working folder"
TREE = "changes owners or rights of a whole tree"
RIGHTS = "changes owners or rights outside the working folder"

_HOMES = ("~", "$HOME", "${HOME}")
_FREE = ("/tmp/", "/var/tmp/", "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/", "/dev/shm/")
_LONGEST = 4096
"""The most characters in a path that the system accepts."""
_SCRATCH = ("/tmp", "/var/tmp")
_ALL = regex(r"(^|/)(?:\*{1,2}|\.\*|\.\[!?\^?\.?\]\*|\{\*,\.\*\})$")
_GIT = regex(r"(^|/)\.git(/\*?)?$")
_IN_PLACE = regex(r"-[a-z0-9E]{0,9}i|--in-place")
_REMOTE = regex(r"[^/]{1,200}:(?!//)|rsync://")


class NamedPath(Struct, frozen=True):
    """Where a command runs: the working folder, and the folder that the line has changed to, or None if
    unknown."""

    folder: str
    here: str | None

    def whole(self, path: str) -> str | None:
        """Return the path from the root or from a home; None if a variable hides it."""
        for name in ("$PWD", "${PWD}"):
            path = f".{path.removeprefix(name)}" if path.startswith(name) else path
        for name in _HOMES:
            if path.startswith(name):
                return f"~{path.removeprefix(name)}"
        if path.startswith(("$", "`")) or (self.here is None and not path.startswith("/")):
            return None
        return os.path.normpath(os.path.join(self.here or "/", path))

    def is_outside(self, path: str) -> bool:
        whole = self.whole(path)
        if whole is None or whole == self.folder or whole.startswith(self.folder + os.sep):
            return False
        return not whole.startswith(_FREE)

    def is_everything(self, path: str) -> bool:
        """Tell whether a path means the whole working folder, or one around it."""
        bare = _ALL.sub(r"\1", path) or "."
        whole = self.whole(bare)
        if whole is None:
            return bare == "." and path != "."
        return whole == self.folder or self.folder.startswith(whole.rstrip("/") + "/")


def go(here: str | None, command: Simple) -> str | None:
    """Return the folder of the line after this command."""
    if command.program == "popd" or command.open_ended:
        return None
    if command.program not in {"cd", "pushd"}:
        return here
    to = next(iter(command.operands), "~")
    there = None if to == "-" or to.startswith("+") else NamedPath("/", here).whole(to)
    return there if there and len(there) <= _LONGEST else None


def judge_paths(command: Simple, place: NamedPath) -> Iterator[str]:
    """Yield what is dangerous about the paths of this command."""
    yield from _deleted(command, place)
    yield from _written(command, place)
    yield from _opened(command, place)


def judge_deletion(paths: Sequence[str], place: NamedPath, *, whole_trees: bool = True) -> Iterator[str]:
    if any(_GIT.search(path) for path in paths):
        yield HISTORY
    elif any((whole_trees or _ALL.search(path)) and place.is_everything(path) for path in paths):
        yield EVERYTHING
    elif any(place.is_outside(path) for path in paths):
        yield OUTSIDE


def judge_writing(paths: Sequence[str], place: NamedPath) -> Iterator[str]:
    kept = [path for path in paths if path != "-" and path.rstrip("/") not in _SCRATCH]
    outside = [path for path in kept if place.is_outside(path)]
    if any(path.startswith("/dev/") for path in outside):
        yield DEVICE
    elif outside:
        yield WRITES


def _deleted(command: Simple, place: NamedPath) -> Iterator[str]:
    words, flags = command.words, command.flags
    match command.program:
        case "rm" | "srm":
            recursive = bool(flags & {"r", "R", "--recursive"})
            if recursive and command.open_ended:
                yield UNNAMED
            found = bool({"find", "fd", "fdfind", "xargs"} & {*command.carriers})
            yield from judge_deletion(command.operands, place, whole_trees=recursive or found)
        case "unlink" | "rmdir":
            yield from judge_deletion(command.operands, place)
        case "find" if "-delete" in words:
            yield from judge_deletion(found_paths("find", words), place)
        case "rsync" if any(re.match(r"--delete|--del$|--remove-source", word) for word in words):
            if not flags & {"n", "--dry-run", "--list-only"}:
                yield from _synced(command, place)


def _synced(command: Simple, place: NamedPath) -> Iterator[str]:
    paths = command.operands if "--remove-source-files" in command.flags else command.operands[-1:]
    if any(_REMOTE.match(path) for path in paths):
        yield ELSEWHERE
    yield from judge_deletion([path for path in paths if not _REMOTE.match(path)], place)


def _written(command: Simple, place: NamedPath) -> Iterator[str]:
    yield from judge_writing([*command.targets, *_written_by_words(command)], place)
    if command.program == "mv":
        if command.operands[-1:] == ("/dev/null",):
            yield "throws files away"
        into = command.values("t", "--target-directory")
        sources = [path for path in command.operands if path not in into] if into else command.operands[:-1]
        if any(place.is_outside(path) for path in sources):
            yield MOVES


def _written_by_words(command: Simple) -> Sequence[str]:
    operands = command.operands
    match command.program:
        case "tee" | "truncate":
            return operands
        case "dd":
            return [word[3:] for word in command.words if word.startswith("of=")]
        case "install" if "d" in command.flags:
            return operands
        case "cp" | "mv" | "install" | "ln":
            into = command.values("t", "--target-directory")
            return into or (operands[-1:] if len(operands) > 1 else ())
        case "sed" | "perl" | "ruby" if any(map(_IN_PLACE.match, command.words)):
            scripts = {*command.values("e", "--expression"), *command.values("f", "--file")}
            rest = [word for word in operands if word not in scripts]
            return rest if scripts else rest[1:]
        case "curl":
            return command.values("o", "--output")
        case "wget":
            return [*command.values("O", "--output-document"), *command.values("P", "--directory-prefix")]
        case "tar" | "bsdtar" if "x" in (*command.flags, *"".join(command.words[:1])):
            return command.values("C", "--directory")
        case "unzip":
            return command.values("d")
    return ()


def _opened(command: Simple, place: NamedPath) -> Iterator[str]:
    if command.program not in {"chmod", "chown", "chgrp"}:
        return
    paths, recursive = command.operands[1:], command.flags & {"R", "--recursive"}
    if recursive and any(place.is_outside(path) or place.is_everything(path) for path in paths):
        yield TREE
    elif any(place.is_outside(path) for path in paths):
        yield RIGHTS
