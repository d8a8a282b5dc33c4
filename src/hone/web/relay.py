"""Keep a server in step with the others on its store: pass events on to their clients, and do what they
request for its turns."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from hone.core.clock import Clock
from hone.core.errors import StoreError
from hone.core.switchboard import Inbox, Post, Switchboard, name_end
from hone.web.bus import CLEAR, EVERYWHERE, Bus

LOOK = 1.0
"""Seconds between two checks of what others left, if no signal came. A server with many users waits
longer."""
BATCH = 0.05
"""Seconds in which events for other servers are collected."""
LINGER = 30.0
"""Seconds for which the end of a turn is told to new listeners, unless another server continues."""
TIDY = 15
"""How many checks lie between two removals of what dead servers left."""


class Relay:
    """`bus` has the clients of this server, `board` the other servers."""

    def __init__(self, bus: Bus, board: Switchboard, clock: Clock, look: float = LOOK) -> None:
        self.board = board
        self._look = look
        self._bus = bus
        self._clock = clock
        self._listeners: dict[str, frozenset[str]] = {}
        self._out: list[Post] = []
        self._listened: frozenset[str] = frozenset()
        self._awaited: dict[str, set[asyncio.Event]] = {}
        self._turns: set[str] = set()
        self._ended: dict[str, float] = {}
        bus.follow(self._pass_on, board.wake)

    async def begin(self, session: str) -> str:
        """Announce that a turn begins here. Return the mode that was chosen for it elsewhere."""
        start = await self.board.begin(session)
        self._turns.add(session)
        self._ended.pop(session, None)
        self._listeners[session] = start.listeners
        return start.mode

    async def end(self, session: str, told: str = "") -> None:
        """End a turn. Call this when its claim is free again: waiting servers try at once. `told` is the mode
        that it began with, if that was chosen elsewhere."""
        self._turns.discard(session)
        self._ended[session] = self._clock.monotonic() + LINGER
        with suppress(StoreError):  # without its claim the row means nothing
            if told:
                await self.board.note_told(session, told)
            await self.board.end(session)

    async def until_free(self, session: str) -> None:
        """Wait until a turn elsewhere may have ended."""
        ended = asyncio.Event()
        self._awaited.setdefault(session, set()).add(ended)
        if name_end(session) not in self._listened:
            self.board.wake()
        try:
            with suppress(TimeoutError):
                async with self._clock.timeout(LOOK):
                    await ended.wait()
        finally:
            self._awaited[session].discard(ended)
            if not self._awaited[session]:
                del self._awaited[session]

    def _pass_on(self, channel: str, kind: str, data: Mapping[str, Any]) -> None:
        """Pass on a signal. Called with every signal here."""
        for server in self._listeners.get(channel, ()):
            self._out.append(Post(server, channel, kind, msgspec.json.encode(data).decode()))
        if self._out:
            self.board.wake()

    async def run(self, act: Callable[[Inbox], None], renew: Callable[[], Awaitable[None]]) -> None:
        """Run the relay. `act` does what others request for the turns here; `renew` repeats what a database
        crash may have lost."""
        looks, broken = 0, False
        while True:
            try:
                await self._step(act)
                looks = (looks + 1) % TIDY
                if not looks:
                    await self.board.tidy()
                    await renew()
                    self._listened = frozenset()
                broken = False
            except StoreError:  # undelivered events are gone: their listeners reload
                broken = True
                self._out, self._listened = [], frozenset()
                self._listeners = dict.fromkeys(self._listeners, frozenset())
            await (self._clock.sleep(LOOK) if broken else self.board.stir(self._look))
            if self._out:
                await self._clock.sleep(BATCH)

    async def _step(self, act: Callable[[Inbox], None]) -> None:
        listened = frozenset({*self._bus.listened, *map(name_end, self._awaited)})
        if listened != self._listened:
            await self.board.listen(listened)
            self._listened = listened
        if self._out:
            out, self._out = self._out, []
            await self.board.send(out)
        self._forget_ended()
        inbox = await self.board.receive(self._turns, (EVERYWHERE, *self._turns, *self._ended))
        for post in inbox.posts:
            self._hear(post)
        act(inbox)
        self._welcome(inbox)
        for events in self._awaited.values():
            for event in events:
                event.set()

    def _forget_ended(self) -> None:
        now = self._clock.monotonic()
        for session in [each for each, until in self._ended.items() if until <= now]:
            del self._ended[session]
            self._listeners.pop(session, None)

    def _welcome(self, inbox: Inbox) -> None:
        """Tell new listeners what was said in a turn so far."""
        for channel in (EVERYWHERE, *self._turns, *self._ended):
            found = inbox.listeners.get(channel, frozenset())
            new = found - self._listeners.get(channel, frozenset())
            self._listeners[channel] = found
            said = self._bus.kept(channel) if channel != EVERYWHERE else ()
            for server in new if said else ():
                self._out.append(Post(server, channel, CLEAR, "{}"))
                for each in said:
                    data = msgspec.json.encode(each.data).decode()
                    self._out.append(Post(server, channel, each.kind, data))
        if self._out:
            self.board.wake()

    def _hear(self, post: Post) -> None:
        if post.kind == CLEAR:
            self._bus.clear(post.channel, here=True)
        else:
            self._bus.publish(post.channel, post.kind, msgspec.json.decode(post.data), here=True)
