"""The part that adds experiments to a Hone."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from hone.app import Hone
from hone.core.errors import HoneError
from hone.core.events import Emit
from hone.core.holding import Holding
from hone.core.ids import SessionId
from hone.core.loading import import_object
from hone.core.measured import StudyResult
from hone.core.part import Part
from hone.core.queued import CommandStep, QueuedCommand
from hone.features.experiments.findings import beside, measure
from hone.features.experiments.store import Studies
from hone.features.experiments.values import LessonKind
from hone.features.experiments.working import trials_of

if TYPE_CHECKING:
    from hone.features.experiments.gate import Gate

KIND = "experiment"
STEP = "hone.features.experiments.queued:do_step"
"""Loaded by a worker that finds a queued experiment."""
GATE_KEEPER = "hone.features.experiments.gate:Gate"
"""Loaded if the gate is on."""
ERASER = "hone.features.experiments.erasing:ExperimentEraser"


class ExperimentsPart(Part):
    name = "experiments"

    def __init__(self, hone: Hone) -> None:
        self._hone = hone

    @property
    def studies(self) -> Studies:
        return Studies(self._hone.documents, self._hone.home)

    @property
    def _trials(self) -> Sequence[Studies]:
        return trials_of(self._hone), self.studies

    async def findings(self, kind: str, name: str, digest: str) -> Sequence[str]:
        return await asyncio.to_thread(beside, self._trials, LessonKind(kind), name, digest)

    async def measured(self, kind: str, name: str, digest: str) -> Sequence[StudyResult]:
        return await asyncio.to_thread(measure, self._trials, LessonKind(kind), name, digest)

    async def tend(self, emit: Emit) -> None:
        if self._hone.settings.learning.gate != "off" and not self._hone.keeper.rules.closed:
            gate: Gate = import_object(GATE_KEEPER)(self._hone)
            await gate.tend(emit)

    async def next_tend(self) -> datetime | None:
        if self._hone.settings.learning.gate == "off" or self._hone.keeper.rules.closed:
            return None
        gate: Gate = import_object(GATE_KEEPER)(self._hone)
        try:
            return await gate.next()
        except HoneError:
            return None

    async def perform(self, command: QueuedCommand) -> CommandStep | None:
        if command.kind != KIND:
            return None
        step: CommandStep = await import_object(STEP)(self._hone, command)
        return step

    async def leftovers(self, sessions: Sequence[SessionId]) -> Sequence[str]:
        studies = self.studies
        names = await asyncio.to_thread(studies.names)
        return [
            f"Experiment {name} has its request. Delete it, too: hone experiment delete {name}"
            for name in names
            if studies.is_from(name, sessions)
        ]

    def holdings(self) -> Sequence[Holding]:
        return (
            Holding(
                "experiments",
                "requests, checks and results",
                places=("experiments/",),
                eraser=ERASER,
            ),
            Holding(
                "gate",
                "what held-out tasks said about lessons",
                places=("gate/",),
                eraser="hone.features.experiments.erasing:erase_gate",
            ),
        )
