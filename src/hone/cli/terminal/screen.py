"""The interface between chat and terminal, the choice of a full or a plain screen, and the status line."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from hone.cli.context import Interrupts
from hone.cli.render import paint_for, price, share
from hone.cli.terminal.plain import PlainScreen
from hone.core.events import Emit
from hone.core.loading import import_object
from hone.core.model import Usage, total
from hone.core.permissions import Mode
from hone.core.visible import one_line

EDITOR, DRAWING = "hone.cli.terminal.editor:DrawnScreen", "hone.cli.terminal.drawing:Drawing"
"""Loaded where a terminal can draw: the former with the first prompt, the latter while something is typed."""
LONGEST = 100
"""Letters of a model or folder that are shown, however wide the terminal."""


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


class TurnDrawing(Protocol):
    def running(self) -> AbstractAsyncContextManager[Emit]: ...

    def paused(self) -> AbstractContextManager[None]: ...


class Status(Struct, frozen=True):
    """`spent` has an entry for each model call of the session; `look` is when it is looked back over."""

    model: str
    folder: str
    spent: Sequence[Usage] = ()
    mode: Mode = Mode.AUTO
    look: datetime | None = None

    @property
    def marked_mode(self) -> str:
        """The mode, if it is not the usual one."""
        return "" if self.mode is Mode.AUTO else f"{self.mode} mode"


class Surroundings(Struct, frozen=True):
    """What a screen shows and keeps beside the conversation. The functions are asked whenever it is drawn."""

    home: Path
    folder: Callable[[], Path]
    status: Callable[[], Status]
    commands: Mapping[str, str]
    complain: Callable[[str], None]


def screen_for(surroundings: Surroundings, interrupts: Interrupts) -> Screen:
    if can_draw():
        drawn: Screen = import_object(EDITOR)(surroundings)
        return drawn
    return PlainScreen(interrupts, lambda: surroundings.status().marked_mode)


def working(interrupts: Interrupts) -> AbstractAsyncContextManager[Emit]:
    """Shows a turn where nobody will be asked for the next one."""
    return draw().running() if can_draw() else PlainScreen(interrupts).working()


def draw(*, verbose: bool = False) -> TurnDrawing:
    drawing: TurnDrawing = import_object(DRAWING)(colour=paint_for(sys.stdout).colour, verbose=verbose)
    return drawing


def can_draw(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the terminal moves its cursor where it is told to and knows the letters we draw with."""
    streams = (sys.stdin, sys.stdout)
    capable = environ.get("TERM", "dumb") not in ("", "dumb", "unknown")
    spelling = sys.stdout.encoding.lower().replace("-", "")
    return capable and all(each.isatty() for each in streams) and spelling == "utf8"


def status_line(status: Status, width: int) -> str:
    """As much of it as fits: the folder is the first to go, then when it looks back; the mode is the last."""
    model, figures = one_line(status.model, LONGEST), _figures(status.spent)
    later = [*figures, *_look(status.look)]
    first = [each for each in (status.marked_mode, model) if each]
    folder = place(status.folder)
    for rest in ([*later, folder], [*later, folder.rpartition("/")[2]], later, figures, figures[1:]):
        line = " · ".join((*first, *rest))
        if len(line) <= width:
            return line
    return one_line(" · ".join(first), max(width, 1))


def _figures(spent: Sequence[Usage]) -> list[str]:
    if not spent:
        return []
    last = spent[-1]
    return [f"{last.input:,} tokens ({share(last)} cached)", price(total(spent).cost)]


def _look(at: datetime | None) -> list[str]:
    return [f"looks back at {at.astimezone():%H:%M}"] if at else []


def place(folder: str) -> str:
    """As its owner would write it."""
    home = str(Path.home())
    inside = folder == home or folder.startswith(f"{home}/")
    return one_line(f"~{folder.removeprefix(home)}" if inside else folder, LONGEST)
