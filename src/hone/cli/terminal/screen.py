"""What a chat needs of a terminal, and which of the two kinds a terminal gets."""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import Protocol

from hone.cli.interrupt import Interrupts
from hone.cli.paint import paint_for
from hone.cli.terminal.status import Status
from hone.core.events import Emit
from hone.core.value import dataclass

LEAVING = "Ctrl-D or /quit leaves."


class Screen(Protocol):
    async def read(self) -> str:
        """The next message. Raises EOFError when there will be none."""
        ...

    def working(self, *, verbose: bool = False) -> AbstractAsyncContextManager[Emit]:
        """Shows what happens until it is left. Whatever else is printed waits for that."""
        ...

    def pause(self) -> AbstractContextManager[None]:
        """Nothing moves, and what happens is shown afterwards."""
        ...

    def tell(self, text: str) -> bool:
        """Puts lines above the prompt that waits, whatever is being typed there. False if it cannot."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a screen shows and keeps beside the conversation. The functions are asked whenever it is drawn."""

    home: Path
    folder: Callable[[], Path]
    status: Callable[[], Status]
    commands: Mapping[str, str]
    complain: Callable[[str], None]


def screen_for(surroundings: Surroundings, interrupts: Interrupts) -> Screen:
    if can_draw():
        from hone.cli.terminal.drawn import DrawnScreen

        return DrawnScreen(surroundings)
    from hone.cli.terminal.plain import PlainScreen

    return PlainScreen(interrupts)


def working(interrupts: Interrupts) -> AbstractAsyncContextManager[Emit]:
    """Shows a turn where nobody will be asked for the next one."""
    if can_draw():
        from hone.cli.terminal.drawing import Drawing

        return Drawing(colour=paint_for(sys.stdout).colour).running()
    from hone.cli.terminal.plain import PlainScreen

    return PlainScreen(interrupts).working()


def can_draw(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the terminal moves its cursor where it is told to and knows the letters we draw with."""
    streams = (sys.stdin, sys.stdout)
    capable = environ.get("TERM", "dumb") not in ("", "dumb", "unknown")
    spelling = sys.stdout.encoding.lower().replace("-", "")
    return capable and all(each.isatty() for each in streams) and spelling == "utf8"
