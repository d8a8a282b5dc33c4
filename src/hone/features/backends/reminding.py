"""Asks memory for what fits a user's words, for as long as somebody can be kept waiting."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from hone.core.backend import Backend, MemoryItem
from hone.core.clock import Clock
from hone.core.errors import BackendError, StoreError
from hone.core.messages import Reminder
from hone.core.transcript import Transcript
from hone.features.backends.reminders import MOST, reminded, reminder

REST = 60.0
"""Seconds in which a backend that failed is not asked again."""
QUESTION = 1_000
"""Characters of the user's words that are asked for."""


class Reminding:
    """Of one conversation. `home` is by what its copies are known; `clean` takes secrets out, of what is
    asked and of what is found. What goes wrong is told once; the turn goes on without."""

    def __init__(
        self,
        backend: Backend,
        user_id: str,
        home: Callable[[], Awaitable[str]],
        clock: Clock,
        deadline: float,
        clean: Callable[[str], str],
    ) -> None:
        self._backend = backend
        self._user = user_id
        self._home = home
        self._clock = clock
        self._deadline = deadline
        self._clean = clean
        self._warned = False
        self._resting = float("-inf")
        self._left: set[asyncio.Task[Sequence[MemoryItem]]] = set()

    async def __call__(self, words: str, transcript: Transcript) -> tuple[Reminder | None, str]:
        """What to put beside the words, and what to tell the user."""
        if not words.strip() or self._clock.monotonic() < self._resting:
            return None, ""
        try:
            memos = await self._found(self._clean(words[:QUESTION]))
            cloud, said = self._backend.is_cloud, reminded(transcript)
            found = reminder(memos, cloud=cloud, home=await self._home(), said=said)
        except (BackendError, StoreError) as error:
            self._resting = self._clock.monotonic() + REST
            return None, self._warning(str(error))
        return (Reminder(self._clean(found.text), found.label) if found else None), ""

    async def _found(self, words: str) -> Sequence[MemoryItem]:
        """A backend that does not even stop when it is told to is left behind."""
        asked = asyncio.ensure_future(self._backend.query(self._user, words, 3 * MOST))
        self._left.add(asked)
        asked.add_done_callback(self._forget)
        try:
            async with self._clock.timeout(self._deadline):
                return await asyncio.shield(asked)
        except TimeoutError:
            raise BackendError(f"no answer within {self._deadline:g} seconds.") from None
        finally:
            asked.cancel()

    def _forget(self, asked: "asyncio.Task[Sequence[MemoryItem]]") -> None:
        self._left.discard(asked)
        if not asked.cancelled():
            asked.exception()

    def _warning(self, error: str) -> str:
        if self._warned:
            return ""
        self._warned = True
        return f"Memory ({self._backend.name}) is left out for now: {error}"
