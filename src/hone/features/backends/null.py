"""The backend that keeps nothing, at no cost."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from hone.core.backend import KEYS, LIMIT, Availability, Deleted, MemoryItem

EPOCH = datetime.fromtimestamp(0, UTC)


class NullBackend:
    name = "null"
    is_cloud = False

    async def available(self) -> Availability:
        return Availability()

    async def store(
        self, user_id: str, key: str, value: str, metadata: Mapping[str, str] | None = None
    ) -> MemoryItem:
        """Given back, and forgotten."""
        return MemoryItem(key, value, user_id, EPOCH, EPOCH, dict(metadata or {}))

    async def retrieve(self, user_id: str, key: str) -> MemoryItem | None:
        return None

    async def query(
        self, user_id: str, text: str, limit: int = LIMIT, *, dialectic: bool = False
    ) -> Sequence[MemoryItem]:
        return ()

    async def list_keys(self, user_id: str, limit: int = KEYS) -> Sequence[str]:
        return ()

    async def delete(self, user_id: str, key: str) -> Deleted:
        return Deleted.ABSENT

    async def close(self) -> None:
        """Nothing was opened."""
