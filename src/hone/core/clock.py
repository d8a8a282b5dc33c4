"""The Protocol of a clock, the system clock, and a manual clock for tests."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[asyncio.Timeout]:
        """Raise TimeoutError inside the block once the seconds are over."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[asyncio.Timeout]:
        return asyncio.timeout(seconds)


class ManualClock:
    """Stands still until `advance`. A sleep advances the clock at once and is recorded in `slept`."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._passed = 0.0
        self._deadlines: dict[asyncio.Timeout, float] = {}
        self.slept: list[float] = []

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._passed)

    def monotonic(self) -> float:
        return self._passed

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)
        await asyncio.sleep(0)

    @asynccontextmanager
    async def timeout(self, seconds: float) -> AsyncIterator[asyncio.Timeout]:
        async with asyncio.timeout(None) as deadline:
            self._deadlines[deadline] = self._passed + seconds
            try:
                yield deadline
            finally:
                self._deadlines.pop(deadline, None)

    def advance(self, seconds: float) -> None:
        self._passed += seconds
        for deadline in [each for each, when in self._deadlines.items() if when <= self._passed]:
            del self._deadlines[deadline]
            deadline.reschedule(asyncio.get_running_loop().time())
