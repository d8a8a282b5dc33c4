"""Draw a turn while it runs, frame by frame. Drawing pauses while a question is open."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from typing import TextIO

from msgspec import Struct
from rich.color import ColorSystem
from rich.console import Console
from rich.text import Text

from hone.cli.terminal.ahead import Listening, TypeAhead
from hone.cli.terminal.keyboard import unechoed
from hone.cli.terminal.view import Frame, View
from hone.core.events import Emit

FRAME, SHARE = 0.08, 5
"""Seconds between frames, but at least this many times what drawing took."""
# No cursor among the moving lines. Keys wait for the prompt, and text pasted in the meantime stays one text.
BEGIN, END = "\x1b[?25l\x1b[?2004h", "\x1b[?2004l\x1b[?25h"
# Terminals that support it show the whole update at once; the others ignore it.
TOGETHER, SHOWN = "\x1b[?2026h", "\x1b[?2026l"
ERASE_BELOW = "\x1b[J"


class Drawing:
    """`ahead` gets the keys typed during a turn; without it, they wait for the prompt."""

    def __init__(self, *, colour: bool, verbose: bool = False, ahead: TypeAhead | None = None) -> None:
        self._view = View(terminal_size, verbose=verbose, typed=ahead.lines if ahead else None)
        self._live = Live(sys.stdout, terminal_size, colour=colour)
        self._still = False
        self._listening = Listening(ahead, self._draw) if ahead else None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Emit]:
        reading = self._listening.reading() if self._listening else nullcontext()
        with unechoed(signals=True), _without_cursor(), reading:
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
            self._draw()
            took = time.monotonic() - begun

    def _draw(self) -> None:
        if not self._still:
            self._live.draw(self._view.frame())

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop drawing; what happens in the meantime is drawn afterwards."""
        self._live.draw(self._view.close())
        self._still = True
        try:
            with self._listening.paused() if self._listening else nullcontext():
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


class LiveLine(Struct, frozen=True):
    """A line as written, and the cells that it takes."""

    text: str = ""
    cells: int = 0


class Live:
    """Draws finished lines once and live ones over each other, each frame in one write. The cursor is at the
    end of the last live line; without one, on an empty line. Unchanged lines are not drawn again."""

    def __init__(self, stream: TextIO, size: Callable[[], os.terminal_size], *, colour: bool) -> None:
        self._stream = stream
        self._size = size
        self._colours = ColorSystem.STANDARD if colour else None
        self._console = Console(color_system=None, legacy_windows=False, _environ={})
        self._old: Sequence[LiveLine] = [LiveLine()]
        self._columns = size().columns

    def draw(self, frame: Frame) -> None:
        live = [self._painted(line) for line in frame.live] or [LiveLine()]
        new = [*map(self._painted, frame.done), *live]
        columns = self._size().columns
        if new != self._old or columns != self._columns:
            kept = _alike(self._old, new) if columns == self._columns else 0
            text = _back(self._old[kept:], columns) + "\n".join(line.text for line in new[kept:])
            self._stream.write(f"{TOGETHER}{text}{SHOWN}")
            self._stream.flush()
        self._old, self._columns = live, columns

    def _painted(self, line: Text) -> LiveLine:
        if self._colours is None:
            return LiveLine(line.plain, line.cell_len)
        painted = (
            segment.style.render(segment.text, color_system=self._colours) if segment.style else segment.text
            for segment in Text.assemble(line).render(self._console)
        )
        return LiveLine("".join(painted), line.cell_len)


def _alike(old: Sequence[LiveLine], new: Sequence[LiveLine]) -> int:
    """Return how many lines both begin with; never all of them, since the cursor must end up behind the
    last."""
    most = min(len(old), len(new)) - 1
    return next((at for at in range(most) if old[at] != new[at]), most)


def _back(lines: Sequence[LiveLine], columns: int) -> str:
    """Return the sequence to the start of these last lines. A narrowed terminal has wrapped them."""
    rows = sum(max(1, -(-line.cells // columns)) for line in lines)
    up = f"\x1b[{rows - 1}A" if rows > 1 else ""
    return f"\r{up}{ERASE_BELOW}"


def terminal_size() -> os.terminal_size:
    """Return the size of the terminal itself, ignoring the environment."""
    try:
        found = os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        found = os.terminal_size((0, 0))
    return os.terminal_size((found.columns or 80, found.lines or 24))
