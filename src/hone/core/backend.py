"""The Protocol of a memory backend, and the values it stores by key and user, outside the journal."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

LIMIT = 10
"""Memories that a query returns by default."""
KEYS = 100
"""Keys in a list by default."""


class MemoryItem(Struct, frozen=True):
    """A value under a key, for one user. `updated_at` is `created_at` until it is stored again."""

    key: str
    value: str
    user_id: str
    created_at: datetime
    updated_at: datetime
    metadata: Mapping[str, str] = {}


class Availability(Struct, frozen=True):
    """True if a backend can be used. If not, `why` is a plain sentence that says what to do."""

    why: str = ""

    def __bool__(self) -> bool:
        return not self.why


class Deleted(StrEnum):
    """What became of a memory."""

    GONE = "gone"
    HIDDEN = "hidden"
    """Nobody gets it any more, but the service still keeps it."""
    ABSENT = "absent"
    """There was no such memory."""


class Backend(Protocol):
    """Acknowledges only what is kept: `store` returns when the memory would survive a crash. No method gives
    one user another user's memories. They raise BackendError, and Unfit for what will never be accepted."""

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
        """Store a value under a key, replacing what was there."""
        ...

    async def retrieve(self, user_id: str, key: str) -> MemoryItem | None: ...

    async def query(
        self, user_id: str, text: str, limit: int = LIMIT, *, dialectic: bool = False
    ) -> Sequence[MemoryItem]:
        """Return what fits these words, best first. `dialectic`: return the service's own answer, if it can
        give one."""
        ...

    async def list_keys(self, user_id: str, limit: int = KEYS) -> Sequence[str]:
        """Return keys, the most recently stored first."""
        ...

    async def delete(self, user_id: str, key: str) -> Deleted: ...

    async def close(self) -> None: ...
