"""Make the vectors of messages, in the background and in small steps.

Each step is one transaction, and the vectors themselves tell what is left: a killed process loses one step at
most, and the next one repeats it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from hone.core.claims import Claims
from hone.core.clock import Clock
from hone.core.embedding import Embedder, Unembedded, Vectors
from hone.core.errors import HoneError, StoreError

CLAIM = "vectors"
BATCH = 16
"""Contents per step: less than a second of work for a small model on one core."""
BREATH = 0.05
"""Seconds between two steps, which leave the processor to others."""
POLL = 0.5
"""Seconds between two checks whether the user's turn has ended."""
FIRST, LONGEST = 2.0, 300.0
"""Seconds before another try, doubled each time up to the longest."""
PATIENCE = 2.0
"""Seconds that a leaving user is kept."""
PROBE = "Hello."
"""A text to test whether an embedder that refused another one works."""


class VectorMaker:
    """`embedder` returns what makes vectors; None: nothing is made. `is_busy` tells whether the user's turn
    is running, which has priority. `more` makes some other vectors, and tells whether there were any. One
    process at a time works for a home."""

    def __init__(
        self,
        vectors: Vectors,
        embedder: Callable[[], Awaitable[Embedder | None]],
        claims: Claims,
        clock: Clock,
        say: Callable[[str], None],
        is_busy: Callable[[], bool] = lambda: False,
        more: Callable[[Embedder], Awaitable[bool]] | None = None,
    ) -> None:
        self._vectors = vectors
        self._embedder = embedder
        self._claims = claims
        self._clock = clock
        self._say = say
        self._is_busy = is_busy
        self._more = more
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._pause, self._batch = 0.0, BATCH
        self._failed = False

    def attend(self) -> None:
        """Make missing and new vectors from now on."""
        if self._task is None:
            self._task = asyncio.create_task(self._serve())
        self._wake.set()

    def notify(self) -> None:
        """Note that something may have been said."""
        self._wake.set()

    async def finish(self) -> None:
        """Make as many as possible while a leaving user waits."""
        with suppress(TimeoutError, HoneError):
            async with self._clock.timeout(PATIENCE):
                await self.fill()

    async def fill(self) -> bool:
        """Make all missing vectors. Return False if another process is doing it. Raises HoneError."""
        embedder = await self._embedder()
        if embedder is None:
            return True
        async with self._claims.hold(CLAIM) as held:
            if held:
                await self._vectors.adopt(embedder.id)
                while await self._step(embedder):
                    self._failed, self._pause, self._batch = False, 0.0, min(BATCH, 2 * self._batch)
                    await self._yield()
            return held

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
            while not await self._try():
                await self._clock.sleep(self._pause)

    async def _try(self) -> bool:
        """Make vectors. Tell whether nothing more can be done now. After an error, retry later with fewer
        texts: one of them may be the reason."""
        try:
            done = await self.fill()
            self._pause = 0.0 if done else max(FIRST, self._pause)
        except HoneError as error:
            if not self._failed:
                self._say(f"New messages are found by their words alone for now: {error}")
            self._failed = True
            self._pause = min(max(FIRST, 2 * self._pause), LONGEST)
            self._batch = max(1, self._batch // 4)
            return False
        return done

    async def _yield(self) -> None:
        await self._clock.sleep(BREATH)
        while self._is_busy():
            await self._clock.sleep(POLL)

    async def _step(self, embedder: Embedder) -> bool:
        """Make the vectors of some contents. Tell whether there were any."""
        found = await self._vectors.missing(embedder.id, self._batch)
        if found:
            await self._vectors.put(embedder.id, await self._embed(embedder, found))
            return True
        if self._more and await self._more(embedder):
            return True
        return await self._vectors.tidy(embedder.id)

    async def _embed(
        self, embedder: Embedder, found: Sequence[Unembedded]
    ) -> Sequence[tuple[Unembedded, bytes]]:
        texts = [each.text for each in found if each.text]
        try:
            vectors = iter(await embedder.embed(texts, "passage") if texts else ())
        except StoreError:
            raise
        except HoneError:
            if len(found) > 1 or not texts:
                raise
            await embedder.embed([PROBE], "passage")  # raises if it refuses this, too
            vectors = iter((b"",))
        return [(each, next(vectors) if each.text else b"") for each in found]
