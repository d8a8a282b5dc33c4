"""The port of small documents that all servers of an owner share, wherever they run."""

from collections.abc import Callable
from typing import Protocol


class SharedValues(Protocol):
    """Both methods wait for the database: a server calls them in a thread. They raise StoreError."""

    def read(self, name: str) -> bytes:
        """Return a document; empty if there is none."""
        ...

    def change(self, name: str, change: Callable[[bytes], bytes]) -> bytes:
        """Replace a document by what `change` makes of it, and return that. Nobody changes it meanwhile."""
        ...
