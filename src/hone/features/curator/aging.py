"""Count the skills that have not been used for long, without reading them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from itertools import pairwise

from hone.core.ledger import Actor
from hone.core.overview import Overview, SkillTouch
from hone.core.ports import Sessions
from hone.core.skill import SkillOrigin
from hone.core.turn import Origin
from hone.features.curator.retention import TERMS, Aged, Grade, grade
from hone.knowledge import places
from hone.knowledge.library import Library

LONGEST = 4_000
"""The most days between the first call and the last to check one by one."""


async def count_stale(library: Library, overview: Overview, sessions: Sessions) -> int:
    return sum(each.grade is not Grade.ACTIVE for each in await load_ages(library, overview, sessions))


async def load_ages(library: Library, overview: Overview, sessions: Sessions) -> Sequence[Aged]:
    """Return how old each skill is that can age."""
    touches = await overview.skill_touches()
    forebears = find_forebears(touches)
    pending = await library.keeper.ledger.pending()
    busy = {
        places.name_of(each.change.target) for each in pending if each.change.author.actor is Actor.CURATOR
    }
    names = await overview.skill_names(SkillOrigin.AGENT, pinned=False, archived=False)
    own = [name for name in names if name not in busy]
    days = await library.days()
    used = {name: frozenset().union(*_used(name, days, forebears)) for name in own}
    return grade(own, used, _changed(touches, forebears), await days_of_use(overview, sessions), TERMS)


def _used(
    name: str, days: Mapping[str, Collection[date]], forebears: Mapping[str, set[str]]
) -> Iterator[Collection[date]]:
    return (days[each] for each in (name, *forebears.get(name, ())) if each in days)


def find_forebears(touches: Iterable[SkillTouch]) -> Mapping[str, set[str]]:
    """Return the skills that each was merged from, and their own sources."""
    found: dict[str, set[str]] = {}
    for touch in touches:
        if touch.merged:
            earlier = set[str]().union(*(found.get(each, ()) for each in touch.merged))
            found.setdefault(touch.name, set()).update({*touch.merged, *earlier})
    return found


def _changed(touches: Iterable[SkillTouch], forebears: Mapping[str, set[str]]) -> Iterator[tuple[str, date]]:
    """Yield the days on which skills were changed, oldest first, each with those that it was merged into."""
    local = _LocalDays()
    for touch in touches:
        if touch.counts:
            heirs = (name for name, merged in forebears.items() if touch.name in merged)
            for name in dict.fromkeys((touch.name, *heirs)):
                yield (
                    name,
                    local[touch.at.replace(minute=touch.at.minute // 15 * 15, second=0, microsecond=0)],
                )


class _LocalDays(dict[datetime, date]):
    """The local day of a quarter of an hour: every time zone is a multiple of that."""

    def __missing__(self, at: datetime) -> date:
        return self.setdefault(at, at.astimezone().date())


async def days_of_use(overview: Overview, sessions: Sessions) -> Sequence[date]:
    """Return the days on which the owner used Hone, in the order of events. If no clock ever went back, that
    is their own order, and the calls of a day need not be read."""
    extent = await overview.extent()
    if extent is None:
        return ()
    first, last = (each.astimezone().date() for each in extent)
    if (last - first).days <= LONGEST:
        days = [first + timedelta(days=number) for number in range((last - first).days + 2)]
        bounds = [datetime.combine(day, time()).astimezone() for day in days]
        numbers = await overview.numbers(bounds, Origin.USER)
        found = [(day, each) for day, each in zip(days, numbers, strict=False) if each]
        if all(before[1][1] < after[1][0] for before, after in pairwise(found)):
            return [day for day, _ in found]
    return [each.at.astimezone().date() for each in await sessions.spending(origins=(Origin.USER,))]
