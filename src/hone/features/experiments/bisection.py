"""Search for the change that broke a behavior, when a run may also succeed or fail by chance.

There are as many states as changes, and one before them. If change N broke it, runs in the states before N
succeed at one rate and those from N on at a lower one. Neither rate is known, so both are averaged over all
plausible ones. After each run every change has a probability. The next run is made in the most informative
state, and the search ends when one change is nearly certain.
"""

from collections.abc import Sequence
from itertools import accumulate
from math import exp, lgamma, log

from msgspec import Struct

CERTAIN = 0.98
"""The probability at which the search ends."""
INNOCENT = 0.5
"""The probability, before the first run, that no change broke it."""
Rate = tuple[float, float]
WORKING: Rate = (3.0, 1.0)
BROKEN: Rate = (1.0, 3.0)
UNCHANGED: Rate = (1.0, 1.0)
"""The prior of a rate: as if this many runs had succeeded and failed."""


class Tally(Struct, frozen=True):
    """Runs in one state."""

    successes: int = 0
    failures: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.successes + other.successes, self.failures + other.failures)

    def __sub__(self, other: "Tally") -> "Tally":
        return Tally(self.successes - other.successes, self.failures - other.failures)


class Suspicion(Struct, frozen=True):
    """The probability that no change broke it, and that of each change, in order."""

    none: float
    changes: tuple[float, ...]

    @property
    def culprit(self) -> int | None:
        """Return the number of the change that is nearly certain, from 1; 0 if none broke it; None if it is
        open."""
        if self.none >= CERTAIN:
            return 0
        return next((number for number, each in enumerate(self.changes, 1) if each >= CERTAIN), None)


def suspect(tallies: Sequence[Tally]) -> Suspicion:
    """Weigh the runs in all states, from the one before the first change to the last."""
    below = list(accumulate(tallies))
    every, changes = below[-1], len(tallies) - 1
    share = log((1 - INNOCENT) / changes)
    weights = [log(INNOCENT) + _likelihood(every, UNCHANGED)]
    weights += [
        share + _likelihood(below[change - 1], WORKING) + _likelihood(every - below[change - 1], BROKEN)
        for change in range(1, changes + 1)
    ]
    most = max(weights)
    raw = [exp(each - most) for each in weights]
    total = sum(raw)
    return Suspicion(raw[0] / total, tuple(each / total for each in raw[1:]))


def choose_state(tallies: Sequence[Tally], suspicion: Suspicion) -> int:
    """Return the state in which a run is expected to be most informative about the culprit; among equals the
    first.

    That is the uncertainty of the run's result, less the uncertainty if the culprit were known.
    """
    below = list(accumulate(tallies))
    every = below[-1]
    before = [_expect(each, WORKING) for each in below[:-1]]
    after = [_expect(every - each, BROKEN) for each in below[:-1]]
    alike = _expect(every, UNCHANGED)
    success = _mix(suspicion, before, after, alike)
    open_still = _mix(suspicion, [*map(_doubt, before)], [*map(_doubt, after)], _doubt(alike))
    gains = [_doubt(each) - rest for each, rest in zip(success, open_still, strict=True)]
    return gains.index(max(gains))


def _mix(suspicion: Suspicion, before: Sequence[float], after: Sequence[float], alike: float) -> list[float]:
    """Return the mean of a figure in each state. For each change, it is one before the state and another from
    it on."""
    weighed = suspicion.changes
    early = list(accumulate((p * value for p, value in zip(weighed, after, strict=True)), initial=0.0))
    late = [p * value for p, value in zip(weighed, before, strict=True)]
    rest = list(accumulate(reversed(late), initial=0.0))[::-1]
    return [suspicion.none * alike + one + other for one, other in zip(early, rest, strict=True)]


def _likelihood(runs: Tally, rate: Rate) -> float:
    """Return the logarithm of the probability of these runs, averaged over the rate."""
    return _beta(rate[0] + runs.successes, rate[1] + runs.failures) - _beta(*rate)


def _expect(runs: Tally, rate: Rate) -> float:
    """Return the probability that the next run succeeds."""
    return (rate[0] + runs.successes) / (sum(rate) + runs.successes + runs.failures)


def _beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def _doubt(chance: float) -> float:
    """Return the entropy of an event with this probability."""
    return 0.0 if chance <= 0 or chance >= 1 else -chance * log(chance) - (1 - chance) * log(1 - chance)
