"""One connection to a server: the handshake of either era, requests with deadlines and progress, lists."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any

from hone.core.clock import Clock
from hone.core.errors import HoneError
from hone.features.mcp.client.wire import (
    MODERN,
    ROUNDS,
    UNAUTHORIZED,
    ProtocolError,
    ServerFacts,
    envelop,
    initialize_params,
    names_handshake,
    read_discovered,
    read_initialized,
    read_object,
)
from hone.rpc.messages import Call, ConnectionLost, Id, RpcError
from hone.rpc.peer import MessageChannel, Peer, PeerLimits, unknown_method

PROBE = 10.0
"""Seconds that a server gets to say whether it needs a handshake."""
PATIENCE = 60.0
"""Seconds for a handshake: a program may have to be downloaded first."""
LONGEST = 3_600.0
"""Seconds for a call, however much progress it reports."""
MOST_PAGES, MOST_ITEMS = 100, 1_000
WAIT = 0.05
"""Seconds before a request is repeated for a server that only needs time."""

Elicit = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""Asks the owner what a server wants to know; returns the result of elicitation/create."""
Progress = Callable[[str], None]
Changed = Callable[[str], None]
"""Hears that a list has changed: tools, resources or prompts."""


class TimedOut(HoneError):
    """A server did not answer in time."""


