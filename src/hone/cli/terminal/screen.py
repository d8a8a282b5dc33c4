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
from hone.cli.render import paint_for, price
from hone.cli.terminal.ahead import TypeAhead
from hone.cli.terminal.plain import PlainScreen
from hone.core.events import Emit
from hone.core.loading import import_object
from hone.core.model import Usage, total
from hone.core.permissions import Mode
from hone.core.visible import one_line

EDITOR, DRAWING = "hone.cli.terminal.editor:DrawnScreen", "hone.cli.terminal.drawing:Drawing"
"""Imported if a terminal can draw: the first with the first prompt, the second while something is typed."""
SHORT = 12
"""The letters of a folder's name to show if there is little room."""
LONGEST = 100
"""The most letters of a model or folder to show, however wide the terminal."""


class Screen(Protocol):
    async def read(self, draft: str = "") -> str:
        """Return the next message, which begins as a draft. Raises EOFError if there will be none."""
        ...

    def working(
        self, *, verbose: bool = False, ahead: TypeAhead | None = None
    ) -> AbstractAsyncContextManager[Emit]:
        """Show what happens until the context ends. Other output waits for that. `ahead` gets the keys typed
        in between, if keys can be read."""
        ...

    def pause(self) -> AbstractContextManager[None]:
        """Stop drawing, and show afterwards what has happened."""
        ...

    def tell(self, text: str) -> bool:
        """Print lines above the waiting prompt, whatever is being typed there. Return False if that is
        impossible."""
        ...


class TurnDrawing(Protocol):
    def running(self) -> AbstractAsyncContextManager[Emit]: ...

    def paused(self) -> AbstractContextManager[None]: ...


class Status(Struct, frozen=True):
    """`spent` has an entry for each model call of the session, `look` is when it is looked back over and
    `filled` the share of the context window in use, if known."""

    model: str
    folder: str
    spent: Sequence[Usage] = ()
    mode: Mode = Mode.AUTO
    look: datetime | None = None
    filled: float | None = None

    @property
    def marked_mode(self) -> str:
        """Return the mode, if it is not the usual one."""
        return "" if self.mode is Mode.AUTO else f"{self.mode} mode"


class Surroundings(Struct, frozen=True):
    """What a screen shows and keeps besides the conversation. It calls the functions whenever it draws."""

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
    """Show a turn when nobody will be asked for the next one."""
    return draw().running() if can_draw() else PlainScreen(interrupts).working()


def draw(*, verbose: bool = False, ahead: TypeAhead | None = None) -> TurnDrawing:
    colour = paint_for(sys.stdout).colour
    drawing: TurnDrawing = import_object(DRAWING)(colour=colour, verbose=verbose, ahead=ahead)
    return drawing


def can_draw(environ: Mapping[str, str] = os.environ) -> bool:
    """Tell whether the terminal can move its cursor and knows the characters we draw with."""
    streams = (sys.stdin, sys.stdout)
    capable = environ.get("TERM", "dumb") not in ("", "dumb", "unknown")
    spelling = sys.stdout.encoding.lower().replace("-", "")
    return capable and all(each.isatty() for each in streams) and spelling == "utf8"


def status_line(status: Status, width: int) -> str:
    """Return as much as fits: the folder is shortened first, then parts are dropped from the right. The mode
    stays longest, unless it is the usual one."""
    model, mode, folder = one_line(status.model, LONGEST), f"{status.mode} mode", place(status.folder)
    rest = [*_figures(status), *_look(status.look)]
    name = folder.rpartition("/")[2] or folder
    short = one_line(name, SHORT)
    shown = [rest[:count] for count in range(len(rest), -1, -1)]
    candidates = [(model, where, mode, *parts) for parts in shown for where in (folder, name, short)]
    candidates += [(model, mode)] if status.marked_mode else [(model, short), (model,)]
    for parts in candidates:
        line = " · ".join(parts)
        if len(line) <= width:
            return line
    return one_line(" · ".join(filter(None, (status.marked_mode, model))), max(width, 1))


def _figures(status: Status) -> list[str]:
    """Return how full the context window is, and what was spent."""
    filled = [] if status.filled is None else [f"{100 * status.filled:.0f}% of context"]
    return [*filled, price(total(status.spent).cost)] if status.spent else []


def _look(at: datetime | None) -> list[str]:
    return [f"review at {at.astimezone():%H:%M}"] if at else []


def place(folder: str) -> str:
    """Return a folder as its owner would write it."""
    home = str(Path.home())
    inside = folder == home or folder.startswith(f"{home}/")
    return one_line(f"~{folder.removeprefix(home)}" if inside else folder, LONGEST)
