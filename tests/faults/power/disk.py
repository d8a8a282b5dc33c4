"""What a power cut leaves of a recording.

The model of a disk: what was synced is there. Of what was not, anything may be there: any sectors of a write,
in any order, the new size of a file without its bytes, any names. Assumed is what SQLite assumes, too: a
sector of 512 bytes is written whole or not at all, a write does not touch its neighbors, a name changes at
once, and a sync that has returned has told the truth.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from hashlib import sha256
from random import Random

from msgspec import structs

from tests.faults.power.recording import (
    Change,
    Entry,
    File,
    Operation,
    Recording,
    Rename,
    Resize,
    Sync,
    Tree,
    Write,
)

SECTORS = (512, 4096)
FLEETING = ("-shm", ".lock", ".tmp")
"""Names of files whose bytes mean nothing after a power cut."""


class Style(StrEnum):
    """Which of the unsynced changes are there after the cut."""

    NONE = "none"
    ALL = "all"
    NAMES = "names alone"
    BYTES = "bytes alone"
    PREFIX = "a prefix"
    JOURNALED = "names in order, bytes in any"
    ANY = "any"


WEIGHTS = {Style.PREFIX: 3, Style.JOURNALED: 4, Style.ANY: 4}
"""How often a style is drawn, if more than once: those with chance in them give more states."""


class Deaf(StrEnum):
    """A disk that takes some syncs for done and does nothing, to prove that this would be noticed."""

    NO = "no"
    FILES = "files"
    FOLDERS = "folders"


class Disk:
    """The settled state of all files, and the changes that no sync has covered."""

    def __init__(self, start: Tree, folders: frozenset[int]) -> None:
        self.files = dict(start.files)
        self.entries = dict(start.entries)
        self.folders = folders
        self.pending: list[tuple[int, Change]] = []

    def take(self, number: int, operation: Operation) -> None:
        if not isinstance(operation, Sync):
            self.pending.append((number, operation))
            return
        done = {
            at: change
            for at, change in self.pending
            if at < operation.upto and _is_of(operation.node, change)
        }
        self.pending = [each for each in self.pending if each[0] not in done]
        tree = self.tree([*done.values()])
        self.files, self.entries = tree.files, tree.entries

    def tree(self, changes: Sequence[Change], fill: Callable[[int], bytes] = bytes) -> Tree:
        """Return what is there if these of the pending changes are."""
        entries, contents = dict(self.entries), dict[int, bytearray]()
        modified: dict[int, int] = {}
        for change in changes:
            if isinstance(change, Rename):
                _rename(entries, change)
                continue
            known = self.files.get(change.node, File())
            data = contents.setdefault(change.node, bytearray(known.data))
            modified[change.node] = change.modified
            _alter(data, change, fill)
        files = self.files | {node: File(bytes(data), modified[node]) for node, data in contents.items()}
        return Tree(files, self.folders, entries)


def weaken(recording: Recording, deaf: Deaf) -> Recording:
    """Return the recording as such a disk takes it."""
    if deaf is Deaf.NO:
        return recording

    def hear(operation: Operation) -> Operation:
        if isinstance(operation, Sync) and (operation.node in recording.folders) == (deaf is Deaf.FOLDERS):
            return Sync(operation.node, 0)
        return operation

    return structs.replace(recording, operations=[hear(each) for each in recording.operations])


def replay(recording: Recording, point: int) -> Disk:
    """Return the disk after that many operations."""
    disk = Disk(recording.start, recording.folders)
    for number, operation in enumerate(recording.operations[:point]):
        disk.take(number, operation)
    return disk


def find_points(recording: Recording) -> list[int]:
    """Return after how many operations a power cut could take back some of them."""
    disk, points = Disk(recording.start, recording.folders), []
    for number, operation in enumerate(recording.operations):
        disk.take(number, operation)
        if disk.pending and not isinstance(operation, Sync):
            points.append(number + 1)
    return points


def cut(disk: Disk, random: Random) -> tuple[Style, Tree]:
    """Return one state that the power cut may leave."""
    [style] = random.choices(list(Style), [WEIGHTS.get(each, 1) for each in Style])
    return style, leave(disk, style, random, grown=style is not Style.PREFIX and random.random() < 0.5)


def leave(disk: Disk, style: Style, random: Random, *, grown: bool = False) -> Tree:
    """Return one state of a style. `grown`: files have the sizes from before the cut, whatever is there of
    their bytes."""
    sector = random.choice(SECTORS)
    fill = bytes if style is Style.ALL else random.choice((bytes, random.randbytes))
    pieces = [piece for _, change in disk.pending for piece in _split(change, sector)]
    kept = _choose(style, pieces, random)
    return disk.tree([*(_grow(disk) if grown else ()), *kept], fill)


def digest(tree: Tree) -> str:
    """Return what tells one state from another."""
    known = sha256()
    for path, node in tree.paths().items():
        data = b"" if path.endswith(FLEETING) else tree.files.get(node, File()).data
        known.update(f"{path} {node in tree.folders} {len(data)} ".encode() + data)
    return known.hexdigest()


def _choose(style: Style, pieces: Sequence[Change], random: Random) -> Iterator[Change]:
    chance, end = random.random(), random.randint(0, len(pieces))
    for number, piece in enumerate(pieces):
        named = isinstance(piece, Rename)
        kept = {
            Style.NONE: False,
            Style.ALL: True,
            Style.NAMES: named,
            Style.BYTES: not named,
            Style.PREFIX: number < end,
            Style.JOURNALED: number < end if named else random.random() < chance,
            Style.ANY: random.random() < chance,
        }
        if kept[style]:
            yield piece


def _grow(disk: Disk) -> Iterator[Change]:
    whole = disk.tree([change for _, change in disk.pending])
    for node, file in whole.files.items():
        if len(file.data) > len(disk.files.get(node, File()).data):
            yield Resize(node, len(file.data), file.modified)


def _is_of(node: int, change: Change) -> bool:
    """Return whether a sync of this file or folder covers the change."""
    if isinstance(change, Rename):
        return any(folder == node for (folder, _), _ in change.entries)
    return change.node == node


def _rename(entries: dict[Entry, int], change: Rename) -> None:
    for entry, node in change.entries:
        if node is None:
            entries.pop(entry, None)
        else:
            entries[entry] = node


def _alter(data: bytearray, change: Change, fill: Callable[[int], bytes]) -> None:
    if isinstance(change, Write):
        if len(data) < change.offset:
            data += fill(change.offset - len(data))
        data[change.offset : change.offset + len(change.data)] = change.data
    elif isinstance(change, Resize):
        del data[change.size :]
        data += fill(change.size - len(data))


def _split(change: Change, sector: int) -> Iterator[Change]:
    """Cut a write at the borders of sectors: each of them arrives alone."""
    if not isinstance(change, Write):
        yield change
        return
    at, end = change.offset, change.offset + len(change.data)
    while at < end:
        border = min(end, (at // sector + 1) * sector)
        data = change.data[at - change.offset : border - change.offset]
        yield Write(change.node, at, data, change.modified)
        at = border
