"""What learning may take: a single run, and all of them in a day."""

from datetime import datetime

from hone.core.ports import Sessions
from hone.core.turn import Origin
from hone.core.value import dataclass

LEARNING = (Origin.REVIEW, Origin.CURATOR)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a run may take: model calls, tokens, seconds; and all runs of a day, in US dollars or, where no
    price is known, in tokens. `lasts` is how long a provider keeps a prompt in its cache."""

    calls: int = 16
    tokens: int = 300_000
    seconds: float = 600.0
    daily: float = 1.0
    daily_tokens: int = 3_000_000
    lasts: float = 300.0


USUAL = Bounds()


async def spent(sessions: Sessions, bounds: Bounds, now: datetime) -> str:
    """Why nothing more may be spent today; empty if it may."""
    midnight = now.astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    # Only what counts is read: a year of turns is long, and this is asked before each review.
    today = await sessions.spending(since=midnight, origins=LEARNING)
    rows = [each for each in today if each.at.astimezone().date() == midnight.date()]
    cost = sum(each.usage.cost or 0.0 for each in rows)
    unpriced = sum(each.usage.input + each.usage.output for each in rows if each.usage.cost is None)
    if cost >= bounds.daily:
        return f"The budget of {bounds.daily:.2f} USD a day is spent; it goes on tomorrow."
    if unpriced >= bounds.daily_tokens:
        return f"The budget of {bounds.daily_tokens:,} tokens a day is spent; it goes on tomorrow."
    return ""
