"""Run the server process: bind the address, issue a login link, and shut down in order."""

import asyncio
import gc
import ipaddress
import os
import signal
import socket
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from types import FrameType

import uvicorn
from msgspec import Struct

from hone.app import Hone
from hone.core.clock import Clock, SystemClock
from hone.core.errors import Refused, SettingsError, StoreError
from hone.core.switchboard import Switchboard
from hone.core.value import replace
from hone.core.visible import visible
from hone.monitoring.exposing import MetricsPlace, expose, shared_metrics
from hone.monitoring.families import Family, gauge
from hone.monitoring.gauges import measure_queue
from hone.monitoring.logs import Log, caught
from hone.settings import read
from hone.stores.database import limit_caches
from hone.web.access import SharedAccess, adopt_keys
from hone.web.address_file import PublishedAddress, published
from hone.web.api_keys import ApiKeys
from hone.web.app import create_app
from hone.web.bus import Bus
from hone.web.keys import Keys, stored
from hone.web.local_switchboard import LocalSwitchboard
from hone.web.logins import Logins
from hone.web.open_sessions import OpenSessions
from hone.web.pending_questions import PendingQuestions
from hone.web.processes import Ready, Supervisor, check_database
from hone.web.protocol import BOUNDS, ArrivalBounds, strict
from hone.web.relay import Relay
from hone.web.requests import MonitoredRequests
from hone.web.state import ServerState
from hone.web.tenants import Tenants
from hone.web.tickets import Tickets
from hone.web.user_gate import UserGate

PORT, HTTP = 8420, 80
PLATFORM = "serve"
"""The platform recorded with changes that are made here."""
GRACE = 10.0
"""Seconds that running turns get to end."""
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
HELD_UP = 5
"""Seconds a client may take to hear the end."""


class Address(Struct, frozen=True):
    """The address to listen on. `names` are further names for it, as browsers write them."""

    host: str = "127.0.0.1"
    port: int = PORT
    names: Sequence[str] = ()
    password: str = ""

    @property
    def is_loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def check(self) -> None:
        """Raise Refused for an address that would be open to others."""
        if self.is_loopback:
            return
        if not self.password:
            raise Refused(
                f"{self.host} can be reached from other machines. Give a password: --password-file FILE"
            )
        if self.host in ("", "0.0.0.0", "::") and not self.names:
            raise Refused("Say by which name the server is reached: --name hone.example.org")

    def hosts(self, port: int) -> frozenset[str]:
        """Return every Host to answer to."""
        own = LOOPBACK if self.is_loopback else ()
        literal = f"[{self.host}]" if ":" in self.host else self.host
        named = {f"{name}:{port}" for name in (*own, literal)}
        unported = {*own, literal} if port == HTTP else set()  # browsers leave that one out
        return frozenset(named | unported | set(self.names))


def bind(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # asyncio turns Nagle's delay of 40 ms off only if the protocol is named.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address.host, address.port))
        listener.listen(2048)
    except (OSError, OverflowError) as error:
        listener.close()
        raise SettingsError(
            f"Nobody can listen at {address.host}, port {address.port}: {error}. Choose another: --port"
        ) from error
    return listener


class Server(uvicorn.Server):
    """Ends in order: turns first, then listeners, then connections."""

    def __init__(self, config: uvicorn.Config, state: ServerState, grace: float, log: Log) -> None:
        super().__init__(config)
        self._state = state
        self._grace = grace
        self._drain = state.hone.settings.serve.drain
        self.log = log
        self.interrupted = 0

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        tenants = self._state.tenants
        async with self._state.running(), tenants.running() if tenants else nullcontext():
            await super().serve(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Report at once that the server is not ready. With a drain it keeps working for a while, so that a
        load balancer notices; a second signal ends the wait."""
        first, self._state.readiness.stopping = not self._state.readiness.stopping, True
        if first and self._drain:
            asyncio.get_running_loop().call_later(self._drain, super().handle_exit, sig, frame)
        else:
            super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        tenants = self._state.tenants
        ending = [self._state.end(self._grace), *([tenants.end(self._grace)] if tenants else [])]
        self.interrupted = sum(await asyncio.gather(*ending))
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Treat a signal as a request to end, and do not die of it afterwards."""
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGINT, signal.SIGTERM)
        for number in numbers:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)


def server(
    state: ServerState, hosts: Collection[str], grace: float = GRACE, bounds: ArrivalBounds = BOUNDS
) -> Server:
    settings, monitors = state.hone.settings.serve, state.hone.monitors
    log = Log(state.clock, settings.log, users=settings.log_users)
    if settings.log != "off":
        monitors.add(log)
    config = uvicorn.Config(
        MonitoredRequests(create_app(state, hosts), monitors, state.clock, log),
        http=strict(bounds),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=HELD_UP,
    )
    return Server(config, state, grace, log)


