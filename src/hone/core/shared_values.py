"""The port of small documents that all of an owner's servers share, wherever they run."""

from collections.abc import Callable
from typing import Protocol


class SharedValues(Protocol):
    """Both methods wait for the database, so a server calls them in a thread. They raise StoreError."""

    def read(self, name: str) -> bytes:
        """Return a document; empty if there is none."""
        ...

    def change(self, name: str, change: Callable[[bytes], bytes]) -> bytes:
        """Replace a document by what `change` makes of it, and return the result. No other writer can
        intervene."""
        ...
