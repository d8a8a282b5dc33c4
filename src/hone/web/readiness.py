"""Tell a load balancer whether this server can work."""

import asyncio
from collections.abc import Awaitable, Callable

from hone.core.clock import Clock
from hone.core.errors import StoreError

PATIENCE = 2.0
"""Seconds that the database gets to answer."""
FRESH = 1.0
"""Seconds for which an answer is cached: anybody may ask, and the database is asked no more often."""


class Readiness:
    """`is_current` asks the database. `stopping` is set when the server is told to end."""

    def __init__(self, is_current: Callable[[], Awaitable[bool]], clock: Clock) -> None:
        self.stopping = False
        self._is_current = is_current
        self._clock = clock
        self._asking: asyncio.Task[str] | None = None
        self._fault, self._until = "", float("-inf")

    async def find_fault(self) -> str:
        """Return what is wrong in one word, or nothing."""
        if self._clock.monotonic() < self._until:
            return "stopping" if self.stopping else self._fault
        fault = "" if self.stopping else await self._wait()
        return "stopping" if self.stopping else fault

    async def _wait(self) -> str:
        """Ask once, however many callers wait, and do not wait for long."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        try:
            async with self._clock.timeout(PATIENCE):
                return await asyncio.shield(self._asking)
        except TimeoutError:
            return "database"

    async def _ask(self) -> str:
        try:
            self._fault = "" if await self._is_current() else "schema"
        except StoreError:
            self._fault = "database"
        self._until = self._clock.monotonic() + FRESH
        return self._fault
