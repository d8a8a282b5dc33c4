"""The Protocol of a memory backend, and the values it stores by key and user, outside the journal."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

LIMIT = 10
"""Memories that a query gives unless told otherwise."""
KEYS = 100
"""Keys in a list unless told otherwise."""


class MemoryItem(Struct, frozen=True):
    """What is kept under a key for one user. `updated_at` is `created_at` until it is stored again."""

    key: str
    value: str
    user_id: str
    created_at: datetime
    updated_at: datetime
    metadata: Mapping[str, str] = {}


class Availability(Struct, frozen=True):
    """True if a backend can be used; if it cannot, `why` is a plain sentence that says what to do."""

    why: str = ""

    def __bool__(self) -> bool:
        return not self.why


class Deleted(StrEnum):
    """What became of a memory."""

    GONE = "gone"
    HIDDEN = "hidden"
    """It is given to nobody any more, but the service still keeps it."""
    ABSENT = "absent"
    """There was none."""


class Backend(Protocol):
    """Acknowledged is kept: `store` returns when the memory would survive a crash. No method gives one user
    what is another's. They raise BackendError, and Unfit for what will never be taken."""

    @property
    def name(self) -> str: ...

    @property
    def is_cloud(self) -> bool:
        """Whether what is stored leaves this machine."""
        ...

    async def available(self) -> Availability: ...

    async def store(
        self, user_id: str, key: str, value: str, metadata: Mapping[str, str] | None = None
    ) -> MemoryItem:
        """Puts a value under a key, in the place of what was there."""
        ...

    async def retrieve(self, user_id: str, key: str) -> MemoryItem | None: ...

    async def query(
        self, user_id: str, text: str, limit: int = LIMIT, *, dialectic: bool = False
    ) -> Sequence[MemoryItem]:
        """What fits these words best, the best first. `dialectic`: where the service can, its own answer."""
        ...

    async def list_keys(self, user_id: str, limit: int = KEYS) -> Sequence[str]:
        """Newest first, by when they were last stored."""
        ...

    async def delete(self, user_id: str, key: str) -> Deleted: ...

    async def close(self) -> None: ...
