"""The chat on a limited terminal: read lines, print text as it arrives."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from functools import partial

from hone.cli.context import Interrupts
from hone.cli.output import columns, fit_lines
from hone.cli.render import Renderer, paint_for
from hone.cli.terminal.ahead import Listening, TypeAhead
from hone.cli.terminal.keyboard import LEAVING, pressed
from hone.core.events import Emit, Event
from hone.core.visible import visible

PROMPT, MORE = "> ", ". "


class PlainScreen:
    """Uses the terminal's own line editing and gets complete lines. `mark` returns the text of the prompt."""

    def __init__(self, interrupts: Interrupts, mark: Callable[[], str] = str) -> None:
        paint = paint_for(sys.stdout)
        self._mark = mark
        self._interrupts = interrupts
        self._renderer = Renderer(paint, fit_lines)
        self._typed = ""
        self._held: list[Event] | None = None
        self._listening: Listening | None = None

    async def read(self, draft: str = "") -> str:
        """Read a message. Ctrl-C drops what was typed so far. The terminal cannot be given a draft, so it is
        shown."""
        if draft:
            print(f"Your message was: {visible(draft)}")
        while True:
            reading = asyncio.ensure_future(self._message())
            with self._interrupts.heed(reading.cancel):
                await asyncio.wait([reading])
            if not reading.cancelled():
                return reading.result()
            print(f"\n{LEAVING}")

    async def _message(self) -> str:
        """Join lines: a line that ends in a backslash continues with the next one."""
        mark = self._mark()
        lines = [await self._line(f"({mark}) {PROMPT}" if mark else PROMPT)]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1].removesuffix("\\")
            lines.append(await self._line(MORE))
        return "\n".join(lines)

    async def _line(self, prompt: str) -> str:
        print(prompt, end="", flush=True)
        while "\n" not in self._typed:
            try:
                self._typed += await pressed()
            except EOFError:
                print()
                raise
        line, _, self._typed = self._typed.partition("\n")
        return line

    @asynccontextmanager
    async def working(self, *, verbose: bool = False, ahead: TypeAhead | None = None) -> AsyncIterator[Emit]:
        """Show a turn. A line entered in the meantime is heard at once, and that is reported. The terminal
        itself shows what is typed."""
        if ahead is None:
            yield self._show
            return
        self._listening = Listening(ahead, partial(_acknowledge, ahead))
        try:
            with self._listening.reading():
                yield self._show
        finally:
            self._listening = None

    def _show(self, event: Event) -> None:
        if self._held is not None:
            self._held.append(event)
            return
        shown = self._renderer.show(event)
        print(shown.answer + shown.aside, end="", flush=True)

    def tell(self, text: str) -> bool:
        """Return False: the terminal itself edits the line, and only it knows the text."""
        return False

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Show what happens during a question after it."""
        print(self._renderer.pause(), end="")
        self._held = []
        try:
            with self._listening.paused() if self._listening else nullcontext():
                yield
        finally:
            held, self._held = self._held, None
            for event in held:
                self._show(event)


def _acknowledge(ahead: TypeAhead) -> None:
    *_, last = ahead.lines(columns()) or [""]
    if last.startswith("↳"):
        print(last, flush=True)
