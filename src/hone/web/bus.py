"""Send signals to all listeners, and keep the latest ones for listeners that reconnect."""

import asyncio
import os
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

KEPT = 4_000
"""How many signals a channel remembers."""
BEHIND = 8_000
"""How many signals may wait for a slow listener before it has to reload."""
RESET = "reset"
"""The missed signals are gone: reload the state."""
BEAT = "beat"
EVERYWHERE = ""
"""The channel of anything that concerns no single conversation."""


CLEAR = "clear"
"""Signals of a channel are over; only other servers hear of this."""

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
    """The number of the last signal that is no longer kept."""


class Bus:
    """`name` distinguishes this bus from that of an earlier process."""

    def __init__(self) -> None:
        self.name = os.urandom(4).hex()
        self._number = 0
        self._channels: defaultdict[str, Channel] = defaultdict(Channel)
        self._closed = False
        self._pass_on: PassOn = _nobody
        self._interest: Callable[[], object] = lambda: None

    def follow(self, pass_on: PassOn, interest: Callable[[], object]) -> None:
        """Let a follower hear every signal here, and when the listeners of a channel change."""
        self._pass_on, self._interest = pass_on, interest

    def publish(self, channel: str, kind: str, data: Mapping[str, Any], *, here: bool = False) -> None:
        """Publish a signal. `here`: only for this server's clients, since it comes from another server."""
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
        """Forget a channel's signals, so that new listeners hear only what follows."""
        if not here:
            self._pass_on(channel, CLEAR, {})
        found = self._channels.get(channel)
        if found:
            found.kept.clear()
            found.forgotten = self._number

    def drop(self, channel: str) -> None:
        """Close a channel. Its listeners are told by the end of the stream."""
        found = self._channels.pop(channel, None)
        for listener in found.listeners if found else ():
            listener.put_nowait(None)

    def close(self) -> None:
        self._closed = True
        for channel in list(self._channels):
            self.drop(channel)

    def beat(self) -> None:
        """Send a sign of life to all listeners, so that dead connections are noticed."""
        for channel in self._channels.values():
            for listener in channel.listeners:
                listener.put_nowait(Signal(self._number, BEAT, {}))

    @property
    def listened(self) -> frozenset[str]:
        """The channels with listeners."""
        return frozenset(name for name, channel in self._channels.items() if channel.listeners)

    def kept(self, channel: str) -> Sequence[Signal]:
        """Return what a new listener of a channel would hear first."""
        found = self._channels.get(channel)
        return tuple(found.kept) if found else ()

    @property
    def now(self) -> str:
        """The mark of a listener that has heard everything."""
        return self.mark(self._number)

    def mark(self, number: int) -> str:
        """Return the mark that a listener sends when it reconnects."""
        return f"{self.name}-{number}"

    async def listen(self, channel: str, since: str = "") -> AsyncGenerator[Signal, None]:
        """Yield kept and new signals; after a mark, only later ones. End when the bus closes."""
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
