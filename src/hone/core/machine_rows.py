"""Rows about the files of one machine, in a database that several machines share."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class RowConnection(Protocol):
    """What SQLite and PostgreSQL have in common: statements with question marks in place of values."""

    def execute(self, query: str, values: Sequence[Any] = ..., /) -> Any:
        """Return a cursor. Its `get` returns the first row, or its value if there is one column; None if
        there is no row."""
        ...

    def executemany(self, query: str, values: Iterable[Sequence[Any]], /) -> Any: ...

    def changes(self) -> int:
        """Return how many rows the last statement changed."""
        ...


class MachineRows(Protocol):
    """Reads and writes the rows of one machine, or of all machines."""

    async def read(self, work: Callable[[RowConnection], T]) -> T: ...

    async def write(self, work: Callable[[RowConnection], T]) -> T:
        """Run the work in its own transaction. The transactions of one machine run one after another."""
        ...


class OpenMachineRows(Protocol):
    def __call__(self, *, everywhere: bool = False) -> MachineRows:
        """Return the rows of this machine, or with `everywhere` those of all machines, which can only be
        deleted."""
        ...
