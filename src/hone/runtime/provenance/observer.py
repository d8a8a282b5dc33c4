"""Observe what tools and commands write, and label what they read.

A foreign conversation taints every file it changes; a command with network does so in any conversation. A
window is recorded before a command starts or a file is written: if the process dies before it has recorded
the rest, whatever has changed since then counts as tainted.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from hone.core.errors import HoneError
from hone.core.ids import SessionId
from hone.core.tool_context import ToolContext
from hone.core.trust import Trust
from hone.core.waiting import uninterrupted
from hone.runtime.provenance.areas import Areas
from hone.runtime.provenance.commands import CommandObserver
from hone.runtime.provenance.labels import ProvenanceLabels
from hone.runtime.provenance.records import Active, FindReach, Reach, Records, activate
from hone.runtime.provenance.relabeling import Conversations, Relabeling
from hone.runtime.provenance.view import name
from hone.runtime.provenance.writes import WriteObserver
from hone.runtime.trust import Folders
from hone.stores.tainted import TaintStore

_current: ContextVar[Active | None] = ContextVar("_current", default=None)
"""The command of the call that is running."""


class Provenance:
    """The observer and the labels of one home. `reach` tells what commands in a folder can write and read
    outside it."""

    def __init__(self, home: Path, folders: Folders, reach: FindReach = lambda _: Reach()) -> None:
        records = self._records = Records(home, folders)
        self._reach = reach
        self._areas = Areas(folders, records.views)
        self._labels = ProvenanceLabels(records, self._areas, reach)
        self._writes = WriteObserver(records, self._labels)
        self._commands = CommandObserver(records, self._areas, reach)
        self._is_recovered = False

    @property
    def store(self) -> TaintStore:
        return self._records.store

    def is_confined(self, folder: Path, session: str) -> bool:
        """Tell whether commands in a folder can read no untrusted folder, inside it or elsewhere."""
        return not self._areas.find_untrusted(folder, session, self._reach(folder))

    def relabel(self, folder: Path, talks: Conversations) -> Conversations:
        """Return the conversations that are foreign only because a folder was not trusted, with new
        labels."""
        return Relabeling(self._records, self._areas, self._reach, folder).find_clean(talks)

    def find_sessions(self, folder: Path) -> frozenset[str]:
        """Return the conversations that have tainted something in a folder. Raises StoreError."""
        return self.store.find_sessions(name(folder)) if self.store.exists else frozenset()

    def clear(self, sessions: Iterable[SessionId]) -> None:
        """Forget what these conversations have tainted. Raises StoreError."""
        if self.store.exists:
            self.store.clear(sessions)
            self._records.views.changed()

    def close(self) -> None:
        self._commands.close()
        self._areas.close()
        self._records.close()

    def of_file(self, path: Path, data: bytes) -> Trust:
        self._recover()
        return self._labels.of_file(path, data)

    def of_folder(self, path: Path) -> Trust:
        return self._labels.of_folder(path)

    def of_output(self, folder: Path, text: str) -> Trust:
        window = _current.get()
        if window and window.tainted:
            return Trust.FOREIGN
        self._recover()
        return self._labels.of_output(folder, text)

    async def before_write(self, path: Path, before: bytes | None, context: ToolContext) -> None:
        await uninterrupted(asyncio.to_thread(self._writes.before, path, before, context))

    async def after_write(self, path: Path, data: bytes, context: ToolContext) -> None:
        await uninterrupted(asyncio.to_thread(self._writes.after, path, data, context))

    @asynccontextmanager
    async def around_command(
        self, folder: Path, text: str, context: ToolContext, *, network: bool
    ) -> AsyncIterator[None]:
        active = activate(folder, context, network=network)
        _current.set(active)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._around(active, text, context))
            for place in self._reach(folder).write if active.tainted else ():
                if self._records.folders.trusts(place):
                    beside = activate(place, context, network=network)
                    await stack.enter_async_context(self._around(beside, text, context))
            yield

    @asynccontextmanager
    async def _around(self, active: Active, text: str, context: ToolContext) -> AsyncIterator[None]:
        try:
            await uninterrupted(asyncio.to_thread(self._commands.enter, active, text, context))
            yield
        finally:
            await uninterrupted(asyncio.to_thread(self._commands.leave, active, context.emit))

    def _recover(self) -> None:
        """Check once for leftovers of a killed process. Unreadable records make everything foreign."""
        if not self._is_recovered:
            with suppress(HoneError, OSError):
                self._records.recover()
            self._is_recovered = True
