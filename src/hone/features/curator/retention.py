"""Decide when to archive a learned skill. Age is counted in days on which Hone was used; no clock is read.

A day counts if Hone was used on it and it comes after the last day that counted, by a week at most. The
latest day is not over yet and ages nothing. So a month without Hone ages nothing. A clock that jumps far
ahead or back only starts another count. If a clock was a few days ahead and is corrected, those days do not
count a second time.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import date, timedelta
from enum import StrEnum

from msgspec import Struct

from hone.core.skill import ListedSkill, SkillOrigin


class Terms(Struct, frozen=True):
    """Days without use after which a skill is stale, and after which it is put away. `gap`: the most between
    two days that count."""

    stale: int = 30
    archived: int = 90
    gap: int = 7


TERMS = Terms()


class Grade(StrEnum):
    ACTIVE = "active"
    STALE = "stale"
    ARCHIVED = "archived"
    """It is to be put away."""


class Aged(Struct, frozen=True):
    name: str
    unused: int
    """Days."""
    grade: Grade


class Calendar(Struct, frozen=True):
    """How many days had counted when each day was last seen, and how many have by now."""

    marks: Mapping[date, int]
    total: int
    gap: timedelta

    def mark(self, day: date) -> int | None:
        """How many had counted by that day, or by the last one before on which Hone was used. None if no such
        day is near: then a clock was wrong, or nobody can tell."""
        near = (day - timedelta(back) for back in range(self.gap.days + 1) if day.toordinal() > back)
        return next((self.marks[each] for each in near if each in self.marks), None)

    def since(self, mark: int) -> int:
        """How many have counted since and are over."""
        return max(0, self.total - mark - 1)


def reckon(days: Iterable[date], terms: Terms) -> Calendar:
    """`days` on which Hone was used, in the order in which that happened, as the clock said then."""
    marks: dict[date, int] = {}
    gap, total = timedelta(terms.gap), 0
    last: date | None = None
    for day in days:
        if last is None or abs(day - last) > gap:
            last = day
        elif day > last:
            last, total = day, total + 1
        marks[day] = total
    return Calendar(marks, total, gap)


def plan(
    skills: Iterable[ListedSkill],
    used: Mapping[str, Collection[date]],
    changed: Iterable[tuple[str, date]],
    days: Iterable[date],
    terms: Terms = TERMS,
) -> tuple[Aged, ...]:
    """Every skill that can age, by name. `used` are the days on which each was used; `changed` says who was
    made or changed on which day, in the order in which that happened. What cannot be dated does not age."""
    own = (each for each in skills if each.origin is SkillOrigin.AGENT)
    names = sorted(each.name for each in own if not each.pinned and not each.archived)
    return grade(names, used, changed, days, terms)


def grade(
    names: Iterable[str],
    used: Mapping[str, Collection[date]],
    changed: Iterable[tuple[str, date]],
    days: Iterable[date],
    terms: Terms = TERMS,
) -> tuple[Aged, ...]:
    """The same for the names of skills that can age."""
    calendar = reckon(days, terms)
    young = _young(calendar, used, changed)
    unused = ((name, calendar.since(young.get(name, calendar.total))) for name in names)
    return tuple(Aged(name, days, _grade(days, terms)) for name, days in unused)


def _young(
    calendar: Calendar, used: Mapping[str, Collection[date]], changed: Iterable[tuple[str, date]]
) -> dict[str, int]:
    """How many days had counted when something last happened to each skill. What comes later in the order is
    no earlier in time, whatever its date says."""
    young: dict[str, int] = {}
    marks: dict[date, int | None] = {}
    level = 0
    for name, day in changed:
        if day not in marks:
            marks[day] = calendar.mark(day)
        mark = marks[day]
        level = max(level, mark or 0)
        young[name] = calendar.total if mark is None else level
    for name, days in used.items():
        for day in days:
            mark = calendar.mark(day)
            young[name] = max(young.get(name, 0), calendar.total if mark is None else mark)
    return young


def _grade(unused: int, terms: Terms) -> Grade:
    if unused >= terms.archived:
        return Grade.ARCHIVED
    return Grade.STALE if unused >= terms.stale else Grade.ACTIVE
