"""The part that keeps text no longer than the owner wants. The rest is loaded when it is needed."""

from collections.abc import Sequence
from contextlib import suppress

from hone.app import Hone
from hone.core.errors import HoneError
from hone.core.events import Emit
from hone.core.loading import import_object
from hone.core.part import Part
from hone.settings.sections import RetentionSettings

RETENTION = "hone.features.erasing.retention:Retention"
SERVICE = "hone.features.erasing.service:Erasing"


class ErasingPart(Part):
    name = "erasing"

    def __init__(self, hone: Hone) -> None:
        self._hone = hone

    async def tend(self, emit: Emit) -> None:
        if self._hone.settings.retention != RetentionSettings():
            with suppress(HoneError):  # another process has it, or the disk is full: it is tried again later
                await import_object(RETENTION)(self._hone).apply()

    async def checks(self) -> Sequence[tuple[bool, str]]:
        if await import_object(SERVICE)(self._hone).is_cut_off():
            return [(False, "erase: one was cut off before it was done; run the same hone erase again")]
        return ()
