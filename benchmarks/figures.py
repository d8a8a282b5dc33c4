"""The results of a measurement: samples of Hone, the floor and the peer side by side, and their
description."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Literal

Side = Literal["hone", "floor", "peer"]
Unit = Literal[
    "ms",
    "bytes",
    "KiB",
    "MiB",
    "tokens",
    "$",
    "lost",
    "reviews",
    "ratio",
    "%",
    "turns/s",
    "messages/s",
    "writes/s",
]


@dataclass(frozen=True, slots=True)
class Spread:
    """The median and the middle half of the samples."""

    low: float
    middle: float
    high: float


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. A missing side has no samples.

    `aim` is the target for Hone's median, `lead` the factor by which it should beat the peer. `cpu` is the
    processor time of one process, iteration or turn in milliseconds, `provider` the share of one core that
    the provider used in that time. `point` places the row in a plot: its name and its position on the axis.
    """

    name: str
    unit: Unit
    hone: tuple[float, ...]
    floor: tuple[float, ...] = ()
    aim: float | None = None
    cpu: Mapping[Side, float] = field(default_factory=dict)
    provider: Mapping[Side, float] = field(default_factory=dict)
    peer: tuple[float, ...] = ()
    lead: float | None = None
    point: tuple[str, float] | None = None
    absent: str = ""
    """Why the peer has no samples, if known."""
    bounds: Mapping[Side, tuple[float, float]] = field(default_factory=dict)
    """95% intervals of a ratio: a row whose interval reaches the aim does not count as above it."""

    @property
    def rising(self) -> bool:
        """Tell whether more is better."""
        return self.unit == "%" or self.unit.endswith("/s")

    @property
    def ratio(self) -> float | None:
        """Return Hone's median as a multiple of the floor's."""
        return median(self.hone) / median(self.floor) if self.floor and median(self.floor) else None

    @property
    def ahead(self) -> Spread | None:
        """Return the factor over the peer, pair by pair in the order of measurement."""
        pairs = [(hone, peer) for hone, peer in zip(self.hone, self.peer, strict=False) if hone and peer]
        return (
            spread([hone / peer if self.rising else peer / hone for hone, peer in pairs]) if pairs else None
        )

    @property
    def met(self) -> bool | None:
        """Tell whether the aim is met; None for a row without one, or with only a lead over a missing
        peer."""
        middle = self.bounds["hone"][0] if "hone" in self.bounds else median(self.hone)
        checks = []
        if self.aim is not None:
            checks.append(middle >= self.aim if self.rising else middle <= self.aim)
        if self.lead is not None and self.ahead:
            checks.append(self.ahead.middle >= self.lead)
        return all(checks) if checks else None


def spread(samples: Sequence[float]) -> Spread:
    if len(samples) == 1:
        return Spread(samples[0], samples[0], samples[0])
    low, middle, high = quantiles(samples, n=4, method="inclusive")
    return Spread(low, middle, high)


def figure(value: float) -> str:
    """Format a figure with its significant digits: three, and all of those before the decimal point."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
