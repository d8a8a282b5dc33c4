"""The users that a server process has open. Each has a separate Hone, events, questions and conversations.
They share the models, the connections to the database and the event loop."""

import asyncio
import os
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

from hone.app import Hone
from hone.core.clock import Clock
from hone.core.errors import Ending, StoreError
from hone.core.switchboard import Switchboard
from hone.core.value import replace
from hone.files.atomic import make_folder
from hone.runtime.toolbox_factory import Enclosure
from hone.sandbox.choice import Sandbox
from hone.settings import Settings
from hone.settings.sections import McpSettings, SandboxSettings
from hone.web.bus import Bus
from hone.web.open_sessions import OpenSessions
from hone.web.owners_hone import OwnersHone
from hone.web.pending_questions import PendingQuestions
from hone.web.relay import Relay
from hone.web.state import ServerState
from hone.web.user_gate import UserGate

MOST = 100
"""How many idle users stay open."""
IDLE = 60.0
"""Seconds without a request, a listener or a turn after which a user is closed."""
LOOK = 5.0
"""Seconds between two checks of what other processes did for a user. Signals arrive at once."""
PRUNING = 720
"""How many checks lie between two deletions of old audit rows."""
USERS = "users"
"""The folder of the home with a subfolder for each user."""


class NotOpened(StoreError):
    """A user's stores cannot be opened now."""


class Tenant:
    """One open user. `using` counts the running requests."""

    def __init__(self, state: ServerState, ended: asyncio.Event, task: "asyncio.Task[None]") -> None:
        self.state = state
        self.using = 0
        self.last = state.clock.monotonic()
        self._ended = ended
        self._task = task

    @property
    def is_idle(self) -> bool:
        return not (self.using or self.state.open_sessions.busy or self.state.bus.listened)

    @property
    def is_over(self) -> bool:
        """Tell whether something that it needs has failed."""
        return self._task.done()

    async def close(self, grace: float = 0.0) -> int:
        """Return how many turns had to be interrupted."""
        late = await self.state.end(grace)
        self._ended.set()
        await self._task
        return late


