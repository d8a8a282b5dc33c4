"""Claim a piece of work, so that nobody else does it at the same time."""

from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from typing import Protocol


def claim_of(session: str) -> str:
    """Return the name of the claim on a conversation."""
    return f"conversation-{session}"


class Claims(Protocol):
    """A claim is held by one process among all that share the stores. It ends with that process, and times
    out only if the process has begun to beat. It keeps work from being done twice at once; which result
    counts is decided when the work is stored."""

    def hold(self, name: str) -> AbstractAsyncContextManager[bool]:
        """Yield False if another holder has it, in this process or another. Raises StoreError."""
        ...

    async def confirm(self, name: str) -> bool:
        """Tell whether a claim taken here still holds. A claim that ended with a lost connection is taken
        again, unless another process was faster. Ask before a step that costs money or counts."""
        ...

    async def beat(self) -> None:
        """Report that this process does not hang. After the first call it must beat every few seconds: after
        ten seconds without a beat its claims are freed, if they are in a database. Raises StoreError."""
        ...

    async def find_held(self, names: Collection[str]) -> frozenset[str]:
        """Return which of these names are held."""
        ...

    def sweep(self, wanted: Collection[str]) -> None:
        """Remove what killed processes left, except for these names, which a process may be about to
        claim."""
        ...
