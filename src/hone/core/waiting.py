"""Finish work despite an interrupt, repeat it, or share one answer among concurrent callers."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar

from hone.core.errors import Conflict

Value = TypeVar("Value")


async def uninterrupted(work: Awaitable[Value]) -> Value:
    """Wait for work that has begun, whatever happens, and deliver an interrupt only afterwards."""
    task = asyncio.ensure_future(work)
    interrupt: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            interrupt = error
    if interrupt:
        task.exception()
        raise interrupt
    return task.result()


async def repeat(work: Callable[[], Awaitable[Value]], tries: int) -> Value:
    """Repeat work until no other writer overtakes it. Raises Conflict if one always does."""
    for _ in range(tries - 1):
        with suppress(Conflict):
            return await work()
    return await work()


class SingleFlight(Generic[Value]):
    """Shares one answer among all who ask at once. A call during a search waits for the next one, so that an
    answer is never older than its question."""

    def __init__(self, find: Callable[[], Awaitable[Value]]) -> None:
        self._find = find
        self._now: asyncio.Future[Value] | None = None
        self._next: asyncio.Future[Value] | None = None

    async def ask(self) -> Value:
        if self._next is None:
            self._next = asyncio.ensure_future(self._found(self._now))
        return await asyncio.shield(self._next)

    async def _found(self, before: asyncio.Future[Value] | None) -> Value:
        if before is not None:
            await asyncio.wait([before])
        self._now, self._next = self._next, None
        return await self._find()
