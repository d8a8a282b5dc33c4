"""Give memory back regularly. Connections that were cut leave objects that hold each other, and Python by
itself looks for them when they are a quarter of all that lives: in a server with many conversations these are
megabytes. What is freed then stays with the C library until it is told to return it."""

import ctypes
import gc
import time
from collections.abc import Callable
from contextlib import suppress

from hone.core.clock import Clock

EVERY = 10.0
"""Seconds between two collections."""
SHARE = 0.01
"""The part of the time that they may take. A large heap is collected less often."""


def release() -> None:
    """Collect garbage, and return free pages to the system where the C library can do that."""
    gc.collect()
    with suppress(OSError, AttributeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


class GarbageCollector:
    """`tidy` is called often, and collects when it is time."""

    def __init__(
        self,
        clock: Clock,
        collect: Callable[[], object] = release,
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
