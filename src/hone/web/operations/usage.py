"""Usage figures for the page: daily spending on conversations and on learning, and counts of skills."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Annotated, Any

import msgspec

from hone.core.model import total
from hone.core.ports import Spending
from hone.core.turn import Origin
from hone.web.events import spent
from hone.web.operation import Nothing, Operation, OperationCall

LEARNING = frozenset({Origin.REVIEW, Origin.CURATOR})


class Span(msgspec.Struct, frozen=True):
    days: Annotated[int, msgspec.Meta(ge=1, le=366)] = 30


def daily(spendings: Sequence[Spending], today: date, days: int) -> list[dict[str, Any]]:
    """The oldest day first, those without a call included."""
    first = today - timedelta(days=days - 1)
    by_day: dict[date, list[Spending]] = {}
    for each in spendings:
        by_day.setdefault(each.at.astimezone().date(), []).append(each)
    return [_day(day, by_day.get(day, ())) for day in (first + timedelta(days=n) for n in range(days))]


def _day(day: date, rows: Sequence[Spending]) -> dict[str, Any]:
    learning = [each for each in rows if each.origin in LEARNING]
    foreground = [each for each in rows if each.origin not in LEARNING]
    return {"day": day.isoformat(), "foreground": _sum(foreground), "learning": _sum(learning)}


def _sum(rows: Sequence[Spending]) -> dict[str, Any]:
    """`cost` is that of the calls with a known price; `unpriced` counts the others."""
    whole = total(each.usage for each in rows)
    costs = [each.usage.cost for each in rows if each.usage.cost is not None]
    share = whole.cached / whole.input if whole.input else None
    return {
        **spent(whole),
        "cost": sum(costs),
        "unpriced": len(rows) - len(costs),
        "calls": len(rows),
        "cached_share": share,
    }


async def figures(call: OperationCall[Span, Nothing]) -> dict[str, Any]:
    """Cost, tokens and cached share per day; skills by state and by origin."""
    state = call.state
    today = state.clock.now().astimezone().date()
    spendings = await state.hone.sessions.spending()
    skills = await state.hone.library.listed(archived=True)
    active = [each for each in skills if not each.archived]
    origins = sorted({each.origin for each in skills})
    return {
        "days": daily(spendings, today, call.query.days),
        "skills": {
            "active": len(active),
            "pinned": sum(each.pinned for each in active),
            "stale": sum([await part.count_stale() for part in state.hone.parts("count_stale")]),
            "archived": len(skills) - len(active),
            "by_origin": {origin: sum(each.origin is origin for each in active) for origin in origins},
        },
    }


OPERATIONS = (Operation("GET", "/api/figures", figures, query=Span),)
