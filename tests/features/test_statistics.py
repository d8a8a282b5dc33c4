"""E9: a difference lies in its interval, and is that of pairs."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.intervals import interval
from hone.features.experiments.statistics import (
    FIGURES,
    SUCCESS,
    Difference,
    difference,
    differences,
)
from hone.features.experiments.values import PAIRS, Arm, Lesson, LessonKind, Run, Study, order
from tests.conftest import Figures, Tier
from tests.given import NOON

LESSON = Lesson(LessonKind.SKILL, "rows", "0" * 64)
REPETITIONS = 100
EFFECTS = [(0.3, 0.7), (0.5, 0.9), (0.1, 0.5), (0.55, 0.95), (0.6, 0.2)]


def run(pair: int, arm: Arm, success: bool = True, first: int | None = 1, errors: int = 0) -> Run:
    seconds = None if first is None else float(first)
    return Run(pair, arm, success, 3, errors, errors, first, seconds, 2, 100, 1.0)


def study(outcomes: list[tuple[bool, bool]], pairs: int = PAIRS) -> Study:
    """Of (with, without)."""
    runs = [
        run(pair, arm, outcome)
        for pair, both in enumerate(outcomes, 1)
        for arm, outcome in zip(Arm, both, strict=True)
    ]
    return Study("rows", LESSON, "openai/m", NOON, pairs, tuple(runs))


def simulated(seed: int, without: float, having: float) -> Study:
    luck = Random(seed)
    return study([(luck.random() < having, luck.random() < without) for _ in range(PAIRS)])


def succeeding(tried: Study) -> Difference:
    return difference(*FIGURES[0], tried)


def test_a_known_effect_of_40_points_lies_in_the_interval(tier: Tier, figures: Figures) -> None:
    for without, having in EFFECTS[: tier.size(short=1, full=len(EFFECTS))]:
        found = [succeeding(simulated(seed, without, having)) for seed in range(REPETITIONS)]
        inside = sum(each.low - 1e-9 <= having - without <= each.high + 1e-9 for each in found)
        figures(f"{without:.0%} to {having:.0%}: {REPETITIONS} tried, {inside} in the interval")
        assert inside >= 90


values = st.lists(st.sampled_from([-1.0, 0.0, 1.0]) | st.floats(-1e6, 1e6), min_size=1, max_size=30)


@pytest.mark.timeout(1_800)
@given(values)
def test_an_interval_lies_within_its_values_and_is_the_same_each_time(found: list[float]) -> None:
    low, high = interval(found)
    slack = 1e-9 * max(1.0, *map(abs, found))
    assert min(found) - slack <= low <= high <= max(found) + slack
    assert interval(found) == (low, high)
    turned = interval([-each for each in found])
    assert turned == pytest.approx((-high, -low))


def test_what_a_run_does_not_have_is_compared_only_where_both_have_it() -> None:
    runs = (
        run(1, Arm.WITH, first=1),
        run(1, Arm.WITHOUT, first=4),
        run(2, Arm.WITH, first=1),
        run(2, Arm.WITHOUT, first=None),
        run(3, Arm.WITH),
    )
    found = {each.name: each for each in differences(Study("rows", LESSON, "openai/m", NOON, 3, runs))}
    assert list(found) == [name for name, _ in FIGURES]
    assert (found["turns to the first success"].pairs, found["turns to the first success"].mean) == (1, -3.0)
    assert found[SUCCESS].pairs == 2, "half a pair is none"
    nothing = differences(Study("rows", LESSON, "openai/m", NOON))
    assert [each.pairs for each in nothing] == [0] * len(FIGURES)


def test_which_arm_goes_first_takes_turns() -> None:
    firsts = [order(pair)[0] for pair in range(1, PAIRS + 1)]
    assert firsts.count(Arm.WITH) == PAIRS // 2
    assert all(set(order(pair)) == set(Arm) for pair in range(1, PAIRS + 1))
