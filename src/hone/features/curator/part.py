"""The part that adds the curator to a Hone."""

from collections.abc import Sequence
from datetime import datetime

from hone.app import Hone
from hone.core.agent import Agent
from hone.core.documents import PAUSES
from hone.core.events import Emit
from hone.core.holding import Holding
from hone.core.part import Part
from hone.features.curator.aging import count_stale, load_ages
from hone.features.curator.curator import Curator, CuratorDeps
from hone.features.curator.retention import Aged

ERASER = "hone.features.curator.reports:erase_reports"


class CuratorPart(Part):
    name = "curator"

    def __init__(self, hone: Hone) -> None:
        self._hone = hone

    @property
    def curator(self) -> Curator:
        hone = self._hone
        return Curator(
            CuratorDeps(
                hone.home,
                hone.stores.claims,
                hone.sessions,
                hone.stores.curator_runs,
                hone.library,
                hone.clock,
                self._agent,
                hone.quiet_deps(),
                hone.documents,
                hone.bounds,
            )
        )

    async def tend(self, emit: Emit) -> None:
        await self.curator.tend(emit)

    async def next_tend(self) -> datetime | None:
        return await self.curator.next()

    async def ages(self) -> Sequence[Aged]:
        """Return how old each skill is that can age, without reading what it says."""
        hone = self._hone
        return await load_ages(hone.library, hone.stores.overview, hone.sessions)

    async def count_stale(self) -> int:
        hone = self._hone
        return await count_stale(hone.library, hone.stores.overview, hone.sessions)

    def holdings(self) -> Sequence[Holding]:
        stays = "the database has what they say"
        return (
            Holding("curator", "reports of its runs", places=("curator/",), eraser=ERASER, stays=stays),
            Holding("pauses", "that the curator is paused", "until you resume it", places=PAUSES.fixed),
        )

    async def _agent(self) -> Agent:
        return await self._hone.agent(self._hone.settings.learning.model)
