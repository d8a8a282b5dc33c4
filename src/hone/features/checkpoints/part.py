"""The part that adds checkpoints to a Hone. The rest is imported with the first change of a file."""

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hone.app import Hone
from hone.core.errors import StoreError
from hone.core.events import Emit
from hone.core.holding import Holding
from hone.core.ids import SessionId
from hone.core.loading import import_object
from hone.core.part import Part
from hone.core.work import WorkObserver

if TYPE_CHECKING:
    from hone.features.checkpoints.service import CheckpointService
    from hone.features.checkpoints.values import RewindPlan

SERVICE = "hone.features.checkpoints.service:CheckpointService"

ERASER = "hone.features.checkpoints.erasing:CheckpointEraser"


class CheckpointsPart(Part):
    name = "checkpoints"

    def __init__(self, hone: Hone) -> None:
        self._hone = hone
        self._shown: tuple[str, RewindPlan] | None = None

    @cached_property
    def service(self) -> "CheckpointService":
        hone = self._hone
        make: type[CheckpointService] = import_object(SERVICE)
        rows = hone.stores.machine_rows
        return make(hone.home, hone.sessions, hone.clock, hone.settings.checkpoints, rows)

    def observer(self, folder: Path) -> WorkObserver | None:
        # Nobody rewinds what an experiment does in its scratch folder.
        if not self._hone.settings.checkpoints.enabled or self._hone.enclosure is not None:
            return None
        return self.service.observer

    def is_confirmed(self, wanted: str, plan: "RewindPlan") -> bool:
        """Tell whether the user was shown this very plan last time, and remember it if not."""
        before, self._shown = self._shown, (wanted, plan)
        if before != self._shown:
            return False
        self._shown = None
        return True

    async def tend(self, emit: Emit) -> None:
        if self._is_used:
            with suppress(StoreError):  # another process has it, or the disk is full: it is tried again later
                await self.service.prune()

    async def leftovers(self, sessions: Sequence[SessionId]) -> Sequence[str]:
        return await self.service.leftovers(sessions) if self._is_used else ()

    async def checks(self) -> Sequence[tuple[bool, str]]:
        return await self.service.checks() if self._is_used else ()

    def holdings(self) -> Sequence[Holding]:
        lasts = f"{self._hone.settings.checkpoints.days} days"
        keeps = "files as they were before tools changed them"
        stays = "copies of files on this machine"
        return (
            Holding(
                *("checkpoints", keeps, lasts),
                places=("checkpoints/",),
                eraser=ERASER,
                stays=stays,
                elsewhere=("checkpoint_blobs", "checkpoint_rewinds", "checkpoint_changes"),
            ),
        )

    async def close(self) -> None:
        if "service" in vars(self):
            await self.service.close()

    @property
    def _is_used(self) -> bool:
        return bool(self._hone.settings.database) or (self._hone.home / "checkpoints").is_dir()
