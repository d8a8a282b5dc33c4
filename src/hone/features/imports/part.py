"""What importing adds to Hone: what it learned from, and a way to hand conversations over."""

from collections.abc import Sequence

from hone.app import Hone
from hone.core.holding import Backup, Holding
from hone.core.loading import import_object
from hone.core.part import Part
from hone.core.ports import StoredSession
from hone.core.queued import CommandStep, QueuedCommand
from hone.features.imports.handing_over import hand_over
from hone.features.imports.learn_state import FILE

KIND = "import"
STEP = "hone.features.imports.queued:do_step"
"""Imported by a worker that finds a queued import."""


class ImportsPart(Part):
    name = "imports"

    def __init__(self, hone: Hone) -> None:
        self._hone = hone

    async def import_transcript(self, lines: bytes, form: str, label: str) -> Sequence[StoredSession]:
        return await hand_over(self._hone, lines, form, label)

    async def perform(self, command: QueuedCommand) -> CommandStep | None:
        if command.kind != KIND:
            return None
        step: CommandStep = await import_object(STEP)(self._hone, command)
        return step

    def holdings(self) -> Sequence[Holding]:
        return (
            Holding(
                "learned sources",
                "which agents' conversations are yours, and how their files looked when they were read",
                "until you delete the file; then you are asked again",
                places=(FILE,),
                backup=Backup.LEFT_OUT,
                stays="it is about files on this machine",
            ),
        )
