"""Load the observer with the first file that is read: most starts read none."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hone.core.errors import HoneError
from hone.core.loading import import_object
from hone.core.messages import ToolCall
from hone.core.provenance import identify
from hone.core.tool import Outcome
from hone.core.tool_context import ToolContext
from hone.core.trust import Trust
from hone.core.work import reasons_of_call
from hone.runtime.trust import Folders
from hone.sandbox.caches import cache_of

if TYPE_CHECKING:
    from hone.runtime.provenance.observer import Provenance
    from hone.runtime.provenance.records import Reach
    from hone.settings.sections import SandboxSettings

OBSERVER = "hone.runtime.provenance.observer:Provenance"
REACH = "hone.runtime.provenance.records:Reach"


class LazyProvenance:
    """A `Provenance` that is made when it is first needed."""

    def __init__(self, home: Path, folders: Folders, sandbox_in: "Callable[[Path], SandboxSettings]") -> None:
        """`sandbox_in` returns the sandbox settings of a folder."""
        self._made_from = home, folders
        self._sandbox_in = sandbox_in
        self._folders = folders
        self._withholds = False

    @cached_property
    def _real(self) -> "Provenance":
        made: Provenance = import_object(OBSERVER)(*self._made_from, self._reach)
        return made

    def _reach(self, folder: Path) -> "Reach":
        """Return what commands in a folder can also read, and where they can also write."""
        access, (home, _) = self._sandbox_in(folder).access(), self._made_from
        made: Reach = import_object(REACH)(access.read, (cache_of(home, folder), *access.write))
        return made

    @property
    def observer(self) -> "Provenance":
        """The real observer."""
        return self._real

    def close(self) -> None:
        if "_real" in vars(self):
            self._real.close()

    def of_file(self, path: Path, data: bytes) -> Trust:
        return self._noted(path, self._real.of_file(path, data))

    def of_folder(self, path: Path) -> Trust:
        return self._noted(path, self._real.of_folder(path))

    def of_output(self, folder: Path, text: str) -> Trust:
        reasons = reasons_of_call.get()
        return self._noted(
            folder, self._real.of_output(folder, text), reasons is not None and reasons.confined
        )

    def _noted(self, path: Path, label: Trust, confined: bool = True) -> Trust:
        """Note why a result is foreign, if it is."""
        reasons = reasons_of_call.get()
        if reasons and label is Trust.FOREIGN:
            folders = self._folders
            only = confined and not folders.trusts(path) and folders.covers(reasons.folder, path)
            reasons.found.append(only)
        return label

    async def remember(self, call: ToolCall, outcome: Outcome) -> None:
        """Remember a withheld result. From then on, remember Hone's own words, too: anything said after
        foreign text gets no better label, and nobody could tell them apart later."""
        own = self._withholds and outcome.trust >= Trust.AGENT
        if outcome.withheld or own:
            self._withholds = True
            key = identify(call.id, outcome.text)
            with suppress(HoneError):  # in that case it stays foreign
                await asyncio.to_thread(self._real.store.withhold, key, outcome.withheld)

    async def before_write(self, path: Path, before: bytes | None, context: ToolContext) -> None:
        await self._real.before_write(path, before, context)

    async def after_write(self, path: Path, data: bytes, context: ToolContext) -> None:
        await self._real.after_write(path, data, context)

    @asynccontextmanager
    async def around_command(
        self, folder: Path, text: str, context: ToolContext, *, network: bool
    ) -> AsyncIterator[None]:
        reasons = reasons_of_call.get()
        if reasons and not network and not self._folders.trusts(folder):
            session = context.header.id
            reasons.confined = await asyncio.to_thread(self._real.is_confined, folder, session)
        async with self._real.around_command(folder, text, context, network=network):
            yield
