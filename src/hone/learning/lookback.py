"""Look back over the conversations of one process: while it runs, on request, and when it ends."""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import cache

from hone.core.clock import Clock
from hone.core.errors import SettingsError, StoreError
from hone.core.events import Event, Learned
from hone.core.ids import SessionId
from hone.core.jobs import Jobs
from hone.core.ledger import Entry
from hone.learning.background import Background
from hone.models.cacherules import CacheRule
from hone.settings.sections import Learning

LATEST = 600.0
"""The most seconds of silence before a conversation is looked back over."""
WARM = 0.8
"""The share of the provider's cache window after which that happens."""

log = logging.getLogger("hone")
LEFT = "Hone ends before its reviews do. The next conversation does them, or: hone worker --once"


class Schedule(StrEnum):
    """Who does the reviews of a process's conversations."""

    BACKGROUND = "background"
    """This process, in its event loop."""
    QUEUE = "queue"
    """Another process: a chat, a server or a worker on the same home."""
    OFF = "off"
    """No process: nothing is counted or queued."""


def choose_schedule(wanted: str, variable: str) -> Schedule:
    """Return the program's choice, or else that of the variable HONE_LEARNING. `off` there always wins."""
    name = variable if variable == Schedule.OFF else wanted or variable or Schedule.BACKGROUND
    try:
        return Schedule(name)
    except ValueError:
        names = ", ".join(Schedule)
        raise SettingsError(f"{name!r} is not a way to learn. Use one of {names}.") from None


def explain_off(schedule: Schedule, learning: Learning) -> str:
    """Return why nothing is looked back over; empty if something is."""
    if learning.review == "off":
        return 'Reviews are off: learning.review is "off" in hone.toml.'
    return "Reviews are off for this process." if schedule is Schedule.OFF else ""


def look_after(after_exit: str, rule: Callable[[str], CacheRule]) -> Callable[[str], float | None]:
    """Return a function from a model to the seconds of silence before a conversation is looked back over;
    None: never. They depend on how long the model's provider keeps the conversation."""
    return cache(lambda model: None if after_exit == "off" else min(WARM * rule(model).lasts, LATEST))


class Lookback:
    """`wait` is how many seconds reviews may delay the end of the process, or its first conversation."""

    def __init__(
        self, jobs: Jobs, background: Background, clock: Clock, schedule: Schedule, wait: float
    ) -> None:
        self._jobs = jobs
        self._background = background
        self._clock = clock
        self._schedule = schedule
        self._wait = wait
        self._talks: dict[SessionId, None] = {}
        self._learned: list[Entry] = []
        self._caught_up = False

    async def catch_up(self) -> None:
        """Review what an earlier process left, before the first conversation begins. A person types in the
        meantime; a program speaks at once, and its first prompt would miss those lessons."""
        if self._schedule is not Schedule.BACKGROUND or self._caught_up:
            return
        self._caught_up = True
        if self._wait > 0:
            with suppress(StoreError):  # the next process handles what cannot be read now
                await self._background.catch_up(self._hear, self._wait)

    def _attend(self) -> None:
        if not self._background.is_attended:
            self._background.attend(self._hear)

    def join(self, session: SessionId) -> None:
        """Note that a conversation was opened here."""
        self._talks[session] = None
        if self._schedule is Schedule.BACKGROUND:
            self._attend()

    def forget(self, session: SessionId) -> None:
        """Note that a conversation was closed and may be opened again: its look stays due at its own time."""
        self._talks.pop(session, None)

    async def leave(self, *sessions: SessionId) -> None:
        """Look back now: the owner has left these conversations, or all of them."""
        left = sessions or tuple(self._talks)
        if left and self._schedule is not Schedule.OFF:
            await self._jobs.hasten(left, self._clock.now())
            self._background.notify()

    async def is_awaited(self) -> bool:
        """Tell whether a conversation of this process still has to be reviewed, now or after some silence."""
        return any([await self._background.next_look(each) for each in self._talks])

    async def learned(self) -> Sequence[Entry]:
        """Look back over the conversations so far and return what was learned since the last call."""
        if self._schedule is Schedule.BACKGROUND:
            await self.leave()
            await self._background.drain()
        found, self._learned = self._learned, []
        return found

    async def finish(self, *, wait: bool = True) -> None:
        """Do remaining reviews for a few seconds; leave the rest for later."""
        with suppress(StoreError):  # the next process to open the store has the rest
            await self.leave()
            if wait and self._wait > 0 and self._talks and self._schedule is Schedule.BACKGROUND:
                await self._drain()

    async def _drain(self) -> None:
        try:
            async with self._clock.timeout(self._wait):
                await self._background.drain()
        except TimeoutError:
            log.warning(LEFT)

    def _hear(self, event: Event) -> None:
        if isinstance(event, Learned):
            self._learned += event.entries
