"""Publish files a moment after their changes were recorded, so that a burst of changes is published once."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from hone.core.ledger import Target
from hone.core.waiting import uninterrupted


class LatePublisher:
    """`publish` writes the files of some targets as the ledger has them by then. A process that is killed
    before leaves older files behind, and the next one publishes them."""

    def __init__(self, publish: Callable[[Sequence[Target]], Awaitable[None]]) -> None:
        self._publish = publish
        self._due: dict[Target, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, target: Target, lag: float) -> None:
        """Publish a target in so many seconds, with whatever comes meanwhile."""
        self._due[target] = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(lag, self._start)

    async def settle(self) -> None:
        """Publish now what is due."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._tasks:
            await asyncio.wait(self._tasks)
        await uninterrupted(self._publish_due())

    def _start(self) -> None:
        self._timer = None
        task = asyncio.ensure_future(uninterrupted(self._publish_due()))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _publish_due(self) -> None:
        due, self._due = [*self._due], {}
        if due:
            await self._publish(due)
