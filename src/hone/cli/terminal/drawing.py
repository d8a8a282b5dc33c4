"""A turn drawn while it runs: frame after frame, and still while a question is asked."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from hone.cli.terminal.keyboard import unechoed
from hone.cli.terminal.live import Live, terminal_size
from hone.cli.terminal.view import View
from hone.core.events import Emit

FRAME, SHARE = 0.08, 5
"""Seconds from one frame to the next, and at least so many times what drawing took."""
# No cursor among the moving lines. Keys wait for the prompt, and what is pasted meanwhile stays one text.
BEGIN, END = "\x1b[?25l\x1b[?2004h", "\x1b[?2004l\x1b[?25h"


class Drawing:
    def __init__(self, *, colour: bool, verbose: bool = False) -> None:
        self._view = View(terminal_size, verbose=verbose)
        self._live = Live(sys.stdout, terminal_size, colour=colour)
        self._still = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Emit]:
        with unechoed(signals=True), _without_cursor():
            frames = asyncio.create_task(self._frames())
            try:
                yield self._view.show
            finally:
                frames.cancel()
                await asyncio.wait([frames])
                self._live.draw(self._view.close())
        if not frames.cancelled():
            frames.result()

    async def _frames(self) -> None:
        took = 0.0
        while True:
            await asyncio.sleep(max(FRAME, SHARE * took))
            begun = time.monotonic()
            if not self._still:
                self._live.draw(self._view.frame())
            took = time.monotonic() - begun

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing moves; what happens meanwhile is drawn afterwards."""
        self._live.draw(self._view.close())
        self._still = True
        try:
            yield
        finally:
            self._still = False


@contextmanager
def _without_cursor() -> Iterator[None]:
    sys.stdout.write(BEGIN)
    try:
        yield
    finally:
        sys.stdout.write(END)
        sys.stdout.flush()
