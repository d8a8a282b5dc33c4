"""The state that all routes share, and the server's background work."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hone.app import Hone
from hone.core.clock import Clock
from hone.core.errors import StoreError
from hone.core.events import Curated, Event, Learned, ReviewFailed
from hone.core.ids import SessionId
from hone.core.ledger import START
from hone.core.permissions import Mode
from hone.core.switchboard import Inbox, name_server
from hone.prompt.modes import find_mode
from hone.web.bus import EVERYWHERE, Bus
from hone.web.events import shown
from hone.web.garbage import GarbageCollector
from hone.web.keys import Keys
from hone.web.open_sessions import OpenSessions
from hone.web.openai.matching import Places, StoredPlaces
from hone.web.pending_questions import PendingQuestions
from hone.web.readiness import Readiness
from hone.web.relay import Relay
from hone.web.user_keys import UserKeys
from hone.web.user_limits import UserLimiter

if TYPE_CHECKING:
    from hone.web.tenants import Tenants

LOOK = 1.0
"""Seconds between two checks of what other processes did."""
BEATS = 15
"""How many checks lie between two signs of life to clients."""
ALIVE = 1.0
"""Seconds between two signs of life to the database."""
JOBS = 50
"""How many of the latest reviews are watched."""


@dataclass(slots=True)
class ServerState:
    """`address` is where people find the server. `user` is the user it serves; empty: the owner of the
    server's home."""

    hone: Hone
    keys: Keys | UserKeys
    bus: Bus
    questions: PendingQuestions
    open_sessions: OpenSessions
    clock: Clock
    address: str
    relay: Relay
    user: str = ""
    look: float = LOOK
    limiter: UserLimiter | None = None
    tenants: "Tenants | None" = None
    """The users of this server, if there can be any."""
    remembered: dict[str, Places] = field(default_factory=dict)
    """The places of clients' conversations, by a program's key."""
    places: StoredPlaces = field(init=False)
    readiness: Readiness = field(init=False)

    def __post_init__(self) -> None:
        stores = self.hone.stores
        self.places = StoredPlaces(self.hone.sessions, stores.histories, stores.overview)
        self.readiness = Readiness(stores.is_current, self.clock)

    @asynccontextmanager
    async def running(self, *, attends: bool = True) -> AsyncGenerator[None, None]:
        """Do reviews, including those that earlier processes left, unless workers do them, and report what
        happens."""
        async with self._known(), asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._watch()),
                group.create_task(self.relay.run(self._act, self._renew)),
                group.create_task(self._beat()),
            ]
            if attends:
                self.hone.background.attend(self._hear)
            try:
                yield
            finally:
                await self.end()
                for task in tasks:
                    task.cancel()

    def _known(self) -> AbstractAsyncContextManager[object]:
        """Tell other servers that this one is alive."""
        stores = self.hone.stores
        return stores.claims.hold(name_server(self.relay.board.server)) if stores.shared else nullcontext()

    async def _beat(self) -> None:
        """Keep the claims of this server. A server that hangs loses its conversations to the others."""
        while self.hone.stores.shared:
            with suppress(StoreError):  # without a database there is no claim either
                await self.hone.stores.claims.beat()
                await self.hone.stores.claims.confirm(name_server(self.relay.board.server))
            await self.clock.sleep(ALIVE)

    def _act(self, inbox: Inbox) -> None:
        self.open_sessions.act(inbox)
        self.questions.hear(inbox.answers)

    async def _renew(self) -> None:
        """Repeat what a crash of the database, or a lost connection, may have lost."""
        if self.hone.stores.shared:
            await self.hone.stores.claims.confirm(name_server(self.relay.board.server))
        await self.questions.renew()

    async def busy(self) -> list[str]:
        """Return the conversations with a running turn, on this server or another."""
        return sorted({*self.open_sessions.busy, *await self.relay.board.busy()})

    async def mode_of(self, id: SessionId) -> Mode:
        """Return the mode of a stored conversation: its running mode, the chosen one, or the one that its
        model was told."""
        opened = self.open_sessions.find(id)
        if opened and (opened.speaking or not self.hone.stores.shared):
            return opened.session.mode
        if chosen := await self.relay.board.chosen_mode(id):
            return Mode(chosen)
        return self.hone.permissions.mode_after(find_mode((await self.hone.sessions.load(id)).transcript))

    async def end(self, grace: float = 0.0) -> int:
        """End turns in order, then disconnect listeners. Return how many turns had to be interrupted."""
        late = await self.open_sessions.finish(grace)
        with suppress(StoreError):
            await self.places.tend()
        self.bus.close()
        return late

    def _hear(self, event: Event) -> None:
        if isinstance(event, Learned | ReviewFailed | Curated):
            self.bus.publish(EVERYWHERE, *shown(event))
        if isinstance(event, Learned | ReviewFailed) and self.open_sessions.find(event.job.session):
            self.bus.publish(event.job.session, *shown(event))

    async def _watch(self) -> None:
        """Watch for changes by other processes. The next check reads what cannot be read now."""
        before: tuple[object, object] = (START, ())
        beats, garbage = 0, GarbageCollector(self.clock)
        while True:
            with suppress(StoreError):
                now = await self._state()
                self._differ(before, now)
                before = now
            with suppress(StoreError):
                await self.places.tend()
            self._say_notices()
            garbage.tidy()
            beats = (beats + 1) % BEATS
            if not beats:
                self.bus.beat()
            await self.clock.sleep(self.look)

    async def _state(self) -> tuple[object, object]:
        jobs = await self.hone.jobs.jobs(JOBS)
        states = tuple((job.id, job.state, job.tries, job.error) for job in jobs)
        return await self.hone.ledger.latest(), states

    def _differ(self, before: tuple[object, object], now: tuple[object, object]) -> None:
        if now[0] != before[0]:
            self.bus.publish(EVERYWHERE, "changed", {"latest": now[0]})
        if now[1] != before[1]:
            self.bus.publish(EVERYWHERE, "reviews", {})
            self.hone.background.notify()

    def _say_notices(self) -> None:
        sentences, self.hone.notices[:] = list(self.hone.notices), []
        for sentence in sentences:
            self.bus.publish(EVERYWHERE, "notice", {"text": sentence})
