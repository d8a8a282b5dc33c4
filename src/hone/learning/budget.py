"""Limit what learning may cost, and choose the cheaper way to read a conversation.

A fork that starts with the bytes of its parent's last request is read from the provider's cache, at a tenth
of the price or less, as long as the cache is warm. Then the whole conversation costs `tokens * cached`. A
digest of a fifth of it, which no cache has, costs `tokens / 5 * input`. So the fork is cheaper, and it reads
everything. Once the cache is cold, or under another model, the fork costs `tokens * input`: five digests.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from datetime import datetime, time, timedelta

from msgspec import Struct

from hone.core.errors import Overflow, Rejected
from hone.core.model import Model, Piece
from hone.core.ports import Sessions
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.core.turn import Origin

LEARNING = (Origin.REVIEW, Origin.CURATOR)
DIGEST_SHARE = 0.2
"""The length of a digest, as a share of the conversation."""
SMALL = 8_000
"""Tokens below which a conversation gets no digest: reading the rest costs less than leaving it out."""


class Bounds(Struct, frozen=True):
    """The limits of a run: model calls, tokens, seconds; and of all runs of a day, in US dollars or, if no
    price is known, in tokens. `unpaid` is what a folder may cost without any benefit; 0: unlimited."""

    calls: int = 16
    tokens: int = 300_000
    seconds: float = 600.0
    daily: float = 1.0
    daily_tokens: int = 3_000_000
    unpaid: float = 0.0


USUAL = Bounds()


async def spent(sessions: Sessions, bounds: Bounds, now: datetime) -> str:
    """Return why nothing more may be spent today; empty if it may."""
    today = now.astimezone().date()
    start, end = (datetime.combine(day, time()).astimezone() for day in (today, today + timedelta(days=1)))
    # Added up in the database: a busy day has many rows, and each call of a review asks this.
    total = await sessions.total_spending(start, end, LEARNING)
    if total.cost >= bounds.daily:
        return f"The budget of {bounds.daily:.2f} USD a day is spent; reviews continue tomorrow."
    if total.unpriced >= bounds.daily_tokens:
        return f"The budget of {bounds.daily_tokens:,} tokens a day is spent; reviews continue tomorrow."
    return ""


def tomorrow(now: datetime) -> datetime:
    """Return when the budget of the next day begins."""
    return datetime.combine(now.astimezone().date() + timedelta(days=1), time()).astimezone()


class Reading(Struct, frozen=True):
    """How to read a conversation. `age`: seconds since its last request. `lasts`: how long the provider keeps
    its cache. `share`: the price of reading from the cache, as a share of fresh input; None if unknown."""

    age: float
    lasts: float
    tokens: int
    same_model: bool = True
    share: float | None = None


def is_warm(reading: Reading) -> bool:
    """Tell whether to read the conversation itself, and not a digest."""
    if not reading.same_model:
        return False
    if reading.tokens <= SMALL:
        return True
    if reading.age > reading.lasts:
        return False
    return reading.share is None or reading.share <= DIGEST_SHARE


class Watched:
    """The model of a review. It checks the budget before each call. `overflowed`: a request exceeded the
    context window; `over_budget`: one was not sent."""

    def __init__(self, model: Model, over_budget: Callable[[], Awaitable[str]]) -> None:
        self.model = model
        self.overflowed = self.over_budget = False
        self._reason = over_budget

    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        if reason := await self._reason():
            self.over_budget = True
            raise Rejected(reason)
        try:
            async with aclosing(self.model.stream(prefix, transcript)) as pieces:
                async for piece in pieces:
                    yield piece
        except Overflow:
            self.overflowed = True
            raise
