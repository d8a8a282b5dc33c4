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
"""How long a digest is, as a share of the conversation."""
SMALL = 8_000
"""Tokens of a conversation that is not worth a digest: what that leaves out is worth more than it costs."""


class Bounds(Struct, frozen=True):
    """What a run may take: model calls, tokens, seconds; and all runs of a day, in US dollars or, where no
    price is known, in tokens. `unpaid` is what a folder may cost without bringing anything; 0: any amount."""

    calls: int = 16
    tokens: int = 300_000
    seconds: float = 600.0
    daily: float = 1.0
    daily_tokens: int = 3_000_000
    unpaid: float = 0.0


USUAL = Bounds()


async def spent(sessions: Sessions, bounds: Bounds, now: datetime) -> str:
    """Why nothing more may be spent today; empty if it may."""
    today = now.astimezone().date()
    start, end = (datetime.combine(day, time()).astimezone() for day in (today, today + timedelta(days=1)))
    # Added up where it is stored: a busy day has many rows, and this is asked before each call of a review.
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
    """`age`: seconds since the conversation's last request. `lasts`: how long the provider keeps what it
    read. `share`: what reading from the cache costs, as a share of fresh input; None if nobody knows."""

    age: float
    lasts: float
    tokens: int
    same_model: bool = True
    share: float | None = None


def is_warm(reading: Reading) -> bool:
    """True: read the conversation itself."""
    if not reading.same_model:
        return False
    if reading.tokens <= SMALL:
        return True
    if reading.age > reading.lasts:
        return False
    return reading.share is None or reading.share <= DIGEST_SHARE


class Watched:
    """The model of a review: before each call, the budget is looked at. `overflowed`: a request did not fit
    into the window; `over_budget`: one was not sent."""

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
