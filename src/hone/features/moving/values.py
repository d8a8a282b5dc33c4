"""The input and the results of a move."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from hone.stores.moving.fingerprints import Fingerprints, combine

OWNER = "local"
"""The owner of all rows until there are users."""


class MovePlan(Struct, frozen=True):
    """What to move: the data of a home, to the PostgreSQL database at an address, or from there. `keep`: copy
    it, and leave the source in use."""

    home: Path
    url: str
    to_sqlite: bool
    now: datetime
    keep: bool = False
    owner: str = OWNER


class MoveProgress(Protocol):
    """Hears the table, the number of its rows that are done, and the total."""

    def __call__(self, what: str, done: int, total: int, /) -> None: ...


class Copied(Struct, frozen=True):
    """What is the same at both ends now. `made` is False if it was so before; `where` names the database."""

    fingerprints: Fingerprints
    made: bool
    where: str

    @property
    def digest(self) -> str:
        return combine(self.fingerprints)

    @property
    def counts(self) -> Mapping[str, int]:
        return {name: each.count for name, each in self.fingerprints.items()}


class Forecast(Struct, frozen=True):
    """The number of rows in each table of the source. `obstacle` is a sentence if the target cannot take
    them."""

    counts: Mapping[str, int]
    where: str
    obstacle: str = ""
