"""The part that adds a memory backend to a Hone: its tool, its reminders and its copies of what is known."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hone.app import Hone
from hone.core.backend import Backend
from hone.core.errors import Unfit
from hone.core.holding import Holding
from hone.core.ledger import Actor, Author, Entry, Ledger, memory_item
from hone.core.loading import import_object
from hone.core.part import Part, Remind
from hone.core.secrets import redact
from hone.core.tool import Tool
from hone.core.transcript import Source
from hone.features.backends.current import CurrentBackend
from hone.features.backends.mirror import Mirror
from hone.features.backends.outbox_worker import DeliveryResult, OutboxWorker
from hone.knowledge.items import Items, KeptMemory, load

if TYPE_CHECKING:
    from hone.features.backends.access import Access

TOOL = "hone.features.backends.tool:backend_tool"
ACCESS = "hone.features.backends.access:Access"
REMINDING = "hone.features.backends.reminding:Reminding"
"""Loaded by name: most homes have no backend."""
UNFIT = Author(Actor.AGENT, reason="the memory backend does not take it")
"""The actor that undoes an item that the backend refuses."""

ERASER = "hone.features.backends.erasing:BackendEraser"


class MemoryPart(Part):
    name = "backends"

    def __init__(self, hone: Hone) -> None:
        self._hone = hone
        makers = {name: make for part in hone.parts("backends") for name, make in part.backends().items()}
        self.backing = CurrentBackend(hone.home, hone.clock, hone.settings.memory, makers, hone.say)

    @cached_property
    def worker(self) -> OutboxWorker:
        return OutboxWorker(self.mirror, self._hone.stores.open_claims, self._hone.clock)

    async def used(self) -> Backend | None:
        """Return the backend in use; None if it stores nothing by key."""
        await self.backing.choose()
        return self.backing.used

    async def ready(self) -> None:
        await self.used()

    def tools(self, folder: Path, source: Source | None = None) -> Sequence[Tool]:
        """Return the tool; none without a backend, so that a first request stays small."""
        return self._tools(source, None)

    def review_tools(self, folder: Path, source: Source, ledger: Ledger) -> Sequence[Tool]:
        """Return the tool of a review, whose items are staged."""
        return self._tools(source, ledger)

    def _tools(self, source: Source | None, staged: Ledger | None) -> Sequence[Tool]:
        backend = self.backing.used
        if backend is None:
            return ()
        return (import_object(TOOL)(self._hone, self.access(backend, source, staged)),)

    def access(
        self, backend: Backend, source: Source | None = None, staged: Ledger | None = None
    ) -> "Access":
        """Return the way to the items of this home's user."""
        items = Items(self._hone.keeper, self._hone.clock, staged)
        home = self._hone.stores.outbox.home
        access: Access = import_object(ACCESS)(
            backend, self.backing.user_id, items, self.deliver, home, source, self._hone.meanings
        )
        return access

    async def deliver(self, entry: Entry) -> DeliveryResult:
        """Send the backend an item while somebody waits; undo what it will never store."""
        try:
            return await self.worker.deliver(entry)
        except Unfit:
            await self._hone.keeper.undo(entry.id, UNFIT)
            raise

    async def _kept(self, key: str) -> KeptMemory | None:
        return await load(self._hone.stores.ledger, memory_item(self.backing.user_id, key))

    def remind(self) -> Remind | None:
        backend, wish = self.backing.used, self.backing.wish
        if backend is None:
            return None
        home, clock = self._hone.stores.outbox.home, self._hone.clock
        user = self.backing.user_id
        remind: Remind = import_object(REMINDING)(
            backend, user, home, clock, wish.deadline, redact, self._kept
        )
        return remind

    def attend(self) -> None:
        self.worker.attend()

    def notify(self) -> None:
        self.worker.notify()

    async def finish(self) -> None:
        await self.worker.finish()

    async def send(self) -> None:
        await self.worker.drain()

    def holdings(self) -> Sequence[Holding]:
        return (
            Holding(
                "backends",
                "memories by key, here or at a service",
                places=("memories.db*",),
                eraser=ERASER,
                stays="the settings say where memories are kept",
            ),
        )

    async def close(self) -> None:
        if "worker" in vars(self):
            await self.worker.close()
        await self.backing.close()

    async def mirror(self) -> Mirror | None:
        """Return the keeper of copies of journal and skills; None without a backend or a writable home."""
        backend = await self.used()
        if backend is None or (stores := self._hone.stores).closed:
            return None
        await stores.outbox.address(self.backing.address)
        return Mirror(stores.ledger, stores.outbox, backend, self.backing.user_id)
