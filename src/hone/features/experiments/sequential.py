"""Decide after few pairs whether a lesson changes how often a task succeeds.

The error bound holds however often somebody looks. A pair counts if one of its runs succeeded and the other
failed: as a win if that was the run with the lesson, as a loss otherwise. If the lesson does nothing, both
are equally likely, and at most every second pair counts: two runs that succeed with the same probability p
differ with probability 2p(1-p). This is true of each task alone, so easy and hard tasks can be mixed.

Up to 20 pairs, Hone decides at four looks. If there is no effect, at most 4.32% of all studies cross their
bounds, whatever the tasks are: tests/features/test_sequential.py adds up all cases. Beyond 20 pairs, the
evidence is a likelihood ratio, averaged over all effects. It ever reaches 147 in at most 0.68% of such
studies (Ville's inequality). Together that is less than 5%.
"""

from collections.abc import Mapping, Sequence
from math import comb

from msgspec import Struct

from hone.features.experiments.values import EffectVerdict, Study

LOOKS: Mapping[int, tuple[int, ...]] = {6: (6,), 8: (6, 8), 12: (6, 8), 20: (5, 7, 10, 11, 13)}
"""By the number of pairs, the wins that decide with no loss, one loss, two, and so on."""
LAST = max(LOOKS)
ENOUGH = 147.0
"""The evidence that decides after the last look."""


class EarlyDecision(Struct, frozen=True):
    """The decision of the first pairs. Without a decision, `pairs` are all of them."""

    verdict: EffectVerdict
    pairs: int
    wins: int
    losses: int


def judge(study: Study) -> EarlyDecision:
    """Return the first decision in the order of the pairs. Later pairs do not change it."""
    return decide([int(one.success) - int(other.success) for one, other in study.paired])


def decide(outcomes: Sequence[int]) -> EarlyDecision:
    """Decide about pairs given as a win (1), a loss (-1) or neither (0)."""
    wins = losses = 0
    for pairs, outcome in enumerate(outcomes, 1):
        wins, losses = wins + (outcome > 0), losses + (outcome < 0)
        if is_enough(pairs, wins, losses):
            return EarlyDecision(EffectVerdict.HELPS, pairs, wins, losses)
        if is_enough(pairs, losses, wins):
            return EarlyDecision(EffectVerdict.HARMS, pairs, wins, losses)
    return EarlyDecision(EffectVerdict.UNDECIDED, len(outcomes), wins, losses)


def is_enough(pairs: int, more: int, less: int) -> bool:
    """Tell whether these wins on one side, against those on the other, decide after this many pairs."""
    if pairs > LAST:
        return more > less and evidence(more, less) >= ENOUGH
    bounds = LOOKS.get(pairs, ())
    return less < len(bounds) and more >= bounds[less]


def evidence(wins: int, losses: int) -> float:
    """Return how much more likely these outcomes are under some effect, averaged over all effects, than under
    none."""
    pairs = wins + losses
    return 2.0**pairs / ((pairs + 1) * comb(pairs, wins))
