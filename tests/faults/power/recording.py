"""What a process does to the files below a folder: each write with its bytes, each new name, each sync.

Every file that is ever there keeps a second name in a vault, so that a crash state can be built from the very
same files: Hone knows a file it has published by its number.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from msgspec import Struct

from tests.faults.points.tracer import Call, Kind, Watch

TOP = 0
"""The node of the folder that is watched."""
Entry = tuple[int, str]
"""A folder's node and a name in it."""


class Write(Struct, frozen=True):
    node: int
    offset: int
    data: bytes
    modified: int


class Resize(Struct, frozen=True):
    node: int
    size: int
    modified: int


class Touch(Struct, frozen=True):
    """Set the time of a file."""

    node: int
    modified: int


class Rename(Struct, frozen=True):
    """Change names all at once: make, link, move or remove. A name with no node is gone."""

    entries: tuple[tuple[Entry, int | None], ...]


class Sync(Struct, frozen=True):
    """Put on the disk what was done to a file or a folder among the first `upto` operations."""

    node: int
    upto: int


Change = Write | Resize | Touch | Rename
Operation = Change | Sync


class File(Struct, frozen=True):
    data: bytes = b""
    modified: int = 0


class Tree(Struct, frozen=True):
    files: dict[int, File]
    folders: frozenset[int]
    entries: dict[Entry, int]

    def paths(self) -> dict[str, int]:
        """Return every name below the top with its node; folders come before what they hold."""
        below: dict[int, list[tuple[str, int]]] = {}
        for (folder, name), node in sorted(self.entries.items()):
            below.setdefault(folder, []).append((name, node))
        found, left = dict[str, int](), [("", TOP)]
        while left:
            path, folder = left.pop()
            for name, node in below.get(folder, []):
                found[f"{path}{name}"] = node
                if node in self.folders:
                    left.append((f"{path}{name}/", node))
        return found


class Recording(Struct, frozen=True):
    """`marks` tells how many operations had ended each time the process said something."""

    start: Tree
    folders: frozenset[int]
    operations: Sequence[Operation]
    marks: Sequence[int]


Finish = Callable[[int], None]


