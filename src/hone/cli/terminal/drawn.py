"""The chat at a terminal that can draw: an editor for the prompt, moving lines while a turn runs."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from hone.cli.paint import paint_for
from hone.cli.terminal.editor import Editor
from hone.cli.terminal.screen import Surroundings
from hone.core.events import Emit

if TYPE_CHECKING:
    from hone.cli.terminal.drawing import Drawing


class DrawnScreen:
    def __init__(self, surroundings: Surroundings) -> None:
        self._paint = paint_for(sys.stdout)
        self._editor = Editor(surroundings, ready=warm_up)
        self._drawing: Drawing | None = None

    async def read(self) -> str:
        return await self._editor.read()

    @asynccontextmanager
    async def working(self, *, verbose: bool = False) -> AsyncIterator[Emit]:
        from hone.cli.terminal.drawing import Drawing

        self._drawing = Drawing(colour=self._paint.colour, verbose=verbose)
        try:
            async with self._drawing.running() as emit:
                yield emit
        finally:
            self._drawing = None

    def tell(self, text: str) -> bool:
        return self._editor.tell(text)

    @contextmanager
    def pause(self) -> Iterator[None]:
        if self._drawing is None:
            yield
        else:
            with self._drawing.paused():
                yield


def warm_up() -> None:
    """What draws an answer is loaded while the user types."""
    asyncio.get_running_loop().run_in_executor(None, import_module, "hone.cli.terminal.drawing")
