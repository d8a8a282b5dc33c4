"""Do what is delivered to a worker, for the owner of this home and for others in the same database."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from hone.app import Hone
from hone.cli.reviews import attempt, outcome
from hone.core.delivery import TicketKind, WorkItem
from hone.core.events import Emit
from hone.core.jobs import JobId, State
from hone.web.owners_hone import OwnersHone

OPEN = 8
"""Other owners whose Hone stays open for the next work."""

Tell = Callable[[Hone, str], None]
"""Hears what became of a review, and that a Hone may have notices."""


class Crew:
    """`tell` hears of each review that was worked on, and of `every` other one; `emit` of what features do.
    `wrong` are reviews that failed."""

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

    async def perform(self, item: WorkItem) -> bool:
        hone = await self._open(item.owner) if item.owner else self._hone
        try:
            match item.kind:
                case TicketKind.REVIEW:
                    assert item.job is not None
                    if item.owner:
                        await self._limit(item.owner)
                    return await self._review(hone, item.job)
                case TicketKind.WAKE:
                    return await self._wake(hone)
                case TicketKind.DELIVER:
                    for part in hone.parts("finish"):
                        await part.finish()
                case TicketKind.TEND:
                    await self._tend(hone)
            return False
        finally:
            await self._leave(item.owner)

    async def _limit(self, owner: str) -> None:
        """Let learning spend no more than what the user has left of today."""
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

    async def _wake(self, hone: Hone) -> bool:
        await hone.background.promote()
        for part in hone.parts("notify"):
            part.notify()
        return any([await part.has_work() for part in hone.parts("has_work")])

    async def _tend(self, hone: Hone) -> None:
        for part in hone.parts("tend"):
            await part.tend(self._emit)
        if hone is not self._hone:  # our own attends to it anyway
            for part in hone.parts("work"):
                await part.work()
        self._tell(hone, "")

    async def _open(self, owner: str) -> Hone:
        """Open an owner's Hone, with a folder that is gone when this worker ends."""
        async with self._opening:
            self._using[owner] = self._using.get(owner, 0) + 1
            if owner not in self._others:
                assert self._hone.stores.open_owner is not None
                folder = Path(self._folders.enter_context(TemporaryDirectory(prefix="hone-")))
                stores = self._hone.stores.open_owner(owner, folder)
                self._others[owner] = OwnersHone(folder, self._hone, stores)
            self._others.move_to_end(owner)
            return self._others[owner]

    async def _leave(self, owner: str) -> None:
        """Close those that were not used for long, and that nobody uses now."""
        if not owner:
            return
        async with self._opening:
            self._using[owner] -= 1
            for name in list(self._others)[:-OPEN]:
                if not self._using[name]:
                    del self._using[name]
                    await self._others.pop(name).close(wait=False)
