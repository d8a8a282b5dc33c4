"""Holdings: the places that store text. Erase, backup, move and doctor walk them."""

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from hone.core.erasure import Erasure

FOREVER = "until you delete or erase it"
ERASED = "(erased)"
"""Replaces erased words. It has no square brackets: in the head of a skill those would be a list."""


class Backup(Enum):
    """Whether a backup has a holding, and whether restoring brings it back."""

    KEPT = "kept"
    """In the backup, and restored."""
    ASKED = "asked"
    """In the backup, but restored only at the owner's request: it decides what may run."""
    LEFT_OUT = "left out"
    """Not in the backup: keys, locks, and what can be rebuilt."""


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
    """Where words to erase were found: the holding, the place in it, and how often."""

    holding: str
    place: str
    count: int = 1
    whole: bool = False
    """Whether the whole place goes, and not only the words."""


class Eraser(Protocol):
    """Finds and removes what is to be erased in one holding. Both methods can be repeated after a kill."""

    async def find(self, what: "Erasure") -> Sequence[Occurrence]:
        """Return where the words are. Raises HoneError if a place cannot be read."""
        ...

    async def erase(self, what: "Erasure") -> Sequence[str]:
        """Remove the words for good. Return what the owner should know, a sentence each, once no file holds
        them any more."""
        ...
