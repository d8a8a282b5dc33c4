"""E9, K7: an effect is called early where there is one, and seldom where there is none."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from math import comb
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.features.experiments.sequential import ENOUGH, LAST, LOOKS, decide, evidence, is_enough, judge
from hone.features.experiments.values import PAIRS, EffectVerdict
from tests.conftest import Figures, Tier
from tests.features.test_statistics import simulated, study, succeeding

Chances = Mapping[tuple[int, int], float]
"""Of wins and losses."""
ERROR = 0.05
FORTY = [(0.3, 0.7), (0.5, 0.9), (0.6, 1.0), (0.55, 0.95)]
EIGHTY = [(0.1, 0.9), (0.2, 1.0), (0.0, 0.8)]


@cache
def coins(pairs: int) -> Chances:
    """Of pairs that count every second time."""
    return {
        (wins, losses): comb(pairs, wins)
        * comb(pairs - wins, losses)
        * 0.25 ** (wins + losses)
        * 0.5 ** (pairs - wins - losses)
        for wins in range(pairs + 1)
        for losses in range(pairs - wins + 1)
    }


def step(before: Chances, added: Chances, look: int) -> tuple[Chances, float]:
    """Return where a study is after the next look if it is undecided, and the chance that it is not."""
    after: defaultdict[tuple[int, int], float] = defaultdict(float)
    crossed = 0.0
    for (wins, losses), chance in before.items():
        for (more, less), share in added.items():
            now = (wins + more, losses + less)
            if is_enough(look, *now) or is_enough(look, *reversed(now)):
                crossed += chance * share
            else:
                after[now] += chance * share
    return after, crossed


def errors(looks: list[int], before: Chances, done: int = 0) -> Iterator[float]:
    """Yield the error for every way in which tasks can be mixed. It is linear in how often each pair counts:
    the worst mixture has pairs that never count and pairs that count every second time."""
    if not looks:
        yield 0.0
        return
    first, *rest = looks
    for counting in range(first - done + 1):
        after, crossed = step(before, coins(counting), first)
        yield from (crossed + each for each in errors(rest, after, first))


def test_no_mixture_of_tasks_calls_an_effect_where_there_is_none_too_often(figures: Figures) -> None:
    found = list(errors(sorted(LOOKS), {(0, 0): 1.0}))
    figures(f"{len(found)} mixtures of tasks added up: an error of {max(found):.4f} at most up to 20 pairs")
    assert max(found) <= 0.0432
    assert max(found) + 1 / ENOUGH <= ERROR


@given(st.integers(0, 200), st.integers(0, 200))
def test_evidence_stays_where_it_is_on_average_if_there_is_no_effect(wins: int, losses: int) -> None:
    """That is what lets one look at any time: it ever reaches N in one of N studies at most."""
    later = (evidence(wins + 1, losses) + evidence(wins, losses + 1)) / 2
    assert later == pytest.approx(evidence(wins, losses))
    assert evidence(0, 0) == 1.0


@pytest.mark.timeout(1_800)
def test_peeking_and_adding_pairs_keep_the_error(tier: Tier, figures: Figures) -> None:
    """An owner who wants a result stops at the first decision, and adds pairs as long as there is none. The
    pairs come from a few tasks, some easy and some hard."""
    count, most = tier.size(short=4_000, full=100_000), 80
    called = 0
    for seed in range(count):
        luck = Random(seed)
        tasks = [luck.betavariate(0.7, 0.7) for _ in range(luck.randint(1, 5))]
        rates = (luck.choice(tasks) for _ in range(most))
        outcomes = [(luck.random() < rate) - (luck.random() < rate) for rate in rates]
        called += decide(outcomes).verdict is not EffectVerdict.UNDECIDED
    figures(f"{count:,} studies without an effect, up to {most} pairs each: {called / count:.4f} called")
    assert called / count <= ERROR


def power(without: float, having: float, pairs: int) -> float:
    """Return the exact chance that it helps by so many pairs."""
    wins, losses = having * (1 - without), without * (1 - having)
    one: Chances = {(1, 0): wins, (0, 1): losses, (0, 0): 1 - wins - losses}
    left: Chances = {(0, 0): 1.0}
    found = 0.0
    for number in range(1, pairs + 1):
        after: defaultdict[tuple[int, int], float] = defaultdict(float)
        for (k, m), chance in left.items():
            for (more, less), share in one.items():
                after[k + more, m + less] += chance * share
        left = after
        found += sum(chance for now, chance in left.items() if is_enough(number, *now))
        left = {now: each for now, each in left.items() if not is_enough(number, *now)}
    return found


def test_an_effect_of_80_points_is_decided_by_8_pairs(figures: Figures) -> None:
    found = {f"{one:.0%} to {other:.0%}": power(one, other, 8) for one, other in EIGHTY}
    figures(f"decided by 8 pairs: {found}")
    assert min(found.values()) >= 0.75


def test_an_effect_of_40_points_is_seen_as_often_as_by_a_fixed_number_of_pairs(
    tier: Tier, figures: Figures
) -> None:
    """The fixed design waits for all pairs and looks once, at the interval."""
    count = tier.size(short=60, full=1_000)
    for without, having in FORTY[: tier.size(short=2, full=len(FORTY))]:
        fixed = [succeeding(simulated(seed, without, having)).low > 0 for seed in range(count)]
        ours, theirs = power(without, having, LAST), sum(fixed) / count
        figures(f"{without:.0%} to {having:.0%}: {ours:.3f}, with a fixed number of pairs {theirs:.3f}")
        noise = 3 * (0.25 / count) ** 0.5 if count < 1_000 else 0.0
        assert ours >= theirs - 0.07 - noise


@given(st.lists(st.sampled_from([-1, 0, 1]), max_size=90), st.lists(st.sampled_from([-1, 0, 1]), max_size=20))
def test_later_pairs_do_not_change_a_decision_and_the_other_way_round_is_the_other_verdict(
    outcomes: list[int], more: list[int]
) -> None:
    first = decide(outcomes)
    if first.verdict is not EffectVerdict.UNDECIDED:
        assert decide(outcomes + more) == first
    turned = {EffectVerdict.HELPS: EffectVerdict.HARMS, EffectVerdict.HARMS: EffectVerdict.HELPS}
    other = decide([-each for each in outcomes])
    assert other.verdict is turned.get(first.verdict, EffectVerdict.UNDECIDED)
    assert (other.pairs, other.wins, other.losses) == (first.pairs, first.losses, first.wins)


def test_a_decision_says_after_how_many_pairs_it_fell() -> None:
    better = judge(study([(True, False)] * 12 + [(True, True)] * 8))
    assert (better.verdict, better.pairs, better.wins, better.losses) == (EffectVerdict.HELPS, 6, 6, 0)
    worse = judge(study([(True, True)] * 3 + [(False, True)] * 12 + [(True, True)] * 5))
    assert (worse.verdict, worse.pairs, worse.losses) == (EffectVerdict.HARMS, 12, 9)
    few = judge(study([(True, False)] * 5))
    assert (few.verdict, few.pairs) == (EffectVerdict.UNDECIDED, 5)
    later = judge(study([(True, True)] * PAIRS + [(True, False)] * 12))
    assert (later.verdict, later.pairs) == (EffectVerdict.HELPS, PAIRS + 11)
