"""Read a Git repository without running Git: no configuration, hook, filter or pager is involved.

Loose objects and packs are read; alternates, reftables and SHA-256 repositories are not. Anything unreadable
is None. A command may have written everything here, so sizes, depths and counts are bounded.
"""

import os
import struct
import zlib
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from hone.files.atomic import open_file
from hone.files.opening import insist

LARGEST = 8 * 2**20
"""The most bytes of an object."""
_DEEPEST = 64
"""The longest chain of deltas, and the deepest nesting of folders."""
_REFS = 20_000
_KINDS = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_OFFSET, _REFERENCE = 6, 7
_INDEX = b"\xfftOc\x00\x00\x00\x02"
_NAMES = 8 + 256 * 4
_HEX = frozenset("0123456789abcdef")


class GitObject(Struct, frozen=True):
    kind: str
    data: bytes


class Commit(Struct, frozen=True):
    tree: str
    parents: tuple[str, ...]
    message: str
    at: int = 0


class Repository:
    """`top` is the folder with the `.git`. Objects may be in the main repository of a worktree."""

    def __init__(self, top: Path, folder: Path) -> None:
        self.top = top
        self.folder = folder
        common = _line(folder / "commondir")
        self.common = Path(os.path.normpath(folder / common)) if common else folder
        self._packs: dict[str, _Pack] = {}

    @classmethod
    def find(cls, path: Path) -> "Repository | None":
        """Return the repository around a path."""
        for top in (path, *path.parents):
            place = top / ".git"
            if place.is_dir():
                return cls(top, place)
            pointer = read_pointer(place)
            if pointer:
                return cls(top, pointer)
        return None

    def head(self) -> str:
        """Return the commit that is checked out; empty if there is none."""
        text = _line(self.folder / "HEAD")
        name = text.removeprefix("ref: ")
        if name == text:
            return text if _is_id(text) else ""
        return self._ref(name)

    def refs(self) -> dict[str, str]:
        """Return all branches, tags and stashes, each with its target, and the head."""
        found = {"HEAD": self.head(), **self._packed_refs()}
        for place in {self.common, self.folder}:
            for folder, _, names in os.walk(place / "refs"):
                for name in names:
                    if len(found) >= _REFS:
                        return found
                    path = Path(folder, name)
                    found[str(path.relative_to(place))] = _line(path)
        return {name: id for name, id in found.items() if _is_id(id)}

    def read(self, id: str, depth: int = 0) -> GitObject | None:
        if not _is_id(id) or depth > _DEEPEST:
            return None
        loose = self.read_loose(self.common / "objects" / id[:2] / id[2:])
        if loose:
            return loose
        for pack in self._all_packs():
            with suppress(OSError, ValueError, struct.error, zlib.error, IndexError):
                found = pack.read(id, self, depth)
                if found:
                    return found
        return None

    def read_loose(self, path: Path) -> GitObject | None:
        with suppress(OSError, ValueError, zlib.error), open_file(path) as file:
            insist(os.fstat(file.fileno()))
            data = _inflate(file.read(LARGEST))
            head, _, body = data.partition(b"\0")
            kind, _, size = head.decode("ascii").partition(" ")
            if int(size) == len(body):
                return GitObject(kind, body)
        return None

    def commit(self, id: str) -> Commit | None:
        found = self.read(id)
        return read_commit(found) if found and found.kind == "commit" else None

    def changes(self, commit: Commit) -> Iterator[tuple[str, str]]:
        """Yield the files that a commit added or changed relative to its first parent, with the ids of their
        contents."""
        parent = self.commit(commit.parents[0]) if commit.parents else None
        yield from self._difference(parent.tree if parent else "", commit.tree, "", 0)

    def find_file(self, tree: str, path: str) -> bytes | None:
        """Return the content of a file in a tree."""
        *folders, name = path.split("/")
        for each in folders:
            mode, tree = self._entries(tree).get(each, ("", ""))
            if mode != "40000":
                return None
        found = self.read(self._entries(tree).get(name, ("", ""))[1])
        return found.data if found and found.kind == "blob" else None

    def _difference(self, before: str, after: str, above: str, depth: int) -> Iterator[tuple[str, str]]:
        if before == after or depth > _DEEPEST:
            return
        old = self._entries(before)
        for name, (mode, id) in self._entries(after).items():
            was_mode, was = old.get(name, ("", ""))
            if mode == "40000":
                yield from self._difference(was if was_mode == mode else "", id, f"{above}{name}/", depth + 1)
            elif id != was and mode.startswith("100"):
                yield f"{above}{name}", id

    def _entries(self, id: str) -> dict[str, tuple[str, str]]:
        tree = self.read(id) if id else None
        entries: dict[str, tuple[str, str]] = {}
        data = tree.data if tree and tree.kind == "tree" else b""
        at = 0
        while (end := data.find(b"\0", at)) >= 0 and end + 21 <= len(data):
            mode, _, name = data[at:end].partition(b" ")
            entries[os.fsdecode(name)] = mode.decode("ascii", "replace"), data[end + 1 : end + 21].hex()
            at = end + 21
        return entries

    def _ref(self, name: str) -> str:
        for place in (self.folder, self.common):
            text = _line(place / os.path.normpath(name))
            if _is_id(text):
                return text
        return self._packed_refs().get(name, "")

    def _packed_refs(self) -> dict[str, str]:
        with suppress(OSError, ValueError), open_file(self.common / "packed-refs") as file:
            insist(os.fstat(file.fileno()))
            rows = [line.partition(" ") for line in file.read(LARGEST).decode("utf-8", "replace").split("\n")]
            return {name: id for id, _, name in rows[:_REFS] if _is_id(id)}
        return {}

    def _all_packs(self) -> Iterator["_Pack"]:
        with suppress(OSError):
            for name in os.listdir(self.common / "objects" / "pack"):
                if name.endswith(".idx"):
                    if name not in self._packs:
                        self._packs[name] = _Pack(self.common / "objects" / "pack" / name)
                    yield self._packs[name]


