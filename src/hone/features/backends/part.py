"""The part that adds a memory backend to a Hone: its tool, its reminders and its copies of what is known."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from hone.app import Hone
from hone.core.backend import Backend
from hone.core.loading import import_object
from hone.core.part import Part, Remind
from hone.core.secrets import redact
from hone.core.tool import Tool
from hone.core.transcript import Source
from hone.features.backends.current import CurrentBackend
from hone.features.backends.mirror import Mirror
from hone.features.backends.outbox_worker import OutboxWorker

TOOL = "hone.features.backends.tool:backend_tool"
REMINDING = "hone.features.backends.reminding:Reminding"
"""Loaded by name: most homes have no backend."""


class MemoryPart(Part):
    name = "backends"

    def __init__(self, hone: Hone) -> None:
        self._hone = hone
        makers = {name: make for part in hone.parts("backends") for name, make in part.backends().items()}
        self.backing = CurrentBackend(hone.home, hone.clock, hone.settings.memory, makers, hone.say)

    @cached_property
    def worker(self) -> OutboxWorker:
        return OutboxWorker(self.mirror, self._hone.home, self._hone.clock)

    async def used(self) -> Backend | None:
        """Return the backend in use; None where nothing is kept by key."""
        await self.backing.choose()
        return self.backing.used

    async def ready(self) -> None:
        await self.used()

    def tools(self, folder: Path, source: Source | None = None) -> Sequence[Tool]:
        """Return the tool; none without a backend, so that a first request stays small."""
        backend = self.backing.used
        if backend is None:
            return ()
        return (import_object(TOOL)(self._hone, backend, self.backing.user_id, source),)

    def remind(self) -> Remind | None:
        backend, wish = self.backing.used, self.backing.wish
        if backend is None:
            return None
        home, clock = self._hone.stores.outbox.home, self._hone.clock
        user = self.backing.user_id
        remind: Remind = import_object(REMINDING)(backend, user, home, clock, wish.deadline, redact)
        return remind

    def attend(self) -> None:
        self.worker.attend()

    def notify(self) -> None:
        self.worker.notify()

    async def finish(self) -> None:
        await self.worker.finish()

    async def close(self) -> None:
        if "worker" in vars(self):
            await self.worker.close()
        await self.backing.close()

    async def mirror(self) -> Mirror | None:
        """Return what keeps copies of journal and skills; None without a backend or a writable home."""
        backend = await self.used()
        if backend is None or (stores := self._hone.stores).closed:
            return None
        await stores.outbox.address(self.backing.address)
        return Mirror(stores.ledger, stores.outbox, backend, self.backing.user_id)
