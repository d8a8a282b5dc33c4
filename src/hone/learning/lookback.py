"""Look back over the conversations of one process: while it runs, when it asks for it, and when it ends."""

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
"""Seconds of silence after which a conversation is looked back over at the latest."""
WARM = 0.8
"""The share of the time that a provider keeps a prompt after which that is done."""

log = logging.getLogger("hone")
LEFT = "Hone ends before its reviews do. The next conversation does them, or: hone worker --once"


class Schedule(StrEnum):
    """Who does the reviews of a process's conversations."""

    BACKGROUND = "background"
    """This process, in its event loop."""
    QUEUE = "queue"
    """Another one: a chat, a server or a worker on the same home."""
    OFF = "off"
    """Nobody: nothing is counted or queued."""


def choose_schedule(wanted: str, variable: str) -> Schedule:
    """Return what the program wants, else what the variable HONE_LEARNING says. `off` there is for all."""
    name = variable if variable == Schedule.OFF else wanted or variable or Schedule.BACKGROUND
    try:
        return Schedule(name)
    except ValueError:
        names = ", ".join(Schedule)
        raise SettingsError(f"{name!r} is not a way to learn. Use one of {names}.") from None


def explain_off(schedule: Schedule, learning: Learning) -> str:
    """Return why nothing is looked back over; empty if it is."""
    if learning.review == "off":
        return 'Reviews are off: learning.review is "off" in hone.toml.'
    return "Reviews are off for this process." if schedule is Schedule.OFF else ""


def look_after(after_exit: str, rule: Callable[[str], CacheRule]) -> Callable[[str], float | None]:
    """Return, by model, the seconds of silence after which a conversation is looked back over; None: never.
    They depend on how long the model's provider keeps the conversation."""
    return cache(lambda model: None if after_exit == "off" else min(WARM * rule(model).lasts, LATEST))


class Lookback:
    """`wait` is how many seconds the end of the process, or its first conversation, may take for reviews."""

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
        """Review what an earlier process left, before the first conversation here begins. A person types
        meanwhile; a program speaks at once, and its first prompt would not know it."""
        if self._schedule is not Schedule.BACKGROUND or self._caught_up:
            return
        self._caught_up = True
        if self._wait > 0:
            with suppress(StoreError):  # what cannot be read now is left to the next process
                await self._background.catch_up(self._hear, self._wait)

    def _attend(self) -> None:
        if not self._background.is_attended:
            self._background.attend(self._hear)

    def join(self, session: SessionId) -> None:
        """A conversation was opened here."""
        self._talks[session] = None
        if self._schedule is Schedule.BACKGROUND:
            self._attend()

    def forget(self, session: SessionId) -> None:
        """A conversation was closed and may be opened again: its look is due by its own time."""
        self._talks.pop(session, None)

    async def leave(self, *sessions: SessionId) -> None:
        """The owner has left these conversations, or all of them: what they taught is looked for now."""
        left = sessions or tuple(self._talks)
        if left and self._schedule is not Schedule.OFF:
            await self._jobs.hasten(left, self._clock.now())
            self._background.notify()

    async def is_awaited(self) -> bool:
        """Tell whether a conversation of this process is still to be reviewed, now or when it is silent."""
        return any([await self._background.next_look(each) for each in self._talks])

    async def learned(self) -> Sequence[Entry]:
        """Look back over the conversations so far and return what was learned since the last call."""
        if self._schedule is Schedule.BACKGROUND:
            await self.leave()
            await self._background.drain()
        found, self._learned = self._learned, []
        return found

    async def finish(self, *, wait: bool = True) -> None:
        """Do what is left for a few seconds; leave the rest for later."""
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
