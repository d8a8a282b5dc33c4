"""Compute each difference between paired runs with its interval.

These are pure functions. The interval is a bootstrap over pairs: the differences are resampled with
replacement, and the interval covers 95% of the resampled means. With few pairs that is too narrow, so it is
widened as Student's t is wider than the normal distribution (the expanded percentile interval).
"""

from collections.abc import Callable, Sequence
from math import ceil, sqrt
from random import Random
from statistics import NormalDist, fmean

from msgspec import Struct

from hone.features.experiments.values import Run, Study

CONFIDENCE = 0.95
RESAMPLES = 2_000
SEED = 20

Value = Callable[[Run], float | None]


class Difference(Struct, frozen=True):
    """The mean of one figure with and without, and their difference (with minus without) with its interval.
    `pairs` are those in which both runs had the figure; with none of them there is nothing but the name."""

    name: str
    pairs: int
    having: float = 0.0
    lacking: float = 0.0
    mean: float = 0.0
    low: float = 0.0
    high: float = 0.0


SUCCESS, TOKENS = "success rate", "tokens"
FIGURES: Sequence[tuple[str, Value]] = (
    (SUCCESS, lambda run: float(run.success)),
    ("errors in the first 30 turns", lambda run: float(run.early)),
    ("turns to the first success", lambda run: run.first),
    ("seconds to the first success", lambda run: run.first_seconds),
    ("errors in all", lambda run: float(run.errors)),
    ("different tools", lambda run: float(run.tools)),
    (TOKENS, lambda run: float(run.tokens)),
)
"""`first success` is the first call that succeeded; whether the task was done is the success rate."""


def differences(study: Study, figures: Sequence[tuple[str, Value]] = FIGURES) -> tuple[Difference, ...]:
    return tuple(difference(name, value, study) for name, value in figures)


def interval(values: Sequence[float], seed: int = SEED) -> tuple[float, float]:
    """Where the mean lies, with a confidence of 95 %. The same values give the same interval."""
    if len(values) < 2:
        return (values[0], values[0])
    draw, count = Random(seed), len(values)
    means = sorted(sum(draw.choices(values, k=count)) / count for _ in range(RESAMPLES))
    cut = max(0, ceil(_tail(count) * RESAMPLES) - 1)
    return means[cut], means[-1 - cut]


def difference(name: str, value: Value, study: Study) -> Difference:
    both = [(value(one), value(other)) for one, other in study.paired]
    known = [(one, other) for one, other in both if one is not None and other is not None]
    if not known:
        return Difference(name, 0)
    apart = [one - other for one, other in known]
    having, lacking = fmean(one for one, _ in known), fmean(other for _, other in known)
    return Difference(name, len(known), having, lacking, fmean(apart), *interval(apart))


def _tail(count: int) -> float:
    """The share of means that is cut off at each end."""
    normal, free = NormalDist(), count - 1
    z = normal.inv_cdf((1 + CONFIDENCE) / 2)
    # Student's t by its expansion around the normal distribution.
    t = z + (z**3 + z) / (4 * free) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
    return normal.cdf(-t * sqrt(count / free))
