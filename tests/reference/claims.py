"""The reference model of claims."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager


class InMemoryClaims:
    def __init__(self) -> None:
        self._held: set[str] = set()

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[bool]:
        if name in self._held:
            yield False
            return
        self._held.add(name)
        try:
            yield True
        finally:
            self._held.discard(name)

    async def confirm(self, name: str) -> bool:
        return name in self._held

    async def beat(self) -> None:
        """Nothing times out."""

    async def find_held(self, names: Collection[str]) -> frozenset[str]:
        return frozenset(self._held.intersection(names))

    def sweep(self, wanted: Collection[str]) -> None:
        """Nothing is left behind."""
