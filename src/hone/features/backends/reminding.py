"""Remind a conversation of what memory holds about the user's words, within a deadline.

Reminders are separate from the user's words and have their own trust label.
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
"""Seconds for which a failed backend is not asked again."""
QUESTION = 1_000
"""The most characters of the user's words to search for."""
MOST = 5
WIDTH = 400
"""The most characters of one memory."""
Recall = Callable[[str], Awaitable[KeptMemory | None]]
"""Returns what the ledger holds under a key."""


async def recall_nothing(_: str) -> None:
    """Stand in for a ledger that holds no item."""


@dataclass(slots=True)
class Reminding:
    """Reminders of one conversation. `home` is the name of its copies; `clean` removes secrets from questions
    and answers. An error is reported once; the turn continues without reminders."""

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
        """Return what to add to the words, and what to tell the user."""
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
        """Leave out memories stored from foreign words, which would otherwise be in every conversation about
        their subject; copies of what this home knows, since the ledger has those; and what was withdrawn."""
        home, fitting = await self.home(), []
        for memory in memories:
            kept = await self.kept(memory.key)
            copied = bool(home) and memory.metadata.get(HOME) == home
            if origin(memory, kept) > Trust.FOREIGN and not copied and not is_withdrawn(memory, kept, home):
                fitting.append((memory, label(memory, kept, cloud=self.backend.is_cloud)))
        return fitting

    async def _found(self, words: str) -> Sequence[MemoryItem]:
        """Return what is found. A backend that does not even stop when cancelled is abandoned."""
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
    """Return what to mention unasked, with the lowest label in it, without what was `said` before. Foreign
    memories are added only if there is nothing better: one of them makes the conversation's lessons wait for
    the owner."""
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
    """Return what a conversation was reminded of so far."""
    return [message.reminder.text for message in messages if message.reminder]