@dataclass
class Recorder(Watch):
    """Watches a process and records what it does to files. An operation counts when its call returns."""

    vault: Path = Path()
    operations: list[Operation] = field(default_factory=list)
    said: list[int] = field(default_factory=list)
    _nodes: dict[int, int] = field(default_factory=dict)
    """By the number of a file or folder."""
    _entries: dict[Entry, int] = field(default_factory=dict)
    _folders: set[int] = field(default_factory=set)
    _begun: dict[int, Finish] = field(default_factory=dict)
    _new: Iterator[int] = field(default_factory=lambda: count(TOP + 1))

    def __post_init__(self) -> None:
        self._nodes[os.stat(self.root).st_ino] = TOP
        self._folders.add(TOP)
        for place in sorted(self.root.rglob("*")):
            self._enter(place)
        files = {node: self._read(node) for node in self._nodes.values() if node not in self._folders}
        self._start = Tree(files, frozenset(self._folders), dict(self._entries))

    def recording(self) -> Recording:
        return Recording(self._start, frozenset(self._folders), self.operations, self.said)

    def counts(self, place: str) -> bool:
        """The folder itself counts, too: a sync of it settles the names in it."""
        return place == str(self.root) or super().counts(place)

    def speaks(self) -> None:
        self.said.append(len(self.operations))

    def begins(self, thread: int, call: Call, arguments: Sequence[int]) -> None:
        begin = BEGINNINGS.get(call.name)
        if call.kind is Kind.WRITE and begin:
            finish = begin(self, call, arguments)
            if finish:
                self._begun[thread] = finish

    def ends(self, thread: int, result: int) -> None:
        finish = self._begun.pop(thread, None)
        if finish and result >= 0:
            finish(result)

    def write(self, call: Call, arguments: Sequence[int]) -> Finish | None:
        handle, address, size, offset = arguments[:4]
        node = self._nodes.get(os.stat(self.handle(handle)).st_ino)
        if node is None:
            return None
        data = self.memory(address, size)
        at = self._offset(handle) if call.name == "write" else offset
        return lambda result: self._add(Write(node, at, data[:result], self._modified(node)))

    def resize(self, call: Call, arguments: Sequence[int]) -> Finish | None:
        node = self._nodes.get(os.stat(self.handle(arguments[0])).st_ino)
        if node is None:
            return None
        return lambda _: self._add(Resize(node, arguments[1], self._modified(node)))

    def touch(self, call: Call, arguments: Sequence[int]) -> Finish | None:
        node = self._nodes.get(os.stat(self.handle(arguments[0])).st_ino)
        if node is None:
            return None
        return lambda _: self._add(Touch(node, self._modified(node)))

    def sync(self, call: Call, arguments: Sequence[int]) -> Finish | None:
        node, upto = self._nodes.get(os.stat(self.handle(arguments[0])).st_ino), len(self.operations)
        if node is None:
            return None
        return lambda _: self._add(Sync(node, upto))

    def make(self, call: Call, arguments: Sequence[int]) -> Finish | None:
        """A file that is opened and may be made or emptied, or a folder."""
        place = self.root / call.place
        if place.exists():
            node = self._nodes[place.stat().st_ino]
            emptied = call.name == "create" and arguments[2] & os.O_TRUNC
            return (lambda _: self._add(Resize(node, 0, self._modified(node)))) if emptied else None

        def finish(_: int) -> None:
            entry, node = self._enter(place)
            self._add(Rename(((entry, node),)))

        return finish

    def move(self, call: Call, arguments: Sequence[int]) -> Finish:
        old = self._entry(self.root / call.place)
        new = self._entry(self._second(call, arguments))
        node = self._entries[old]
        gone: tuple[tuple[Entry, int | None], ...] = () if call.name.startswith("link") else ((old, None),)
        return lambda _: self._rename((*gone, (new, node)))

    def remove(self, call: Call, arguments: Sequence[int]) -> Finish | None:
        entry = self._entry(self.root / call.place)
        if entry not in self._entries:
            return None
        return lambda _: self._rename(((entry, None),))

    def _second(self, call: Call, arguments: Sequence[int]) -> Path:
        if call.name in ("rename", "link"):
            return Path(os.readlink(self.handle(-100)), self.text(arguments[1]))
        return Path(os.readlink(self.handle(arguments[2])), self.text(arguments[3]))

    def _rename(self, entries: tuple[tuple[Entry, int | None], ...]) -> None:
        for entry, node in entries:
            if node is None:
                gone = self._entries.pop(entry)
                if gone in self._folders:  # its number may come back
                    self._nodes = {number: each for number, each in self._nodes.items() if each != gone}
            else:
                self._entries[entry] = node
        self._add(Rename(entries))

    def _enter(self, place: Path) -> tuple[Entry, int]:
        """Give a node to what was not there before."""
        entry, node, number = self._entry(place), next(self._new), place.lstat().st_ino
        self._nodes[number] = self._entries[entry] = node
        if place.is_dir():
            self._folders.add(node)
        else:
            os.link(place, self.vault / str(node))
        return entry, node

    def _entry(self, place: Path) -> Entry:
        return self._nodes[place.parent.stat().st_ino], place.name

    def _add(self, operation: Operation) -> None:
        self.operations.append(operation)

    def _modified(self, node: int) -> int:
        return (self.vault / str(node)).stat().st_mtime_ns

    def _read(self, node: int) -> File:
        return File((self.vault / str(node)).read_bytes(), self._modified(node))

    def _offset(self, handle: int) -> int:
        """Where the next plain write of a descriptor goes."""
        with open(f"/proc/{self.worker}/fdinfo/{handle}") as lines:
            known = dict(line.split(":", 1) for line in lines)
        if int(known["flags"], 8) & os.O_APPEND:
            return os.stat(self.handle(handle)).st_size
        return int(known["pos"])


Begin = Callable[[Recorder, Call, Sequence[int]], Finish | None]
BEGINNINGS: dict[str, Begin] = {
    **dict.fromkeys(("write", "pwrite64"), Recorder.write),
    **dict.fromkeys(("fsync", "fdatasync"), Recorder.sync),
    **dict.fromkeys(("create", "mkdir", "mkdirat"), Recorder.make),
    **dict.fromkeys(("rename", "renameat", "renameat2", "link", "linkat"), Recorder.move),
    **dict.fromkeys(("unlink", "unlinkat", "rmdir"), Recorder.remove),
    "ftruncate": Recorder.resize,
    "utimensat": Recorder.touch,
}
"""What is recorded. A call that is missing here shows when the recording is compared with the folder."""
