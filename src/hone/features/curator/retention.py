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
    """Days without use after which a skill is stale, and after which it is archived. `gap`: the most days
    between two that count."""

    stale: int = 30
    archived: int = 90
    gap: int = 7


TERMS = Terms()


class Grade(StrEnum):
    ACTIVE = "active"
    STALE = "stale"
    ARCHIVED = "archived"
    """It is to be archived."""


class Aged(Struct, frozen=True):
    name: str
    unused: int
    """In days."""
    grade: Grade


class Calendar(Struct, frozen=True):
    """How many days had counted when each day was last seen, and how many have by now."""

    marks: Mapping[date, int]
    total: int
    gap: timedelta

    def mark(self, day: date) -> int | None:
        """Return how many had counted by that day, or by the last day of use before it. Return None if no
        such day is near: a clock was wrong, or the day is unknown."""
        near = (day - timedelta(back) for back in range(self.gap.days + 1) if day.toordinal() > back)
        return next((self.marks[each] for each in near if each in self.marks), None)

    def since(self, mark: int) -> int:
        """Count the days since that are over."""
        return max(0, self.total - mark - 1)


def reckon(days: Iterable[date], terms: Terms) -> Calendar:
    """Build the calendar from the `days` of use, in the order of events, by the clock of that time."""
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
    """Return the grade of every skill that can age, by name. `used` are the days of use of each; `changed`
    says which skill was created or changed on which day, in the order of events. A skill without a date does
    not age."""
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
    """Return the grades for the names of skills that can age."""
    calendar = reckon(days, terms)
    young = _young(calendar, used, changed)
    unused = ((name, calendar.since(young.get(name, calendar.total))) for name in names)
    return tuple(Aged(name, days, _grade(days, terms)) for name, days in unused)


def _young(
    calendar: Calendar, used: Mapping[str, Collection[date]], changed: Iterable[tuple[str, date]]
) -> dict[str, int]:
    """Return how many days had counted when something last happened to each skill. A later event is never
    earlier in time, whatever its date says."""
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