class Tenants:
    """`server` is the part of the process for its own owner."""

    def __init__(self, hone: Hone, gate: UserGate, clock: Clock, address: str, most: int = MOST) -> None:
        self.gate = gate
        self._hone = hone
        self._clock = clock
        self._address = address
        self._most = most
        self._open: OrderedDict[str, Tenant] = OrderedDict()
        self._opening: dict[str, asyncio.Lock] = {}
        self._closing = False

    @property
    def open(self) -> Mapping[str, Tenant]:
        """The open users, the latest last."""
        return self._open

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Close idle users from time to time, and all of them at the end."""
        tending = asyncio.create_task(self._tend())
        try:
            yield
        finally:
            tending.cancel()
            await asyncio.gather(tending, return_exceptions=True)
            await self.end()

    @asynccontextmanager
    async def enter(self, user: str) -> AsyncIterator[ServerState]:
        """Yield a user's server state for one request. Raises StoreError."""
        lock = self._opening.setdefault(user, asyncio.Lock())
        async with lock:
            if user not in self._open or self._open[user].is_over:
                try:
                    self._open[user] = await self._start(user)
                except Ending:
                    raise
                except StoreError as error:
                    raise NotOpened(str(error)) from error
            tenant = self._open[user]
            tenant.using += 1
        self._open.move_to_end(user)
        try:
            yield tenant.state
        finally:
            tenant.using -= 1
            tenant.last = self._clock.monotonic()

    async def end(self, grace: float = 0.0) -> int:
        """End the turns of all users in order. Return how many had to be interrupted."""
        self._closing = True
        tenants = [self._open.pop(name) for name in list(self._open)]
        return sum(await asyncio.gather(*(each.close(grace) for each in tenants)))

    async def _tend(self) -> None:
        looks = 0
        while True:
            with suppress(StoreError):
                if not looks % PRUNING:
                    await self.gate.prune()
                await self.close_idle()
            looks += 1
            await self._clock.sleep(LOOK)

    async def close_idle(self) -> None:
        """Close users that were idle for a while, and those beyond the limit."""
        now = self._clock.monotonic()
        surplus = len(self._open) - self._most
        for name, tenant in list(self._open.items()):
            if not tenant.is_idle or (now - tenant.last < IDLE and surplus <= 0):
                continue
            async with self._opening[name]:
                if tenant.is_idle:  # nobody came in the meantime
                    del self._open[name]
                    surplus -= 1
                    await tenant.close()

    async def _start(self, user: str) -> Tenant:
        if self._closing:
            raise Ending
        opened: asyncio.Future[ServerState] = asyncio.get_running_loop().create_future()
        ended = asyncio.Event()
        task = asyncio.create_task(self._run(user, opened, ended))
        try:
            return Tenant(await asyncio.shield(opened), ended, task)
        except BaseException:
            ended.set()
            raise

    async def _run(self, user: str, opened: "asyncio.Future[ServerState]", ended: asyncio.Event) -> None:
        """Own the open state of a user, until the end."""
        try:
            async with AsyncExitStack() as stack:
                state = await self._compose(user, stack)
                await stack.enter_async_context(state.running(attends=False))
                opened.set_result(state)
                await ended.wait()
        except BaseException as error:
            if opened.done():
                raise
            opened.set_exception(error)

    async def _compose(self, user: str, stack: AsyncExitStack) -> ServerState:
        """Compose a user's state as `hone serve` does for its owner, in this user's folders."""
        home, workspace = await asyncio.to_thread(self._make_folders, user)
        assert self._hone.stores.open_owner is not None
        stores = await asyncio.to_thread(self._hone.stores.open_owner, user, home)
        assert stores.open_switchboard is not None
        bus = Bus()
        board: Switchboard = stores.open_switchboard(os.urandom(6).hex())
        stack.push_async_callback(board.close)
        questions = PendingQuestions(bus, self._clock, lambda: board)
        hone = OwnersHone(
            home,
            self._hone,
            stores,
            limit_settings(self._hone.settings),
            folder=Enclosure(workspace, self._make_sandbox(workspace)),
            ask=questions.ask,
            learning="queue",
            platform=self._hone.platform,
        )
        stack.push_async_callback(hone.close)
        relay = Relay(bus, board, self._clock, LOOK)
        limiter = self.gate.limiter_of(user)
        sessions = OpenSessions(hone, bus, self._clock, relay=relay, limits=limiter)
        return ServerState(
            hone,
            self.gate.keys_of(user),
            bus,
            questions,
            sessions,
            self._clock,
            self._address,
            relay,
            user=user,
            look=LOOK,
            limiter=limiter,
        )

    def _make_folders(self, user: str) -> tuple[Path, Path]:
        home = self._hone.home / USERS / user
        workspace = find_workspaces(self._hone.home, self._hone.settings) / user
        try:
            for folder in (home.parent, home, workspace.parent, workspace):
                make_folder(folder)
        except OSError as error:
            raise StoreError(f"The folders of a user cannot be made: {error.strerror}.") from error
        return home, workspace.resolve()

    def _make_sandbox(self, workspace: Path) -> Sandbox:
        """Make the sandbox. Commands see the working folder, and nothing of the server or of other users.
        They have no home in which caches would last."""
        hidden = (self._hone.home, workspace.parent)
        return Sandbox(hidden=hidden, clock=self._clock, required=True)


def find_workspaces(home: Path, settings: Settings) -> Path:
    """Return the folder below which each user has a working folder."""
    named = settings.serve.workspaces
    return Path(named).expanduser() if named else home.with_name(f"{home.name}-workspaces")


def limit_settings(settings: Settings) -> Settings:
    """Return the settings for users: without the operator's programs, hooks and paths, which have that
    person's rights."""
    return replace(
        settings,
        mcp=McpSettings(),
        hooks=(),
        projects={},
        sandbox=SandboxSettings(network=settings.serve.network),
    )
