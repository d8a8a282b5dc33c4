"""The part that adds payback to a Hone: it proposes in idle time to remove unneeded entries."""

from datetime import date

from hone.app import Hone
from hone.core.events import Emit
from hone.core.part import Part
from hone.features.payback.unused import propose_quietly


class PaybackPart(Part):
    name = "payback"

    def __init__(self, hone: Hone) -> None:
        self._hone = hone
        self._looked: date | None = None

    async def tend(self, emit: Emit) -> None:
        """Look for unused entries, at most once a day and process."""
        hone = self._hone
        if hone.learning_off or self._looked == hone.library.today:
            return
        self._looked = hone.library.today
        await propose_quietly(hone)
