"""K5: the change that broke a behavior is found among many, though runs succeed and fail by chance."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.features.experiments.bisection import CERTAIN, Tally, choose_state, suspect
from tests.conftest import Figures, Tier

CHANGES, MOST = 200, 120
RATES = [(0.9, 0.1), (1.0, 0.0), (0.8, 0.2), (1.0, 0.3), (0.7, 0.0)]


def search(
    culprit: int, working: float, broken: float, luck: Random, changes: int = CHANGES
) -> tuple[int | None, int]:
    """Return what was found, and how many runs it took."""
    tallies = [Tally()] * (changes + 1)
    for runs in range(MOST):
        suspicion = suspect(tallies)
        if suspicion.culprit is not None:
            return suspicion.culprit, runs
        state = choose_state(tallies, suspicion)
        succeeds = luck.random() < (working if state < culprit else broken)
        tallies[state] += Tally(int(succeeds), int(not succeeds))
    return None, MOST


@pytest.mark.timeout(1_800)
def test_a_bad_lesson_among_200_is_found_in_95_of_100_worlds(tier: Tier, figures: Figures) -> None:
    for working, broken in RATES[: tier.size(short=1, full=len(RATES))]:
        worlds = tier.size(short=40, full=100)
        found = wrong = spent = 0
        for seed in range(worlds):
            luck = Random(seed)
            culprit = luck.randint(1, CHANGES)
            named, runs = search(culprit, working, broken, luck)
            found, wrong, spent = (
                found + (named == culprit),
                wrong + (named not in (culprit, None)),
                spent + runs,
            )
        figures(
            f"{working:.0%} before, {broken:.0%} after: found in {found} of {worlds} worlds, {wrong} wrong, "
            f"{spent / worlds:.1f} runs each"
        )
        assert found >= 0.95 * worlds


tallies = st.lists(st.builds(Tally, st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=30)


@given(tallies)
def test_every_suspicion_is_a_probability_and_the_next_run_is_in_a_state_there_is(found: list[Tally]) -> None:
    suspicion = suspect(found)
    assert suspicion.none + sum(suspicion.changes) == pytest.approx(1.0)
    assert min(suspicion.none, *suspicion.changes) >= 0
    assert len(suspicion.changes) == len(found) - 1
    assert 0 <= choose_state(found, suspicion) < len(found)


def test_what_always_worked_before_one_change_and_never_after_is_its_fault() -> None:
    states = [Tally(4, 0)] * 3 + [Tally(0, 4)] * 3
    assert suspect(states).culprit == 3
    assert suspect(states).changes[2] >= CERTAIN


def test_where_it_works_as_often_at_the_end_nothing_broke_it() -> None:
    assert suspect([Tally(20, 2), Tally(), Tally(), Tally(21, 1)]).culprit == 0
    assert suspect([Tally(1, 1), Tally(1, 1)]).culprit is None
