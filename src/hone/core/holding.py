"""Holdings: the places that store text. Erase, backup and doctor walk them."""

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from msgspec import Struct

FOREVER = "until you delete or erase it"


class Backup(Enum):
    """Whether a backup has a holding, and whether restoring brings it back."""

    KEPT = "kept"
    """In the backup, and restored."""
    ASKED = "asked"
    """In the backup, but restored only if the owner asks: it decides what may run."""
    LEFT_OUT = "left out"
    """Not in the backup: keys, locks, and what can be made again."""


class Holding(Struct, frozen=True):
    """One place that stores text.

    tables: tables of hone.db
    places: names below the home; a name that ends with a slash is a folder, a star stands for any characters
    lasts:  how long the text stays, for docs/privacy.md
    eraser: "module:object", called with a Hone, which finds and removes words here; empty if no words of a
            conversation get in
    """

    name: str
    keeps: str
    lasts: str = FOREVER
    tables: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    backup: Backup = Backup.KEPT
    eraser: str = ""


class Occurrence(Struct, frozen=True):
    """Where words to erase were found: in which holding, where in it, and how often."""

    holding: str
    place: str
    count: int = 1


class Eraser(Protocol):
    """Finds and removes words in one holding. Both methods can be repeated after a kill."""

    async def find(self, words: Sequence[str]) -> Sequence[Occurrence]:
        """Return where the words are. Raises HoneError if a place cannot be read."""
        ...

    async def erase(self, words: Sequence[str]) -> None:
        """Remove the words for good. Returns when no file holds them any more."""
        ...
