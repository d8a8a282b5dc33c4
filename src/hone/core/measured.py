"""What was measured about a lesson, and where it was used: facts that features tell each other."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from msgspec import Struct


class FigureDifference(Struct, frozen=True):
    """A figure with a lesson minus the figure without it, and the interval in which it lies with a
    confidence of 95 %."""

    name: str
    mean: float
    low: float
    high: float


class StudyResult(Struct, frozen=True):
    """One study of a lesson. `current`: it is about what the lesson says now."""

    task: str
    model: str
    verdict: str
    pairs: int
    differences: tuple[FigureDifference, ...] = ()
    current: bool = True


class Attribution(Protocol):
    """Tells which entries of the journal shaped answers."""

    async def used(self, since: datetime) -> Mapping[str, int]:
        """Return in how many conversations since then each entry was used, by the digest of its text. An
        entry that is missing was used in none."""
        ...
