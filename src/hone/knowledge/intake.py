"""What a file means beside what the ledger says: nothing new, an old printout, or the owner's edit."""

from enum import Enum, auto

from hone.core.ledger import PublishedFile
from hone.core.value import dataclass


class FileState(Enum):
    FINE = auto()
    """The file says what the ledger says, or neither is there."""
    MOVED = auto()
    """The same content in another file: an editor saved it, or a publication was cut off before its note."""
    STALE = auto()
    """An earlier printout, left by a process that was killed before it could publish: print it again."""
    MISSING = auto()
    """It was printed and somebody took it away."""
    EDITED = auto()
    """Somebody wrote it."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """`held` is what the ledger says, `printed` what was last put there, `found` what lies there now."""

    held: str | None
    printed: PublishedFile | None
    found: PublishedFile | None


def look(place: FileFacts) -> FileState:
    """A file that is still the one that was printed was not touched. The same old bytes in another file are
    somebody's decision: the owner took back what was learned."""
    held, printed, found = place.held, place.printed, place.found
    if found is None:
        return _gone(held, printed)
    if found.digest == held:
        return FileState.FINE if found == printed else FileState.MOVED
    return FileState.STALE if found == printed else FileState.EDITED


def _gone(held: str | None, printed: PublishedFile | None) -> FileState:
    if held is None:
        return FileState.FINE if printed is None else FileState.MOVED
    return FileState.STALE if printed is None else FileState.MISSING
