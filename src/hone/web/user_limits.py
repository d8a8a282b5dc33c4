"""Enforce a user's limits: cost, storage, waiting reviews, and turns and requests at a time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from hone.core.clock import Clock
from hone.core.errors import LimitReached
from hone.core.users import AuditEvent, AuditNote, UserDirectory, UserLimits
from hone.core.value import replace
from hone.settings.sections import ServeSettings
from hone.web.keys import Keys

N = TypeVar("N", int, float)
MEGABYTE = 1_000_000
FRESH = 60.0
"""Seconds for which a measured storage is assumed, if there is room."""
ROOM = 0.8
"""The share of the storage limit above which storage is measured each time."""
LARGE = 1_000
"""Bytes of a request that stores something. Without storage left a user may send smaller ones, to undo."""
ACTIVE, WAITING, STREAMS = 4, 64, 64
"""For one user and process: requests handled at a time, waiting requests, and event streams."""
SOON, LATER = 1.0, 60.0
"""Seconds after which to try again."""
LINGER, SPACE, LONGEST = 1.0, 0.05, 10.0
"""Seconds that a refusal takes, between two of the same user, and at most."""
REMEMBERED = 1_000
"""How many users and addresses to remember the last refusal of."""
PACE = 0.5
"""Seconds between the starts of a user's turns, while others of them are running."""
HELD, NOTED = 2.0, 1.0
"""Seconds for which a refusal holds without a query, and between two records of the same one."""
TURNS = "{} turns of yours are under way. Wait until one has ended."
REQUESTS = "{} requests of yours are waiting. Wait until some are answered."
REVIEWS = "{} reviews of yours are waiting. Send more when workers have done some."
COST = "You have spent your {:.2f} USD of today. You can go on at midnight (UTC), or ask for a higher limit."
STORAGE = "You keep {:,} MB, and your limit is {:,} MB. Delete or erase something, or ask for a higher limit."


class LateRefusals:
    """Delays refusals, one after another for each user: flooding clients get few of them, and never retry all
    at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last: dict[str, float] = {}

    async def wait(self, who: str) -> None:
        now = self._clock.monotonic()
        leaves = min(max(now + LINGER, self._last.pop(who, 0.0) + SPACE), now + LONGEST)
        self._last[who] = leaves
        if len(self._last) > REMEMBERED:
            del self._last[next(iter(self._last))]
        await self._clock.sleep(leaves - now)


class UserLimiter:
    """The limits of one user in one server process. Where a user has no limit, that of the settings
    applies."""

    def __init__(
        self, user: str, directory: UserDirectory, keys: Keys, clock: Clock, settings: ServeSettings
    ) -> None:
        self._user = user
        self._directory = directory
        self._keys = keys
        self._clock = clock
        self._settings = settings
        self._active = asyncio.Semaphore(ACTIVE)
        self._waiting = self._streams = 0
        self._stored = self._since = 0
        self._measured: float | None = None
        self._turns = settings.turns
        self._next = 0.0
        self._late = LateRefusals(clock)
        self._refused: tuple[float, LimitReached] | None = None
        self._noted: dict[str, float] = {}

    async def admit(self, turns: int) -> None:
        """Raise LimitReached unless another turn, or such work, may begin. `turns` are running, including
        this one. A refusal is repeated for a moment without asking the database. While another turn is
        running, they begin one after another with a pause, so that others get their turn."""
        if turns > 1:
            await self._pace()
        if self._refused and self._clock.monotonic() < self._refused[0]:
            refusal = self._refused[1]
            await self._late.wait(self._user)
            raise refusal
        limits = await self._limits()
        self._turns = limits.turns or self._turns
        await self.count(turns)
        used = await self._keys.ask(lambda: self._directory.usage(self._user, storage=False))
        if limits.cost_per_day is not None and used.cost >= limits.cost_per_day:
            raise await self._refuse("cost per day", COST.format(limits.cost_per_day), self._until_midnight())
        if limits.reviews is not None and used.reviews >= limits.reviews:
            raise await self._refuse("reviews", REVIEWS.format(used.reviews), LATER)
        await self._check_storage(limits)

    async def _pace(self) -> None:
        """Wait until some time has passed since the last one that waited here."""
        begins = max(self._next, self._clock.monotonic())
        self._next = begins + PACE
        await self._clock.sleep(begins - self._clock.monotonic())

    async def count(self, turns: int) -> None:
        """Raise LimitReached for too many turns, by the last known figures."""
        if turns > self._turns:
            raise await self._refuse("turns", TURNS.format(self._turns), SOON)

    async def _limits(self) -> UserLimits:
        own, usual = await self._keys.ask(lambda: self._directory.limits(self._user)), self._settings
        return replace(
            own,
            cost_per_day=_choose(own.cost_per_day, usual.cost_per_day),
            storage_mb=_choose(own.storage_mb, usual.storage_mb),
            reviews=_choose(own.reviews, usual.reviews),
            turns=own.turns or usual.turns,
        )

    async def _check_storage(self, limits: UserLimits) -> None:
        if limits.storage_mb is None:
            return
        most, now = limits.storage_mb * MEGABYTE, self._clock.monotonic()
        is_old = self._measured is None or now - self._measured > FRESH
        if is_old or self._stored + self._since >= ROOM * most:
            used = await self._keys.ask(lambda: self._directory.usage(self._user, storage=True))
            self._stored, self._since, self._measured = used.storage, 0, now
        if self._stored >= most:
            kept = STORAGE.format(self._stored // MEGABYTE, limits.storage_mb)
            raise await self._refuse("storage", kept, LATER)

    async def receive(self, size: int) -> None:
        """Count the bytes of a request. Raises LimitReached for a large one if the user has no storage
        left."""
        if size > LARGE:
            await self._check_storage(await self._limits())
            self._since += size

    @asynccontextmanager
    async def request(self, *, lasting: bool) -> AsyncIterator[None]:
        """Admit one request. A `lasting` one waits for a model, or for events. Raises LimitReached."""
        if lasting:
            if self._streams >= STREAMS:
                raise await self._refuse("requests at a time", REQUESTS.format(STREAMS), SOON)
            self._streams += 1
            try:
                yield
            finally:
                self._streams -= 1
            return
        if self._waiting >= WAITING:
            raise await self._refuse("requests at a time", REQUESTS.format(WAITING), SOON)
        self._waiting += 1
        try:
            async with self._active:
                yield
        finally:
            self._waiting -= 1

    async def _refuse(self, limit: str, sentence: str, wait: float) -> LimitReached:
        """Record a refusal, once a second. The answer comes late, so that a flood gets fewer."""
        now, note = self._clock.monotonic(), AuditNote(AuditEvent.LIMIT_REACHED, self._user, limit)
        if now - self._noted.get(limit, -NOTED) >= NOTED:
            self._noted[limit] = now
            await self._keys.ask(lambda: self._directory.note(note))
        refusal = LimitReached(sentence, wait)
        if wait > SOON:
            self._refused = now + HELD, refusal
        await self._late.wait(self._user)
        return refusal

    def _until_midnight(self) -> float:
        now = datetime.now(UTC)
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        return (midnight - now).total_seconds()


def _choose(own: N | None, usual: N) -> N | None:
    """Choose a limit. Zero in the settings means no limit; a user's own zero is one."""
    return own if own is not None else usual or None
