"""Claim a piece of work, so that nobody else does it at the same time."""

from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from typing import Protocol


def claim_of(session: str) -> str:
    """Return the name of the claim on a conversation."""
    return f"conversation-{session}"


class Claims(Protocol):
    """Held by one process among all that share the stores. A claim ends with the process that holds it, and
    none times out unless the process beats. It keeps work from being done twice at once; what counts is
    decided when the work is stored."""

    def hold(self, name: str) -> AbstractAsyncContextManager[bool]:
        """Yield False if somebody else has it, in this process or another. Raises StoreError."""
        ...

    async def confirm(self, name: str) -> bool:
        """Tell whether a claim that was taken here still holds. One that ended with a lost connection is
        taken again, unless somebody else was faster. Ask before a step that costs money or counts."""
        ...

    async def beat(self) -> None:
        """Say that this process does not hang. After the first time it must do so every few seconds: ten
        seconds without it free its claims, if they are in a database. Raises StoreError."""
        ...

    async def find_held(self, names: Collection[str]) -> frozenset[str]:
        """Return those of the names that somebody holds."""
        ...

    def sweep(self, wanted: Collection[str]) -> None:
        """Remove what killed processes left, except for names that somebody may be about to claim."""
        ...
