"""Usage figures for the page: daily spending on conversations and on learning, and counts of skills."""

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import Annotated, Any

import msgspec

from hone.core.overview import SkillCount, SpendingSum
from hone.core.skill import SkillOrigin
from hone.core.turn import Origin
from hone.web.events import spent
from hone.web.operation import Nothing, Operation, OperationCall

LEARNING = frozenset({Origin.REVIEW, Origin.CURATOR})


class Span(msgspec.Struct, frozen=True):
    days: Annotated[int, msgspec.Meta(ge=1, le=366)] = 30


def midnights(today: date, days: int) -> list[datetime]:
    """Where each of so many local days begins, the last of which is today, and where that ends."""
    first = today - timedelta(days=days - 1)
    return [datetime.combine(first + timedelta(days=n), time()).astimezone() for n in range(days + 1)]


def daily(
    sums: Sequence[tuple[SpendingSum, SpendingSum]], bounds: Sequence[datetime]
) -> list[dict[str, Any]]:
    """The oldest day first, those without a call included."""
    return [
        {"day": at.date().isoformat(), "foreground": _sum(others), "learning": _sum(learning)}
        for at, (learning, others) in zip(bounds[:-1], sums, strict=True)
    ]


def _sum(each: SpendingSum) -> dict[str, Any]:
    """`cost` is that of the calls with a known price; `unpriced` counts the others."""
    usage = each.usage
    share = usage.cached / usage.input if usage.input else None
    return {**spent(usage), "unpriced": each.unpriced, "calls": each.calls, "cached_share": share}


def count_skills(counts: Sequence[SkillCount], own: int, stale: int) -> dict[str, Any]:
    """`own` are those that come with Hone."""
    active = [each for each in counts if not each.archived]
    by_origin = dict.fromkeys(sorted({each.origin for each in counts}), 0)
    for each in active:
        by_origin[each.origin] += each.count
    if own:
        by_origin[SkillOrigin.BUNDLED] = by_origin.get(SkillOrigin.BUNDLED, 0) + own
    return {
        "active": sum(each.count for each in active) + own,
        "pinned": sum(each.count for each in active if each.pinned),
        "stale": stale,
        "archived": sum(each.count for each in counts if each.archived),
        "by_origin": by_origin,
    }


async def figures(call: OperationCall[Span, Nothing]) -> dict[str, Any]:
    """Cost, tokens and cached share per day; skills by state and by origin."""
    hone = call.state.hone
    bounds = midnights(call.state.clock.now().astimezone().date(), call.query.days)
    overview = hone.stores.overview
    own = len(await hone.library.bundled())
    stale = sum([await part.count_stale() for part in hone.parts("count_stale")])
    return {
        "days": daily(await overview.spans(bounds, LEARNING), bounds),
        "skills": count_skills(await overview.skill_counts(), own, stale),
    }


OPERATIONS = (Operation("GET", "/api/figures", figures, query=Span),)
