"""Compute each difference between paired runs with its interval. These are pure functions."""

from collections.abc import Callable, Sequence
from statistics import fmean

from msgspec import Struct

from hone.core.intervals import interval
from hone.features.experiments.values import Run, Study

Value = Callable[[Run], float | None]


class Difference(Struct, frozen=True):
    """The mean of one figure with and without the lesson, and their difference (with minus without) with its
    interval. `pairs` counts those in which both runs had the figure; without any, only the name is set."""

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
"""`first success` is the first call that succeeded; whether the task succeeded is the success rate."""


def differences(study: Study, figures: Sequence[tuple[str, Value]] = FIGURES) -> tuple[Difference, ...]:
    return tuple(difference(name, value, study) for name, value in figures)


def difference(name: str, value: Value, study: Study) -> Difference:
    both = [(value(one), value(other)) for one, other in study.paired]
    known = [(one, other) for one, other in both if one is not None and other is not None]
    if not known:
        return Difference(name, 0)
    apart = [one - other for one, other in known]
    having, lacking = fmean(one for one, _ in known), fmean(other for _, other in known)
    return Difference(name, len(known), having, lacking, fmean(apart), *interval(apart))
