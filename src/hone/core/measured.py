"""What was measured about a lesson, and where it was used. Features exchange these values."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from msgspec import Struct


class FigureDifference(Struct, frozen=True):
    """The difference that a lesson makes to a figure, with its 95% confidence interval."""

    name: str
    mean: float
    low: float
    high: float


class StudyResult(Struct, frozen=True):
    """One study of a lesson. `current`: it covers what the lesson says now."""

    task: str
    model: str
    verdict: str
    pairs: int
    differences: tuple[FigureDifference, ...] = ()
    current: bool = True


class Attribution(Protocol):
    """Tells which entries of the journal shaped answers."""

    async def used(self, since: datetime) -> Mapping[str, int]:
        """Return in how many conversations each entry was used since a moment, by the digest of its text. A
        missing entry was used in none."""
        ...