class _Pack:
    """A pack and its index, version 2. Nothing is memory-mapped: a command could truncate the file at any
    time."""

    def __init__(self, index: Path) -> None:
        self._path = index

    def read(self, id: str, repository: Repository, depth: int) -> GitObject | None:
        """Read an object. Raises OSError, ValueError, IndexError or zlib.error for an invalid pack."""
        with open_file(self._path) as file:
            insist(os.fstat(file.fileno()))
            offset = self._offset(file.fileno(), bytes.fromhex(id))
        if offset is None:
            return None
        with open_file(self._path.with_suffix(".pack")) as file:
            insist(os.fstat(file.fileno()))
            return self._object(file.fileno(), offset, repository, depth)

    def _offset(self, file: int, key: bytes) -> int | None:
        head = os.pread(file, _NAMES, 0)
        if head[:8] != _INDEX:
            return None
        counts = struct.unpack_from(">256I", head, 8)
        low, high, total = counts[key[0] - 1] if key[0] else 0, counts[key[0]], counts[255]
        at = bisect_left(range(high), key, low, high, key=lambda n: os.pread(file, 20, _NAMES + 20 * n))
        if at >= high or os.pread(file, 20, _NAMES + 20 * at) != key:
            return None
        offset = int.from_bytes(os.pread(file, 4, _NAMES + 24 * total + 4 * at))
        if offset & 0x80000000:
            large = _NAMES + 28 * total + 8 * (offset & 0x7FFFFFFF)
            offset = int.from_bytes(os.pread(file, 8, large))
        return offset

    def _object(self, file: int, offset: int, repository: Repository, depth: int) -> GitObject | None:
        if depth > _DEEPEST:
            return None
        head = os.pread(file, 64, offset)
        kind, size, at = head[0] >> 4 & 7, head[0] & 15, 1
        shift = 4
        while head[at - 1] & 0x80:
            size |= (head[at] & 0x7F) << shift
            shift += 7
            at += 1
        if size > LARGEST:
            return None
        base: GitObject | None = None
        if kind == _OFFSET:
            back, at = _backwards(head, at)
            base = self._object(file, offset - back, repository, depth + 1)
        elif kind == _REFERENCE:
            base, at = repository.read(head[at : at + 20].hex(), depth + 1), at + 20
        data = _inflate(os.pread(file, size + 4096 + size // 64, offset + at))
        if kind in _KINDS:
            return GitObject(_KINDS[kind], data)
        return GitObject(base.kind, apply_delta(base.data, data)) if base else None


def read_pointer(place: Path) -> Path | None:
    """Return the repository that a `.git` file points to; None if it names none."""
    text = _line(place)
    target = text.removeprefix("gitdir: ")
    return None if target == text else Path(os.path.normpath(place.parent / target))


def read_commit(found: GitObject) -> Commit:
    head, _, message = found.data.decode("utf-8", "replace").partition("\n\n")
    rows = [line.partition(" ") for line in head.split("\n")]
    parents = tuple(value for name, _, value in rows if name == "parent")
    named = {name: value for name, _, value in rows}
    stamp = named.get("committer", "").split(" ")[-2:-1]
    at = int(stamp[0]) if stamp and stamp[0].isascii() and stamp[0].isdigit() else 0
    return Commit(named.get("tree", ""), parents, message, at)


def apply_delta(base: bytes, delta: bytes) -> bytes:
    """Apply a delta. Raises ValueError or IndexError for an invalid one."""
    _, at = _varint(delta, 0)
    size, at = _varint(delta, at)
    if size > LARGEST:
        raise ValueError("the object is too large")
    made = bytearray()
    while at < len(delta):
        code = delta[at]
        at += 1
        if not code & 0x80:
            made += delta[at : at + code]
            at += code
            continue
        place = length = 0
        for bit in range(7):
            if code >> bit & 1:
                if bit < 4:
                    place |= delta[at] << 8 * bit
                else:
                    length |= delta[at] << 8 * (bit - 4)
                at += 1
        made += base[place : place + (length or 0x10000)]
        if len(made) > size:
            break
    if len(made) != size:
        raise ValueError("a delta does not fit its base")
    return bytes(made)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def _backwards(data: bytes, at: int) -> tuple[int, int]:
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = (value + 1) << 7 | data[at] & 0x7F
    return value, at + 1


def _inflate(data: bytes) -> bytes:
    stream = zlib.decompressobj()
    made = stream.decompress(data, LARGEST + 100)
    if not stream.eof:
        raise ValueError("the object is cut off or too large")
    return made


def _line(path: Path) -> str:
    """Return the first line of a small file; empty if there is none."""
    with suppress(OSError), open_file(path) as file:
        insist(os.fstat(file.fileno()))
        return file.read(4096).decode("utf-8", "replace").partition("\n")[0].strip()
    return ""


def _is_id(text: str) -> bool:
    return len(text) == 40 and _HEX.issuperset(text)
