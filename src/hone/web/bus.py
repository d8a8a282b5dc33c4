"""Send signals to all listeners, and keep the latest ones for listeners that reconnect."""

import asyncio
import os
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

KEPT = 4_000
"""Signals that a channel remembers."""
BEHIND = 8_000
"""Signals that may wait for a slow listener before it is told to look anew."""
RESET = "reset"
"""What was missed is no longer there: read the state again."""
BEAT = "beat"
EVERYWHERE = ""
"""The channel of what concerns no single conversation."""


CLEAR = "clear"
"""What was said in a channel is said; only other servers are told."""

PassOn = Callable[[str, str, Mapping[str, Any]], None]


def _nobody(channel: str, kind: str, data: Mapping[str, Any]) -> None:
    """There is no other server."""


class Signal(Struct, frozen=True):
    """`number` grows over all channels of a bus."""

    number: int
    kind: str
    data: Mapping[str, Any]


@dataclass(slots=True)
class Channel:
    kept: deque[Signal] = field(default_factory=lambda: deque(maxlen=KEPT))
    listeners: set[asyncio.Queue[Signal | None]] = field(default_factory=set)
    forgotten: int = 0
    """The last number that is no longer kept."""


class Bus:
    """`name` tells this bus from the one an earlier process had."""

    def __init__(self) -> None:
        self.name = os.urandom(4).hex()
        self._number = 0
        self._channels: defaultdict[str, Channel] = defaultdict(Channel)
        self._closed = False
        self._pass_on: PassOn = _nobody
        self._interest: Callable[[], object] = lambda: None

    def follow(self, pass_on: PassOn, interest: Callable[[], object]) -> None:
        """Let somebody hear all that is said here, and that the listeners of a channel have changed."""
        self._pass_on, self._interest = pass_on, interest

    def publish(self, channel: str, kind: str, data: Mapping[str, Any], *, here: bool = False) -> None:
        """`here`: for the clients of this server only; it comes from another one."""
        if not here:
            self._pass_on(channel, kind, data)
        self._number += 1
        signal = Signal(self._number, kind, data)
        found = self._channels[channel]
        if len(found.kept) == KEPT:
            found.forgotten = found.kept[0].number
        found.kept.append(signal)
        for listener in found.listeners:
            self._hand(listener, signal)

    def clear(self, channel: str, *, here: bool = False) -> None:
        """What was said there is said; whoever comes now hears what follows."""
        if not here:
            self._pass_on(channel, CLEAR, {})
        found = self._channels.get(channel)
        if found:
            found.kept.clear()
            found.forgotten = self._number

    def drop(self, channel: str) -> None:
        """Nothing more is said there. Whoever listens is told so by the end."""
        found = self._channels.pop(channel, None)
        for listener in found.listeners if found else ():
            listener.put_nowait(None)

    def close(self) -> None:
        self._closed = True
        for channel in list(self._channels):
            self.drop(channel)

    def beat(self) -> None:
        """A sign of life for all who listen, so that a connection nobody is behind any more is noticed."""
        for channel in self._channels.values():
            for listener in channel.listeners:
                listener.put_nowait(Signal(self._number, BEAT, {}))

    @property
    def listened(self) -> frozenset[str]:
        """The channels that somebody listens to."""
        return frozenset(name for name, channel in self._channels.items() if channel.listeners)

    def kept(self, channel: str) -> Sequence[Signal]:
        """Return what a new listener of a channel would hear first."""
        found = self._channels.get(channel)
        return tuple(found.kept) if found else ()

    @property
    def now(self) -> str:
        """The mark of whoever has heard everything."""
        return self.mark(self._number)

    def mark(self, number: int) -> str:
        """What a listener names when it comes back."""
        return f"{self.name}-{number}"

    async def listen(self, channel: str, since: str = "") -> AsyncGenerator[Signal, None]:
        """What is kept and what follows; after a mark, what came after it. Ends when the bus closes."""
        if self._closed:
            return
        found = self._channels[channel]
        queue: asyncio.Queue[Signal | None] = asyncio.Queue()
        for missed in self._missed(found, since):
            queue.put_nowait(missed)
        found.listeners.add(queue)
        self._interest()
        try:
            while (signal := await queue.get()) is not None:
                yield signal
        finally:
            found.listeners.discard(queue)
            self._interest()
            if not (found.listeners or found.kept) and self._channels.get(channel) is found:
                del self._channels[channel]

    def _missed(self, channel: Channel, since: str) -> list[Signal]:
        if not since:
            return list(channel.kept)
        name, _, number = since.rpartition("-")
        known = int(number) if name == self.name and number.isascii() and number.isdigit() else -1
        if known < channel.forgotten:
            return [Signal(self._number, RESET, {}), *channel.kept]
        return [signal for signal in channel.kept if signal.number > known]

    def _hand(self, listener: asyncio.Queue[Signal | None], signal: Signal) -> None:
        if listener.qsize() >= BEHIND:
            while not listener.empty():
                listener.get_nowait()
            listener.put_nowait(Signal(signal.number, RESET, {}))
            return
        listener.put_nowait(signal)
