"""Remind a conversation of what memory holds on the user's words, within a deadline.

Reminders stand apart from the user's words and have a separate trust label.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from hone.core.backend import Backend, MemoryItem
from hone.core.clock import Clock
from hone.core.errors import BackendError, StoreError
from hone.core.messages import Message, Reminder
from hone.core.transcript import Transcript
from hone.core.trust import Trust, lowest
from hone.features.backends.labels import HOME, is_withdrawn, label, origin
from hone.knowledge.items import KeptMemory
from hone.prompt.compose import item

REST = 60.0
"""Seconds in which a backend that failed is not asked again."""
QUESTION = 1_000
"""Characters of the user's words that are asked for."""
MOST = 5
WIDTH = 400
"""Characters of one memory."""
Recall = Callable[[str], Awaitable[KeptMemory | None]]
"""Returns what the ledger holds under a key."""


async def recall_nothing(_: str) -> None:
    """Stand in for a ledger that holds no item."""


@dataclass(slots=True)
class Reminding:
    """Of one conversation. `home` is by what its copies are known; `clean` takes secrets out, of what is
    asked and of what is found. What goes wrong is told once; the turn goes on without."""

    backend: Backend
    user_id: str
    home: Callable[[], Awaitable[str]]
    clock: Clock
    deadline: float
    clean: Callable[[str], str]
    kept: Recall = recall_nothing
    _warned: bool = False
    _resting: float = float("-inf")
    _left: set[asyncio.Task[Sequence[MemoryItem]]] = field(default_factory=set)

    async def __call__(self, words: str, transcript: Transcript) -> tuple[Reminder | None, str]:
        """What to put beside the words, and what to tell the user."""
        if not words.strip() or self.clock.monotonic() < self._resting:
            return None, ""
        try:
            memories = await self._found(self.clean(words[:QUESTION]))
            found = reminder(await self._labeled(memories), reminded(transcript))
        except (BackendError, StoreError) as error:
            self._resting = self.clock.monotonic() + REST
            return None, self._warning(str(error))
        return (Reminder(self.clean(found.text), found.label) if found else None), ""

    async def _labeled(self, memories: Sequence[MemoryItem]) -> list[tuple[MemoryItem, Trust]]:
        """Leave out what was stored from foreign words, which would be before the model in every conversation
        that touches it; copies of what this home knows, for the ledger has those; and what was withdrawn."""
        home, fitting = await self.home(), []
        for memory in memories:
            kept = await self.kept(memory.key)
            copied = bool(home) and memory.metadata.get(HOME) == home
            if origin(memory, kept) > Trust.FOREIGN and not copied and not is_withdrawn(memory, kept, home):
                fitting.append((memory, label(memory, kept, cloud=self.backend.is_cloud)))
        return fitting

    async def _found(self, words: str) -> Sequence[MemoryItem]:
        """A backend that does not even stop when it is told to is left behind."""
        asked = asyncio.ensure_future(self.backend.query(self.user_id, words, 3 * MOST))
        self._left.add(asked)
        asked.add_done_callback(self._forget)
        try:
            async with self.clock.timeout(self.deadline):
                return await asyncio.shield(asked)
        except TimeoutError:
            raise BackendError(f"no answer within {self.deadline:g} seconds.") from None
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
        return f"Memory ({self.backend.name}) is left out for now: {error}"


def reminder(memories: Iterable[tuple[MemoryItem, Trust]], said: Sequence[str] = ()) -> Reminder | None:
    """Return what is brought up unasked, with the lowest label in it, but for what was `said` before. Foreign
    memories come only where there is nothing better: one of them makes the conversation wait for the owner
    with all it learns."""
    news = [each for each in memories if not any(shown(each[0]) in text for text in said)]
    fitting = ([each for each in news if each[1] > Trust.FOREIGN] or news)[:MOST]
    if not fitting:
        return None
    worth = lowest(worth for _, worth in fitting)
    return Reminder("\n".join(shown(memory) for memory, _ in fitting), worth.name.lower())


def shown(memory: MemoryItem) -> str:
    value = memory.value if len(memory.value) <= WIDTH else f"{memory.value[: WIDTH - 1].rstrip()}…"
    return "\n".join(item(f"{memory.key}: {value}"))


def reminded(messages: Iterable[Message]) -> list[str]:
    """What a conversation was reminded of so far."""
    return [message.reminder.text for message in messages if message.reminder]
