"""Ctrl-C: it goes to whoever heeds it, and ends the program only where nobody has taken it over."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

Act = Callable[[], object]


class Interrupts:
    """While it is entered, Ctrl-C does what the innermost `heed` says, and nothing where there is none."""

    def __init__(self) -> None:
        self._steps: list[Act] = []

    def __enter__(self) -> Self:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self.press)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)

    def press(self) -> None:
        if self._steps:
            (self._steps.pop(0) if len(self._steps) > 1 else self._steps[0])()

    @contextmanager
    def heed(self, *steps: Act) -> Iterator[None]:
        """The first press does the first step, and so on; the last one repeats."""
        outer, self._steps = self._steps, list(steps)
        try:
            yield
        finally:
            self._steps = outer
