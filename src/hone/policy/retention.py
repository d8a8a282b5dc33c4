"""When a skill that was learned is put away. Age is counted in days on which Hone was used; no clock is read.

A day counts if Hone was used on it and it comes after the last day that counted, by a week at most; the
latest one is not over and makes nothing older yet. So a month without Hone ages nothing, a clock that jumps
far ahead or back only begins another count, and one that was a few days ahead gives back what it took: those
days do not count a second time.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum

from hone.core.skill import Birth, Listed


@dataclass(frozen=True, slots=True)
class Terms:
    """Days without use after which a skill is stale, and after which it is put away. `gap`: the most between
    two days that count."""

    stale: int = 30
    archived: int = 90
    gap: int = 7


TERMS = Terms()


class Stage(StrEnum):
    ACTIVE = "active"
    STALE = "stale"
    ARCHIVED = "archived"
    """It is to be put away."""


@dataclass(frozen=True, slots=True)
class Aged:
    name: str
    unused: int
    """Days."""
    stage: Stage


@dataclass(frozen=True, slots=True)
class Calendar:
    """How many days had counted when each day was last seen, and how many have by now."""

    marks: Mapping[date, int]
    total: int

    def since(self, day: date) -> int:
        """How many have counted since and are over. A day on which Hone was not used stands for the last one
        before."""
        known = self.marks.get(day)
        earlier = (mark for seen, mark in self.marks.items() if seen < day)
        return max(0, self.total - (max(earlier, default=0) if known is None else known) - 1)


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
    return Calendar(marks, total)


def plan(
    skills: Iterable[Listed],
    touched: Mapping[str, Collection[date]],
    days: Sequence[date],
    terms: Terms = TERMS,
) -> tuple[Aged, ...]:
    """Every skill that can age, by name. `touched` are the days on which each was used, made or changed; one
    of which none is known does not age."""
    calendar = reckon(days, terms)
    aged = []
    for skill in sorted(skills, key=lambda each: each.name):
        if skill.birth is Birth.AGENT and not skill.pinned and not skill.archived:
            unused = min(map(calendar.since, touched.get(skill.name, ())), default=0)
            aged.append(Aged(skill.name, unused, _stage(unused, terms)))
    return tuple(aged)


def _stage(unused: int, terms: Terms) -> Stage:
    if unused >= terms.archived:
        return Stage.ARCHIVED
    return Stage.STALE if unused >= terms.stale else Stage.ACTIVE