class ServerConnection:
    """A connected server. `run` must run beside it: use `connect`."""

    def __init__(self, channel: MessageChannel, clock: Clock, changed: Changed) -> None:
        self.facts = ServerFacts(MODERN)
        self._clock = clock
        self._changed = changed
        self._channel = channel
        self._peer = Peer(channel, self, cancel=_cancelled, limits=PeerLimits(requests=16))
        self._running: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._tokens = count(1)
        self._hearing: dict[Id, Progress] = {}
        self._asking: list[Elicit] = []

    @property
    def channel(self) -> MessageChannel:
        return self._channel

    @property
    def is_open(self) -> bool:
        return self._running is not None and not self._peer.is_over

    async def open(self, version: str = "") -> None:
        """Find out which version the server speaks, trying `version` first. Raises HoneError; then it is
        closed again."""
        self._running = asyncio.create_task(self._peer.run())
        try:
            await self._negotiate(version)
        except BaseException:
            await self.close()
            raise
        if self.facts.is_modern and self.facts.notifies:
            self._listening = asyncio.create_task(self._listen())

    async def close(self) -> None:
        """Close the connection, and return when the server is gone. A server that ends voluntarily is not
        interrupted, which would leave something behind."""
        if self._listening:
            self._listening.cancel()
        if self._running and not self._peer.is_over:
            self._running.cancel()
        for task in filter(None, (self._listening, self._running)):
            with suppress(asyncio.CancelledError, HoneError):
                await task
        self._listening = None

    async def request(
        self, method: str, params: Mapping[str, Any], timeout: float = PATIENCE, heard: Progress | None = None
    ) -> dict[str, Any]:
        """Return the result. Progress extends the deadline. Raises RpcError, TimedOut, ConnectionLost."""
        token = next(self._tokens)
        end = self._clock.monotonic() + LONGEST
        asked = {**params, "_meta": {**params.get("_meta", {}), "progressToken": token}} if heard else params
        if self.facts.is_modern:
            asked = envelop(asked)
        try:
            async with self._clock.timeout(timeout) as deadline:

                def hear(told: str) -> None:
                    left = min(timeout, end - self._clock.monotonic())
                    if not deadline.expired():
                        deadline.reschedule(asyncio.get_running_loop().time() + left)
                    if heard:
                        heard(told)

                self._hearing[token] = hear
                return read_object(await self._peer.request(method, asked))
        except TimeoutError:
            raise TimedOut(f"The server did not answer {method} within {timeout:g} seconds.") from None
        finally:
            self._hearing.pop(token, None)

    async def interact(
        self, method: str, params: Mapping[str, Any], timeout: float, elicit: Elicit, heard: Progress | None
    ) -> dict[str, Any]:
        """Make a request during which the server may ask the owner something, in either era's way."""
        async with self._asked_by(elicit):
            result = await self.request(method, params, timeout, heard)
            rounds = 0
            while result.get("resultType") == "input_required":
                rounds += 1
                if rounds > ROUNDS:
                    raise ProtocolError("The server asks for input without end.")
                answers = await self._provide(result.get("inputRequests"), elicit)
                if not answers:
                    await self._clock.sleep(WAIT)
                more: dict[str, Any] = {"inputResponses": answers} if answers else {}
                if isinstance(state := result.get("requestState"), str):
                    more["requestState"] = state
                result = await self.request(method, {**params, **more}, timeout, heard)
        return result

    async def list_all(self, kind: str) -> tuple[list[dict[str, Any]], float]:
        """Return everything of a kind, and for how many seconds the server says it is valid; 0: it did not
        say. Raises HoneError, also for endless lists."""
        items: list[dict[str, Any]] = []
        cursor, ttl = "", 0.0
        for _ in range(MOST_PAGES):
            page = await self.request(f"{kind}/list", {"cursor": cursor} if cursor else {})
            found = page.get(kind)
            items += [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
            if len(items) > MOST_ITEMS:
                break
            said = page.get("ttlMs")
            ttl = said / 1000 if isinstance(said, int | float) and not isinstance(said, bool) else 0.0
            following = page.get("nextCursor")
            if not isinstance(following, str) or not following or following == cursor:
                return items, max(0.0, ttl)
            cursor = following
        raise ProtocolError(f"The server lists more than {MOST_ITEMS:,} {kind}.")

    async def answer(self, call: Call) -> object:
        """Answer the server's requests: whether Hone is there, and what it wants from the owner."""
        if call.method == "ping":
            return {}
        if call.method == "elicitation/create" and self._asking:
            return await self._asking[-1](read_object(call.params))
        raise unknown_method(call.method)

    async def hear(self, call: Call) -> None:
        if call.method == "notifications/progress":
            told = read_object(call.params)
            token = told.get("progressToken")
            if isinstance(token, int | str) and (hear := self._hearing.get(token)):
                hear(_describe(told))
        elif call.method.startswith("notifications/") and call.method.endswith("/list_changed"):
            self._changed(call.method.split("/")[1])

    async def _negotiate(self, version: str) -> None:
        if version and version != MODERN:
            await self._initialize()
            return
        try:
            async with self._clock.timeout(PROBE):
                found = await self._peer.request("server/discover", envelop({}))
        except TimeoutError:
            await self._initialize()
        except RpcError as error:
            if error.code == UNAUTHORIZED:
                raise
            if not names_handshake(error):
                raise ProtocolError(f"The server speaks no version that Hone speaks: {error}") from None
            await self._initialize()
        else:
            facts = read_discovered(found)
            if facts is None:
                await self._initialize()
            else:
                self.facts = facts

    async def _initialize(self) -> None:
        try:
            async with self._clock.timeout(PATIENCE):
                found = await self._peer.request("initialize", initialize_params())
        except TimeoutError:
            raise TimedOut(f"The server did not answer within {PATIENCE:g} seconds.") from None
        self.facts = read_initialized(found)
        await self._peer.notify("notifications/initialized", {})

    async def _listen(self) -> None:
        """Subscribe to changes of lists. A server that does not support that is asked again when it is
        used."""
        wanted = {f"{kind}ListChanged": True for kind in sorted(self.facts.notifies)}
        with suppress(RpcError, ConnectionLost):
            await self._peer.request("subscriptions/listen", envelop({"notifications": wanted}))

    @asynccontextmanager
    async def _asked_by(self, elicit: Elicit) -> AsyncIterator[None]:
        self._asking.append(elicit)
        try:
            yield
        finally:
            self._asking.remove(elicit)

    async def _provide(self, wanted: object, elicit: Elicit) -> dict[str, Any]:
        """Return the answers that a result requires. Raises ProtocolError for what Hone does not provide: its
        model, or the owner's folders."""
        answers: dict[str, Any] = {}
        for name, each in wanted.items() if isinstance(wanted, dict) else ():
            if not isinstance(each, dict) or each.get("method") != "elicitation/create":
                raise ProtocolError("The server asks for something that Hone does not give.")
            params = each.get("params")
            answers[name] = await elicit(params if isinstance(params, dict) else {})
        return answers


def _cancelled(id: Id) -> tuple[str, object]:
    return "notifications/cancelled", {"requestId": id, "reason": "The user stopped it, or it took too long."}


def _describe(told: Mapping[str, Any]) -> str:
    done, total, message = told.get("progress"), told.get("total"), told.get("message")
    figure = _figure(done)
    if figure and (whole := _figure(total)):
        figure += f" of {whole}"
    return " ".join(filter(None, (figure, message if isinstance(message, str) else "")))


def _figure(value: object) -> str:
    """Return a number as people write it; nothing for anything else, or for hundreds of digits."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15
    return f"{value:g}" if is_number else ""
