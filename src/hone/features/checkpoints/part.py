"""The part that adds checkpoints to a Hone. What it needs is loaded with the first change of a file."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hone.app import Hone
from hone.core.errors import StoreError
from hone.core.events import Emit
from hone.core.ids import SessionId
from hone.core.loading import import_object
from hone.core.part import Part
from hone.core.tool_context import ToolContext
from hone.core.work import WorkObserver

if TYPE_CHECKING:
    from hone.features.checkpoints.service import CheckpointService

SERVICE = "hone.features.checkpoints.service:CheckpointService"


class LazyObserver:
    """Loads an observer when a tool first has something to observe."""

    def __init__(self, load: Callable[[], WorkObserver]) -> None:
        self._load = load

    async def before_write(self, path: Path, before: bytes | None, context: ToolContext) -> None:
        await self._load().before_write(path, before, context)

    async def after_write(self, path: Path, data: bytes, context: ToolContext) -> None:
        await self._load().after_write(path, data, context)

    @asynccontextmanager
    async def around_command(
        self, folder: Path, text: str, context: ToolContext, *, network: bool
    ) -> AsyncIterator[None]:
        async with self._load().around_command(folder, text, context, network=network):
            yield


class CheckpointsPart(Part):
    name = "checkpoints"

    def __init__(self, hone: Hone) -> None:
        self._hone = hone

    @cached_property
    def service(self) -> "CheckpointService":
        hone = self._hone
        make: type[CheckpointService] = import_object(SERVICE)
        return make(hone.home, hone.sessions, hone.clock, hone.settings.checkpoints)

    def observer(self, folder: Path) -> WorkObserver | None:
        # Nobody rewinds what an experiment does in its scratch folder.
        if not self._hone.settings.checkpoints.enabled or self._hone.enclosure is not None:
            return None
        return LazyObserver(lambda: self.service.observer)

    async def tend(self, emit: Emit) -> None:
        if self._is_used:
            with suppress(StoreError):  # another process has it, or the disk is full: there is a next time
                await self.service.prune()

    async def leftovers(self, sessions: Sequence[SessionId]) -> Sequence[str]:
        return await self.service.leftovers(sessions) if self._is_used else ()

    async def checks(self) -> Sequence[tuple[bool, str]]:
        return await self.service.checks() if self._is_used else ()

    async def close(self) -> None:
        if "service" in vars(self):
            await self.service.close()

    @property
    def _is_used(self) -> bool:
        return (self._hone.home / "checkpoints").is_dir()
