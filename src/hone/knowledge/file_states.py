"""Classify a file of the home: is it as published, older, edited or gone?"""

from collections.abc import Mapping
from enum import Enum, auto

from msgspec import Struct

from hone.core.ledger import Held, PublishedFile, Target
from hone.knowledge import places

COARSE = 1_000
"""A time that is a multiple of this many nanoseconds suggests a coarse file system, where a file may be
written twice and look the same."""


class FileState(Enum):
    FINE = auto()
    """The file says what the ledger says, or neither is there."""
    MOVED = auto()
    """The same content in another file: an editor saved it, or a publication was cut off before it was
    noted."""
    STALE = auto()
    """An earlier version, left by a process that was killed before it could publish. Publish it again."""
    MISSING = auto()
    """It was published and somebody removed it."""
    EDITED = auto()
    """Somebody wrote it."""
    BUSY = auto()
    """Somebody is writing it right now: leave it alone until that is done."""


def compare(held: str | None, published: PublishedFile | None, found: PublishedFile | None) -> FileState:
    """Return the state of a file: `held` is what the ledger says, `published` what was last written, `found`
    what is there now. A file that is still the published one was not touched. The same old bytes in another
    file are a decision: the owner took back what was learned."""
    if found is None:
        return _gone(held, published)
    if found.digest == held:
        return FileState.FINE if found == published else FileState.MOVED
    return FileState.STALE if found == published else FileState.EDITED


def _gone(held: str | None, published: PublishedFile | None) -> FileState:
    if held is None:
        return FileState.FINE if published is None else FileState.MOVED
    return FileState.STALE if published is None else FileState.MISSING


class ReadState(Struct, frozen=True):
    """One place of a target, as found on disk."""

    place: str
    path: str
    state: FileState
    published: PublishedFile | None
    found: PublishedFile | None
    data: bytes = b""
    read_at: int = 0
    """When somebody has read it, in nanoseconds."""


def is_same(published: PublishedFile | None, seen: tuple[int, ...] | int | None) -> bool:
    """Tell whether a place looks as it did when it was published. An unreadable place does not."""
    if published is None or not isinstance(seen, tuple):
        return published is None and seen is None
    _, inode, _, modified, _ = seen
    return (inode, modified) == (published.inode, published.modified)


def glance_state(
    target: Target,
    held: Held,
    published: Mapping[str, PublishedFile],
    seen: tuple[int, ...] | int | None,
) -> FileState:
    """Return the state of a journal file by its metadata alone: FINE, STALE, or EDITED for anything that
    needs a closer look."""
    place = places.place_of(target)
    known = published.get(place)
    if published.keys() - {place} or not is_same(known, seen) or (known and known.modified % COARSE == 0):
        return FileState.EDITED
    return FileState.FINE if held.get(places.path_of(target)) == (known and known.digest) else FileState.STALE
