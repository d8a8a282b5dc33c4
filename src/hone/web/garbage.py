"""Look for garbage regularly. Connections that were cut leave objects that hold each other, and Python by
itself looks for them when they are a quarter of all that lives: in a server with many conversations these are
megabytes."""

import gc
import time
from collections.abc import Callable

from hone.core.clock import Clock

EVERY = 20.0
"""Seconds between two collections."""
SHARE = 0.002
"""The part of the time that they may take. A large heap is collected less often."""


class GarbageCollector:
    """`tidy` is called often, and collects when it is time."""

    def __init__(
        self,
        clock: Clock,
        collect: Callable[[], object] = gc.collect,
        used: Callable[[], float] = time.thread_time,
    ) -> None:
        self._clock = clock
        self._collect = collect
        self._used = used
        self._next = clock.monotonic() + EVERY

    def tidy(self) -> None:
        now = self._clock.monotonic()
        if now < self._next:
            return
        began = self._used()
        self._collect()
        self._next = now + max(EVERY, (self._used() - began) / SHARE)
