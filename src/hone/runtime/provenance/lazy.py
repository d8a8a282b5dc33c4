"""Load the observer with the first file that is read: most starts read none."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hone.core.loading import import_object
from hone.core.tool_context import ToolContext
from hone.core.trust import Trust
from hone.runtime.trust import Folders

if TYPE_CHECKING:
    from hone.runtime.provenance.observer import Provenance

OBSERVER = "hone.runtime.provenance.observer:Provenance"
REACH = "hone.runtime.provenance.records:Reach"
Beside = tuple[tuple[Path, ...], tuple[Path, ...]]


class LazyProvenance:
    """A `Provenance` that is made when it is first needed."""

    def __init__(self, home: Path, folders: Folders, beside: Callable[[Path], Beside]) -> None:
        """`beside` returns what commands in a folder can also read, and where they can also write."""
        self._made_from = home, folders, beside

    @cached_property
    def _real(self) -> "Provenance":
        home, folders, beside = self._made_from
        reach = import_object(REACH)
        made: Provenance = import_object(OBSERVER)(home, folders, lambda folder: reach(*beside(folder)))
        return made

    def close(self) -> None:
        if "_real" in vars(self):
            self._real.close()

    def of_file(self, path: Path, data: bytes) -> Trust:
        return self._real.of_file(path, data)

    def of_folder(self, path: Path) -> Trust:
        return self._real.of_folder(path)

    def of_output(self, folder: Path, text: str) -> Trust:
        return self._real.of_output(folder, text)

    async def before_write(self, path: Path, before: bytes | None, context: ToolContext) -> None:
        await self._real.before_write(path, before, context)

    async def after_write(self, path: Path, data: bytes, context: ToolContext) -> None:
        await self._real.after_write(path, data, context)

    def around_command(
        self, folder: Path, text: str, context: ToolContext, *, network: bool
    ) -> AbstractAsyncContextManager[None]:
        return self._real.around_command(folder, text, context, network=network)
