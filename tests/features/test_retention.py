"""Ageing is counted in days on which Hone was used; no clock can put a skill away."""

from collections.abc import Sequence
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.skill import ListedSkill, SkillOrigin
from hone.features.curator.retention import TERMS, Grade, Terms, plan, reckon

START = date(2026, 1, 1)
NAME = "trip-planning"
SKILL = ListedSkill(NAME, "Plan a trip.", "0" * 64)

names = st.sampled_from([f"skill-{letter}" for letter in "abcdefgh"])
libraries = st.lists(
    st.builds(
        ListedSkill,
        names,
        st.just("About it."),
        st.just("0" * 64),
        st.sampled_from(SkillOrigin),
        st.booleans(),
        st.booleans(),
    ),
    max_size=8,
    unique_by=lambda each: each.name,
)
offsets = st.one_of(st.integers(-9, 9), st.integers(-9_000, 9_000)).filter(bool)
anything = st.lists(st.dates(date(1990, 1, 1), date(2090, 1, 1)), max_size=150)


def daily(count: int, start: date = START) -> list[date]:
    return [start + timedelta(number) for number in range(count)]


def age(days: Sequence[date], used: date = START, terms: Terms = TERMS) -> int:
    [aged] = plan([SKILL], {NAME: {used}}, (), days, terms)
    return aged.unused


@pytest.mark.parametrize(
    ("days", "unused", "grade"),
    [
        (daily(1), 0, Grade.ACTIVE),
        (daily(31), 29, Grade.ACTIVE),
        (daily(32), 30, Grade.STALE),
        (daily(91), 89, Grade.STALE),
        (daily(92), 90, Grade.ARCHIVED),
        ([START + timedelta(3 * number) for number in range(32)], 30, Grade.STALE),
        ([START, START + timedelta(400)], 0, Grade.ACTIVE),
        ([*daily(20), *daily(20, START + timedelta(300))], 37, Grade.STALE),
        ([day for day in daily(40) for _ in range(5)], 38, Grade.STALE),
        ([], 0, Grade.ACTIVE),
    ],
    ids=[
        "today",
        "29",
        "30",
        "89",
        "90",
        "every third day",
        "a year away",
        "a break",
        "many turns a day",
        "never",
    ],
)
def test_a_skill_ages_by_the_days_on_which_hone_was_used(days: list[date], unused: int, grade: Grade) -> None:
    [aged] = plan([SKILL], {NAME: {START}}, (), days)
    assert (aged.unused, aged.grade) == (unused, grade)


@given(
    libraries, anything, st.dictionaries(names, st.sets(st.dates())), st.lists(st.tuples(names, st.dates()))
)
def test_only_what_was_learned_and_is_neither_pinned_nor_archived_can_age(
    library: list[ListedSkill], days: list[date], used: dict[str, set[date]], changed: list[tuple[str, date]]
) -> None:
    aged = plan(library, used, changed, days, Terms(1, 2))
    own = {
        each.name
        for each in library
        if each.origin is SkillOrigin.AGENT and not (each.pinned or each.archived)
    }
    assert {each.name for each in aged} == own
    dated = {name for name, _ in changed} | {name for name, each in used.items() if each}
    assert all(each.grade is Grade.ACTIVE for each in aged if each.name not in dated)


@given(anything, st.integers(0, 149))
def test_what_was_used_on_the_last_day_has_no_age(days: list[date], number: int) -> None:
    if days:
        assert age(days, days[-1]) == 0
        used = days[min(number, len(days) - 1)]
        assert 0 <= age(days, used) <= len(days) - 1 - (len(days) - 1 - days[::-1].index(used))


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=100),
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 6), offsets), max_size=20),
)
def test_a_clock_that_jumps_ages_nothing(gaps: list[int], jumps: list[tuple[int, int, int]]) -> None:
    """Hone is really used on `days`. Every now and then the clock is wrong for a while, by a few days or by
    years, and is put right again: at no moment is a skill older for it than it is."""
    days = [START]
    for gap in gaps:
        days.append(days[-1] + timedelta(gap))
    seen, at = list(days), 0
    for right, wrong, offset in jumps:
        at += right
        for number in range(at, min(at + wrong, len(seen))):
            seen[number] += timedelta(offset)
        at += wrong
    for end in range(1, len(days) + 1):
        assert age(seen[:end], seen[0]) <= len(set(days[:end])) - 1


@given(st.integers(8, 20_000), st.booleans())
def test_a_jump_for_good_begins_another_count_and_adds_nothing(size: int, back: bool) -> None:
    first = daily(5)
    moved = daily(40, first[-1] + timedelta(-size if back else size))
    assert reckon([*first, moved[0]], TERMS).total == reckon(first, TERMS).total == 4
    assert reckon([*first, *moved], TERMS).total == 4 + 39


def test_a_clock_that_is_put_back_ages_no_skill_that_was_used_since() -> None:
    """It was used in a far future by mistake, and again today: the day of today counts."""
    future = date(2036, 1, 1)
    days = [*daily(10), future, *daily(100, START + timedelta(10))]
    [aged] = plan([SKILL], {NAME: {future, days[-1]}}, (), days)
    assert aged.unused == 0
    [aged] = plan([SKILL], {NAME: {future}}, (), days)
    assert aged.unused == 98


def test_a_day_without_hone_stands_for_the_last_one_before_it() -> None:
    days = [*daily(10), *daily(10, START + timedelta(12))]
    assert age(days, START + timedelta(10)) == 9
    assert age(days, START + timedelta(11)) == 9


@pytest.mark.parametrize("size", [-9_000, -30, 120, 9_000])
def test_what_happened_on_a_day_that_nobody_can_place_does_not_age(size: int) -> None:
    assert age(daily(100), START + timedelta(size)) == 0


def test_what_was_changed_later_is_no_older_whatever_its_date_says() -> None:
    """The clock was put back by eighty days when it was made: it is as young as what was made before it."""
    days = daily(100)
    changed = [("other", days[95]), (NAME, days[15])]
    [aged] = plan([SKILL], {}, changed, days)
    assert aged.unused == 3
    [aged] = plan([SKILL], {}, changed[::-1], days)
    assert aged.unused == 83
