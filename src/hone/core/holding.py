"""Holdings: the places that store text. Erase, backup, move and doctor walk them."""

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from hone.core.erasure import Erasure

FOREVER = "until you delete or erase it"
ERASED = "(erased)"
"""Stands where words were. No square brackets: those would be a list in the head of a skill."""


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

    tables: tables of hone.db, and of a PostgreSQL database
    elsewhere: tables that only a PostgreSQL database has
    places: names below the home; a name that ends with a slash is a folder, a star stands for any characters
    lasts:  how long the text stays, for docs/privacy.md
    eraser: "module:object", called with a Hone, which returns an Eraser; empty if no words of a conversation
            get in
    stays:  why its places stay in the home when the data moves to a database elsewhere; empty if they do not
    """

    name: str
    keeps: str
    lasts: str = FOREVER
    tables: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    backup: Backup = Backup.KEPT
    eraser: str = ""
    stays: str = ""
    elsewhere: tuple[str, ...] = ()


class Occurrence(Struct, frozen=True):
    """Where words to erase were found: in which holding, where in it, and how often."""

    holding: str
    place: str
    count: int = 1
    whole: bool = False
    """Whether all of the place goes, and not only the words."""


class Eraser(Protocol):
    """Finds and removes what is to be erased in one holding. Both methods can be repeated after a kill."""

    async def find(self, what: "Erasure") -> Sequence[Occurrence]:
        """Return where it is. Raises HoneError if a place cannot be read."""
        ...

    async def erase(self, what: "Erasure") -> Sequence[str]:
        """Remove it for good, and say in a sentence each what the owner should know. Returns when no file
        holds it any more."""
        ...
