"""The part that adds the curator to a Hone."""

from collections.abc import Sequence

from hone.app import Hone
from hone.core.agent import Agent
from hone.core.events import Emit
from hone.core.holding import Holding
from hone.core.part import Part
from hone.features.curator.curator import Curator, CuratorDeps
from hone.features.curator.retention import Grade


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
                hone.sessions,
                hone.stores.curator_runs,
                hone.library,
                hone.clock,
                self._agent,
                hone.quiet_deps(),
                hone.bounds,
            )
        )

    async def tend(self, emit: Emit) -> None:
        await self.curator.tend(emit)

    async def count_stale(self) -> int:
        return sum(each.grade is not Grade.ACTIVE for each in await self.curator.ages())

    def holdings(self) -> Sequence[Holding]:
        return (Holding("curator", "reports of its runs", places=("curator/",)),)

    async def _agent(self) -> Agent:
        return await self._hone.agent(self._hone.settings.learning.model)
