"""Make records of tainted text: read what a command changed, and fingerprint what is new in it."""

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from hone.core.fingerprints import fingerprint, select
from hone.core.messages import digest
from hone.core.regex import regex
from hone.files.atomic import open_file
from hone.runtime.provenance.view import name
from hone.stores.tainted import Kind, TaintedText

LARGEST = 8 * 2**20
"""The most bytes of a file whose lines are recorded. For a larger file only the digest is kept."""
MOST = 200_000
"""The most units of one command. Files beyond that are recorded without lines; see `areas`."""
TRIVIAL = 16
"""The fewest bytes for which equal contents mean anything: an empty file is the same everywhere."""
_PARTS = regex(r"[^\W_]+")
Base = Callable[[Path], bytes | None]
"""Returns what a file held before, if that is known."""


class TaintOrigin(Struct, frozen=True):
    """The conversation that tainted, and since when: nothing older can contain its text."""

    session: str
    at: int


def taint_file(path: Path, data: bytes, before: bytes | None, origin: TaintOrigin) -> TaintedText:
    """Record the content of a file. Lines that it held before are not new."""
    old = frozenset(line.strip() for line in decode(before).split("\n")) if before else frozenset()
    complete = len(data) <= LARGEST and not is_opaque(data)
    units = select(decode(data).split("\n"), old) if complete else frozenset()
    return _record(path, "file", data, units | _name_units(path), origin, complete=complete)


def taint_files(paths: Iterable[Path], base: Base, origin: TaintOrigin) -> Iterator[TaintedText]:
    """Record the files among these paths, smaller ones first."""
    room = MOST
    for _, path in sorted((_size(path), path) for path in paths):
        if path.is_symlink():
            yield taint_text(path, _target(path), origin)
        data = read(path)
        if data is None:
            continue
        before = base(path)
        if data == before:
            yield _record(path, "same", data, frozenset(), origin)
        elif room > 0:
            text = taint_file(path, data, before, origin)
            room -= len(text.units)
            yield text
        else:
            yield _record(path, "file", data, frozenset(), origin, complete=False)


def taint_text(folder: Path, text: str, origin: TaintOrigin) -> TaintedText:
    """Record what a conversation wrote into a command: it may end in a commit message or a file's name."""
    return TaintedText(name(folder), "text", "", "", fingerprint(text), origin.session, origin.at)


def taint_object(folder: Path, data: bytes, origin: TaintOrigin) -> TaintedText:
    """Record what was added to Git."""
    return TaintedText(
        name(folder), "object", digest(data), "", fingerprint(decode(data)), origin.session, origin.at
    )


def read(path: Path, most: int = LARGEST * 8) -> bytes | None:
    """Return the content of a regular file, truncated if it is very large; None if it is no such file."""
    try:
        with open_file(path) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            return file.read(most)
    except OSError:
        return None


def decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def blob_id(data: bytes) -> str:
    """Return Git's name for a content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def taint_names(paths: Iterable[Path], origin: TaintOrigin) -> Iterator[TaintedText]:
    """Record names of folders that are whole sentences: `ls` prints them."""
    for path in paths:
        if units := _name_units(path):
            yield TaintedText(name(path), "text", "", "", units, origin.session, origin.at)


def is_prose(name: str) -> bool:
    """Tell whether a name is a sentence."""
    return len(name.split()) > 2 or len(_PARTS.findall(name)) > 7


def is_opaque(data: bytes) -> bool:
    """Tell whether the content may have text packed into it: an archive, a database, a document."""
    return b"\0" in data[:8192] or (len(data) > 64 and decode(data[:8192]).count("\ufffd") > 80)


def _name_units(path: Path) -> frozenset[int]:
    return fingerprint(path.name.replace("_", " ")) if is_prose(path.name) else frozenset()


def _target(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def is_trivial(data: bytes) -> bool:
    return len(data.strip()) < TRIVIAL


def _record(
    path: Path, kind: Kind, data: bytes, units: frozenset[int], origin: TaintOrigin, *, complete: bool = True
) -> TaintedText:
    names = digest(data), blob_id(data)
    return TaintedText(name(path), kind, *names, units, origin.session, origin.at, complete)


def _size(path: Path) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
