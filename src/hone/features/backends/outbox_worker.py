"""Deliver the outbox to the memory backend in the background, without delaying the conversation."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from hone.core.backend import Deleted
from hone.core.clock import Clock
from hone.core.errors import HoneError, Unfit
from hone.core.ledger import Entry
from hone.features.backends.mirror import Mirror

if TYPE_CHECKING:
    from hone.core.claims import Claims

CLAIM = "mirror"
FIRST, LONGEST = 2.0, 300.0
"""Seconds before another try, doubled each time up to the longest."""
PATIENCE = 3.0
"""Seconds that a leaving user is kept."""


class DeliveryResult(Struct, frozen=True):
    """The result of an immediate delivery: what was deleted, or why it comes `late`."""

    deleted: Deleted | None = None
    late: str = ""


class OutboxWorker:
    """`mirror` returns the keeper of copies; None: there is none. One process at a time delivers for a home,
    so that a backend gets changes in order."""

    def __init__(
        self, mirror: Callable[[], Awaitable[Mirror | None]], claims: "Callable[[], Claims]", clock: Clock
    ) -> None:
        self._mirror = mirror
        self._claims = claims
        self._clock = clock
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._pause = 0.0
        self._turn = asyncio.Lock()

    def attend(self) -> None:
        """Deliver what waits and what comes, from now on."""
        if self._task is None:
            self._task = asyncio.create_task(self._serve())
        self._wake.set()

    def notify(self) -> None:
        """Note that something may have changed."""
        self._wake.set()

    async def drain(self) -> bool:
        """Deliver once. Return False if something is left. Errors are recorded in the outbox."""
        async with self._turn:
            try:
                mirror = await self._mirror()
                if mirror is None:
                    return True
                async with self._claims().hold(CLAIM) as held:
                    if held:
                        await mirror.deliver()
                self._pause = 0.0
            except HoneError:
                self._pause = min(max(FIRST, 2 * self._pause), LONGEST)
                return False
        return True

    async def deliver(self, entry: Entry) -> DeliveryResult:
        """Deliver one change while somebody waits. A backend that does not answer gets it later. Raises Unfit
        for what it will never accept."""
        try:
            async with self._clock.timeout(PATIENCE), self._turn:
                mirror = await self._mirror()
                async with self._claims().hold(CLAIM) as held:
                    if mirror and held:
                        return DeliveryResult(await mirror.deliver_one(entry.id))
            return DeliveryResult(late="another process is delivering.")
        except TimeoutError:
            return DeliveryResult(late=f"no answer within {PATIENCE:g} seconds.")
        except Unfit:
            raise
        except HoneError as error:  # the change is recorded, whatever happens on the way
            return DeliveryResult(late=str(error))
        finally:
            self.notify()

    async def finish(self) -> None:
        """Deliver for a leaving user: whatever takes too long waits for the next process."""
        with suppress(TimeoutError):
            async with self._clock.timeout(PATIENCE):
                await self.drain()

    async def close(self) -> None:
        """Stop. What is left waits for the next process."""
        task, self._task = self._task, None
        if task:
            task.cancel()
            await asyncio.wait([task])

    async def _serve(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while not await self.drain():
                await self._rest()

    async def _rest(self) -> None:
        """Wait. This cannot be shortened: news do not repair a backend."""
        try:
            async with self._clock.timeout(self._pause):
                await asyncio.Event().wait()
        except TimeoutError:
            return
