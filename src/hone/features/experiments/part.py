"""The experiments of one Hone."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from hone.app import Hone
from hone.core.ids import SessionId
from hone.core.part import Part
from hone.features.experiments.findings import beside
from hone.features.experiments.runner import ExperimentRunner
from hone.features.experiments.store import Studies
from hone.features.experiments.values import LessonKind
from hone.runtime.toolbox_factory import Enclosure
from hone.sandbox.choice import Sandbox


class ExperimentsPart(Part):
    name = "experiments"

    def __init__(self, hone: Hone) -> None:
        self._hone = hone

    @property
    def studies(self) -> Studies:
        return Studies(self._hone.home)

    @property
    def runner(self) -> ExperimentRunner:
        return ExperimentRunner(self._hone, self._hone.home, self.studies, self._copy, self._hone.clock)

    async def findings(self, kind: str, name: str, digest: str) -> Sequence[str]:
        return beside(self._hone.home, LessonKind(kind), name, digest)

    async def leftovers(self, sessions: Sequence[SessionId]) -> Sequence[str]:
        studies = self.studies
        return [
            f"Experiment {name} has its request. Delete it, too: hone experiment delete {name}"
            for name in studies.names()
            if studies.is_from(name, sessions)
        ]

    def _copy(self, home: Path, folder: Path, sandbox: Sandbox) -> Hone:
        """Return the same agent with other knowledge, elsewhere: its tools stay in their folder, it speaks
        through this one's connections, and nobody is there to be asked."""
        hone = self._hone
        memory = msgspec.structs.replace(hone.settings.memory, backend="null")
        return Hone(
            home=home,
            model=hone.models,
            folder=Enclosure(folder, sandbox),
            tools=hone.tools,
            system=hone.system,
            settings=msgspec.structs.replace(hone.settings, memory=memory),
            clock=hone.clock,
        )