async def serve(
    home: Path | None,
    address: Address,
    ready: Ready,
    *,
    grace: float = GRACE,
    listener: socket.socket | None = None,
    metrics: MetricsPlace | None = None,
) -> int:
    """Serve until a signal arrives. Return how many turns had to be interrupted. With a `listener` this is
    one of several processes: their parent prints where they are, and where their `metrics` are."""
    address.check()
    own = listener or bind(address)
    limit_caches()
    try:
        port, clock, bus = own.getsockname()[1], SystemClock(), Bus()
        board: list[Switchboard] = []
        questions = PendingQuestions(bus, clock, lambda: board[0])
        async with Hone(home=home, ask=questions.ask, learning="queue", platform=PLATFORM) as hone:
            await hone.sessions.list(limit=1)  # report first that a home cannot be opened
            check_kept(hone)
            board.append(open_board(hone))
            try:
                keys = await asyncio.to_thread(open_keys, hone, clock, port, address.password)
                state = compose(hone, keys, bus, questions, board[0], clock, find_url(address, port))
                serving = server(state, address.hosts(port), grace)
                async with measured(state, metrics):
                    ticket = await keys.ask(keys.ticket)
                    ready(f"{state.address}/login?ticket={ticket}", hone.home)
                    gc.freeze()  # what is loaded by now stays: collecting garbage is cheaper without it
                    where = PublishedAddress(state.address, own.getsockname()[0], port)
                    with nullcontext() if listener else published(hone.home, where), caught(serving.log):
                        await serving.serve([own])
                return serving.interrupted
            finally:
                await board[0].close()
    finally:
        own.close()


def run_processes(
    home: Path, address: Address, ready: Ready, *, grace: float = GRACE, count: int
) -> tuple[int, int]:
    """Run several processes on one port until a signal arrives. Return an exit code, and how many turns had
    to be interrupted. Raises SettingsError without a database that they can share."""
    address.check()
    check_database(read(home).database, home)
    listener = bind(address)
    host, port = listener.getsockname()[:2]

    with ExitStack() as stack:
        stack.callback(listener.close)
        place = stack.enter_context(shared_metrics(read(home).serve.metrics, count))

        def perform(shared: socket.socket, tell: Ready, index: int) -> int:
            own = replace(place, index=index) if place else None
            return asyncio.run(serve(home, address, tell, grace=grace, listener=shared, metrics=own))

        stack.enter_context(published(home, PublishedAddress(find_url(address, port), host, port)))
        return Supervisor(listener, count, perform, ready).run()


def measured(state: ServerState, place: MetricsPlace | None) -> AbstractAsyncContextManager[None]:
    """Collect metrics and publish them, if the settings name an address for that."""

    def count() -> list[Family]:
        opened = state.open_sessions
        return [
            gauge("hone_conversations_open", "Conversations in memory.", opened.count),
            gauge("hone_conversations_busy", "Conversations with a turn under way.", len(opened.busy)),
            gauge("hone_stopping", "1 when the server was told to end.", state.readiness.stopping),
        ]

    return expose(state.hone, place or state.hone.settings.serve.metrics, count, measure_queue)


def check_kept(hone: Hone) -> None:
    """Raise StoreError if there is no home but in memory: a client would not learn that nothing is kept."""
    if hone.stores.closed and not hone.stores.readonly:
        raise StoreError(
            f"{visible(str(hone.home))} cannot be written, and a server has to keep what it answers. Check "
            "its rights and the free space, or choose another home with --home."
        )


def open_board(hone: Hone) -> Switchboard:
    """Return what connects this server with others on the same stores."""
    connect = hone.stores.open_switchboard
    return connect(os.urandom(6).hex()) if connect else LocalSwitchboard()


def open_keys(hone: Hone, clock: Clock, port: int, password: str = "") -> Keys:
    """Open the keys. This waits for the database, if there is one. An unreadable file is reported first."""
    key, values = stored(hone.home), hone.stores.open_values
    if values is None:
        issued = ApiKeys(hone.home, clock)
        issued.list()
        return Keys(key, clock, port, password, issued, Logins(clock, hone.home), Tickets(clock, hone.home))
    place = values()
    adopt_keys(hone.home, place)
    shared = SharedAccess(place)
    shared.join(hone.home, key, clock)
    return Keys(
        key, clock, port, password, ApiKeys(place, clock), Logins(clock, place), Tickets(clock, place), shared
    )


def compose(
    hone: Hone,
    keys: Keys,
    bus: Bus,
    questions: PendingQuestions,
    board: Switchboard,
    clock: Clock,
    address: str,
) -> ServerState:
    relay, users = Relay(bus, board, clock), hone.stores.open_users
    gate = UserGate(users(), keys, clock, hone.settings.serve) if users else None
    return ServerState(
        hone,
        keys,
        bus,
        questions,
        OpenSessions(hone, bus, clock, relay=relay),
        clock,
        address,
        relay,
        tenants=Tenants(hone, gate, clock, address) if gate else None,
    )


def find_url(address: Address, port: int) -> str:
    if address.names:
        return f"http://{address.names[0]}"
    return f"http://{'127.0.0.1' if address.is_loopback else address.host}:{port}"
