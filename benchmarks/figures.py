"""What was measured: samples of Hone and of the floor side by side, and what is said of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Literal

Unit = Literal["ms", "bytes", "turns/s"]


@dataclass(frozen=True, slots=True)
class Spread:
    """The median and the middle half of the samples."""

    low: float
    middle: float
    high: float


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `floor` is empty where there is nothing to compare with.

    `cpu` is what one process, iteration or turn takes of the processor in milliseconds, Hone and floor;
    `provider` is the part of one core that the provider took meanwhile, 0 where it hardly had to do anything.
    """

    name: str
    unit: Unit
    hone: tuple[float, ...]
    floor: tuple[float, ...]
    aim: float
    cpu: tuple[float, float] | None = None
    provider: tuple[float, float] | None = None

    @property
    def ratio(self) -> float | None:
        return median(self.hone) / median(self.floor) if self.floor else None

    @property
    def met(self) -> bool:
        middle = median(self.hone)
        return middle >= self.aim if self.unit == "turns/s" else middle <= self.aim


def spread(samples: Sequence[float]) -> Spread:
    if len(samples) == 1:
        return Spread(samples[0], samples[0], samples[0])
    low, middle, high = quantiles(samples, n=4, method="inclusive")
    return Spread(low, middle, high)


def figure(value: float) -> str:
    """As many digits as mean something: three, and all of those before the point."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
