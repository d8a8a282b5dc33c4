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
from hone.prompt.compose import item

REST = 60.0
"""Seconds in which a backend that failed is not asked again."""
QUESTION = 1_000
"""Characters of the user's words that are asked for."""
MOST = 5
WIDTH = 400
"""Characters of one memory."""
TRUST, HOME = "trust", "home"
"""Names in a memory's metadata: what it was worth when it was stored, and whose copy it is."""


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
    _warned: bool = False
    _resting: float = float("-inf")
    _left: set[asyncio.Task[Sequence[MemoryItem]]] = field(default_factory=set)

    async def __call__(self, words: str, transcript: Transcript) -> tuple[Reminder | None, str]:
        """What to put beside the words, and what to tell the user."""
        if not words.strip() or self.clock.monotonic() < self._resting:
            return None, ""
        try:
            memories = await self._found(self.clean(words[:QUESTION]))
            cloud, said = self.backend.is_cloud, reminded(transcript)
            found = reminder(memories, cloud=cloud, home=await self.home(), said=said)
        except (BackendError, StoreError) as error:
            self._resting = self.clock.monotonic() + REST
            return None, self._warning(str(error))
        return (Reminder(self.clean(found.text), found.label) if found else None), ""

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


def label(memory: MemoryItem, *, cloud: bool) -> Trust:
    """Return the trust of a memory now: the label it was stored with, at most that of the agent's own words.
    What comes from elsewhere is foreign, whatever it says of itself."""
    return Trust.FOREIGN if cloud else min(Trust.AGENT, stored(memory))


def stored(memory: MemoryItem) -> Trust:
    """The label that a memory was stored with; none is the lowest."""
    named = memory.metadata.get(TRUST, "")
    return next((each for each in Trust if each.name.lower() == named), Trust.FOREIGN)


def reminder(
    memories: Iterable[MemoryItem], *, cloud: bool, home: str, said: Sequence[str] = ()
) -> Reminder | None:
    """What is brought up unasked. Not what was stored from foreign words: it would be before the model in
    every conversation that touches it. Not the copies of what this home knows: the ledger has those, and what
    was withdrawn. Not what was `said` before."""
    fitting = [
        memory
        for memory in memories
        if stored(memory) > Trust.FOREIGN
        and not (home and memory.metadata.get(HOME) == home)
        and not any(shown(memory) in each for each in said)
    ][:MOST]
    if not fitting:
        return None
    worth = lowest(label(memory, cloud=cloud) for memory in fitting)
    return Reminder("\n".join(map(shown, fitting)), worth.name.lower())


def shown(memory: MemoryItem) -> str:
    value = memory.value if len(memory.value) <= WIDTH else f"{memory.value[: WIDTH - 1].rstrip()}…"
    return "\n".join(item(f"{memory.key}: {value}"))


def reminded(messages: Iterable[Message]) -> list[str]:
    """What a conversation was reminded of so far."""
    return [message.reminder.text for message in messages if message.reminder]
