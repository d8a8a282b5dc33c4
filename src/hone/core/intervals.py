"""Compute the interval of a mean by a bootstrap.

The values are resampled with replacement, and the interval covers 95% of the resampled means. With few values
that is too narrow, so it is widened as Student's t is wider than the normal distribution (the expanded
percentile interval).
"""

from collections.abc import Sequence
from math import ceil, sqrt
from random import Random
from statistics import NormalDist

CONFIDENCE = 0.95
RESAMPLES = 2_000
SEED = 20


def interval(values: Sequence[float], seed: int = SEED) -> tuple[float, float]:
    """Return where the mean lies, with a confidence of 95%. The same values give the same interval."""
    if len(values) < 2:
        return (values[0], values[0])
    draw, count = Random(seed), len(values)
    means = sorted(sum(draw.choices(values, k=count)) / count for _ in range(RESAMPLES))
    cut = max(0, ceil(_tail(count) * RESAMPLES) - 1)
    return means[cut], means[-1 - cut]


def _tail(count: int) -> float:
    """Return the share of means to cut off at each end."""
    normal, free = NormalDist(), count - 1
    z = normal.inv_cdf((1 + CONFIDENCE) / 2)
    # Student's t by its expansion around the normal distribution.
    t = z + (z**3 + z) / (4 * free) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
    return normal.cdf(-t * sqrt(count / free))
