"""Free memory regularly. Closed connections leave objects that refer to each other, and Python collects them
only when they are a quarter of all live ones: in a server with many conversations these are megabytes. The C
library keeps freed memory until it is told to return it."""

import ctypes
import gc
import time
from collections.abc import Callable
from contextlib import suppress

from hone.core.clock import Clock

EVERY = 10.0
"""Seconds between two collections."""
SHARE = 0.01
"""The share of time that they may take. A large heap is collected less often."""


def release() -> None:
    """Collect garbage, and return free pages to the system where the C library can do that."""
    gc.collect()
    with suppress(OSError, AttributeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


class GarbageCollector:
    """Call `tidy` often: it collects when it is time."""

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
