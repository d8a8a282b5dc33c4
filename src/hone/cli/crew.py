"""Do a worker's deliveries, for the owner of this home and for others in the same database."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from hone.app import Hone
from hone.cli.detach import has_work
from hone.cli.queued import do_next
from hone.cli.reviews import attempt, outcome
from hone.core.delivery import TicketKind, WorkItem, WorkResult
from hone.core.errors import HoneError
from hone.core.events import Emit
from hone.core.jobs import JobId, State
from hone.core.value import replace
from hone.runtime.queued import CommandQueue
from hone.settings import Settings
from hone.web.owners_hone import OwnersHone

OPEN = 8
"""How many other owners' Hones stay open for their next work."""
REST = timedelta(minutes=10)
"""The wait before failed background work is tried again."""
PAID = (TicketKind.REVIEW, TicketKind.TEND, TicketKind.COMMAND)
"""Work that may call a model."""
FILE_BACKEND, NO_BACKEND = "sqlite", "null"

Tell = Callable[[Hone, str], None]
"""Hears the result of a review, and that a Hone may have notices."""


def without_file(settings: Settings) -> Settings:
    """Return the settings for another owner's work: a memory backend in a file of this worker's folder would
    be lost with it."""
    if settings.memory.backend != FILE_BACKEND:
        return settings
    return replace(settings, memory=replace(settings.memory, backend=NO_BACKEND))


class Crew:
    """`tell` hears of each review that was worked on, and with `every` of all others; `emit` of what features
    do. `wrong` counts failed reviews."""

    def __init__(self, hone: Hone, tell: Tell, emit: Emit, *, every: bool = False) -> None:
        self._every = every
        self._hone = hone
        self._tell = tell
        self._emit = emit
        self._others: OrderedDict[str, OwnersHone] = OrderedDict()
        self._using: dict[str, int] = {}
        self._opening = asyncio.Lock()
        self._folders = AsyncExitStack()
        self.wrong: set[JobId] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for hone in self._others.values():
            await hone.close(wait=False)
        await self._folders.aclose()

    async def perform(self, item: WorkItem) -> WorkResult:
        hone = await self._open(item.owner) if item.owner else self._hone
        try:
            if item.owner and item.kind in PAID:
                await self._limit(item.owner)
            match item.kind:
                case TicketKind.REVIEW:
                    assert item.job is not None
                    return WorkResult(await self._review(hone, item.job))
                case TicketKind.DELIVER:
                    for part in hone.parts("send"):
                        await part.send()
                    return WorkResult()
                case TicketKind.WAKE:
                    return await self._wake(hone)
                case TicketKind.TEND:
                    return await self._tend(hone)
                case TicketKind.COMMAND:
                    return await self._do_command(hone)
        finally:
            await self._leave(item.owner)

    async def _limit(self, owner: str) -> None:
        """Limit learning to what the user has left of today's budget."""
        hone, opened = self._others[owner], self._hone.stores.open_users
        if opened is None:
            return
        users, usual = opened(), self._hone.settings.serve.cost_per_day
        own = (await asyncio.to_thread(users.limits, owner)).cost_per_day
        most = own if own is not None else usual or None
        hone.learning_cap = None
        if most is not None:
            used = await asyncio.to_thread(lambda: users.usage(owner, storage=False))
            hone.learning_cap = used.learning + max(0.0, most - used.cost)

    async def _review(self, hone: Hone, id: JobId) -> bool:
        before = await hone.jobs.job(id)
        said = await outcome(hone, id, await attempt(hone, id))
        now = await hone.jobs.job(id)
        is_done = now.state is not State.QUEUED or now.error != "" or now.tries > before.tries
        if now.error:
            self.wrong.add(id)
        if is_done or self._every:
            self._tell(hone, f"review {id} of {before.session}: {said}")
        return is_done

    async def _wake(self, hone: Hone) -> WorkResult:
        await hone.background.promote()
        for part in hone.parts("notify"):
            part.notify()
        return await self._look_ahead(hone, hone.clock.now())

    async def _look_ahead(self, hone: Hone, again: datetime) -> WorkResult:
        """Return when the next background work and command are due. `again`: when to retry what is left now.
        The only user of a home does that work from time to time, and need not know."""
        command = await asyncio.to_thread(CommandQueue(hone.documents, hone.clock).next_due)
        if not self._hone.stores.shared:
            return WorkResult(command=command)
        times = [again] if await has_work(hone) else []
        for part in hone.parts("next_tend"):
            with suppress(HoneError):  # the error is reported when it is used
                due = await part.next_tend()
                times += [due] if due else []
        return WorkResult(True, min(times, default=None), command)

    async def _do_command(self, hone: Hone) -> WorkResult:
        said = await do_next(hone)
        if said:
            self._tell(hone, said)
        left = await self._look_ahead(hone, hone.clock.now() + REST)
        return replace(left, worked=bool(said))

    async def _tend(self, hone: Hone) -> WorkResult:
        for part in hone.parts("tend"):
            await part.tend(self._emit)
        if hone is self._hone:  # it does the other work in the background
            for part in hone.parts("notify"):
                part.notify()
        else:
            for part in hone.parts("work"):
                await part.work()
        self._tell(hone, "")
        return await self._look_ahead(hone, hone.clock.now() + REST)

    async def _open(self, owner: str) -> Hone:
        """Open an owner's Hone, with a folder that is deleted when this worker ends."""
        async with self._opening:
            self._using[owner] = self._using.get(owner, 0) + 1
            if owner not in self._others:
                assert self._hone.stores.open_owner is not None
                folder = Path(self._folders.enter_context(TemporaryDirectory(prefix="hone-")))
                stores = self._hone.stores.open_owner(owner, folder)
                settings = without_file(self._hone.settings)
                self._others[owner] = OwnersHone(folder, self._hone, stores, settings)
            self._others.move_to_end(owner)
            return self._others[owner]

    async def _leave(self, owner: str) -> None:
        """Close those that have been idle for long."""
        if not owner:
            return
        async with self._opening:
            self._using[owner] -= 1
            for name in list(self._others)[:-OPEN]:
                if not self._using[name]:
                    del self._using[name]
                    await self._others.pop(name).close(wait=False)
