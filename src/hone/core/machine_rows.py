"""Rows about the files of one machine, in a database that several machines share."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class RowConnection(Protocol):
    """What SQLite and PostgreSQL have in common: statements with question marks in place of values."""

    def execute(self, query: str, values: Sequence[Any] = ..., /) -> Any:
        """Return a cursor. Its `get` is the first row, or the only value of it; None if there is no row."""
        ...

    def executemany(self, query: str, values: Iterable[Sequence[Any]], /) -> Any: ...

    def changes(self) -> int:
        """Return how many rows the last statement changed."""
        ...


class MachineRows(Protocol):
    """Sees what belongs to one machine, or to all of them."""

    async def read(self, work: Callable[[RowConnection], T]) -> T: ...

    async def write(self, work: Callable[[RowConnection], T]) -> T:
        """Give the work its own transaction. Those of one machine follow each other."""
        ...


class OpenMachineRows(Protocol):
    def __call__(self, *, everywhere: bool = False) -> MachineRows:
        """Return the rows of this machine, or `everywhere` those of all machines, which only go."""
        ...
