"""Choose one row of a list: with the arrow keys, by typing a part of it, or by its number."""

import sys
from collections.abc import Sequence

from rich.style import Style
from rich.text import Text

from hone.cli.render import paint_for
from hone.cli.terminal.drawing import Live, terminal_size
from hone.cli.terminal.keyboard import CTRL_C, forget_typed, line, pressed, split_keys, unechoed
from hone.cli.terminal.markdown import DIM
from hone.cli.terminal.screen import can_draw
from hone.cli.terminal.view import Frame, fit

UP, DOWN = ("\x1b[A", "\x1bOA", "\x10"), ("\x1b[B", "\x1bOB", "\x0e")
ERASE = ("\x7f", "\x08")
LEAVE = ("\x1b", CTRL_C, "\x04")
NONE = -1
HOW = "↑ ↓ and Enter choose · typing searches · Esc leaves"
CHOSEN = Style(bold=True)
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


class Picker:
    """The visible part of a list, and the marked row. `press` a key: the result is the number of the chosen
    row, NONE, or None while nothing is decided."""

    def __init__(self, rows: Sequence[str]) -> None:
        self._rows = rows
        self._search = ""
        self._at = 0

    @property
    def fitting(self) -> list[int]:
        """The rows that contain all typed words."""
        words = self._search.lower().split()
        return [at for at, row in enumerate(self._rows) if all(word in row.lower() for word in words)]

    def press(self, key: str) -> int | None:
        found = self.fitting
        if key in LEAVE:
            return NONE
        if key in ("\r", "\n"):
            return found[self._at] if found else None
        if key in UP:
            self._at = max(0, self._at - 1)
        elif key in DOWN:
            self._at = max(0, min(len(found) - 1, self._at + 1))
        elif key in ERASE:
            self._search, self._at = self._search[:-1], 0
        elif key.isprintable():
            self._search, self._at = self._search + key, 0
        return None

    def lines(self, title: str, width: int, height: int) -> list[Text]:
        """Return what to draw: the title, as many rows as fit around the marked one, and the keys."""
        found = self.fitting
        room = max(1, height - 4)
        first = max(0, min(self._at - room // 2, len(found) - room))
        shown = found[first : first + room]
        drawn = [Text.assemble((f"? {title}", CHOSEN), f" {self._search}" if self._search else "")]
        for place, at in enumerate(shown, first):
            chosen = place == self._at
            drawn.append(Text(f"{'>' if chosen else ' '} {self._rows[at]}", CHOSEN if chosen else ""))
        if not found:
            drawn.append(Text("  (nothing matches)", DIM))
        hidden = len(found) - len(shown)
        drawn.append(Text(f"  {HOW}{f' · {hidden:,} more' if hidden else ''}", DIM))
        return [fit(each, width) for each in drawn]


async def pick(title: str, rows: Sequence[str]) -> int | None:
    """Return the number of the row that the user chose, or None. Keys pressed before do not count."""
    if not can_draw():
        return await _pick_number(title, rows)
    live = Live(sys.stdout, terminal_size, colour=paint_for(sys.stdout).colour)
    picker, chosen = Picker(rows), None
    with unechoed(signals=False):
        forget_typed()
        sys.stdout.write(HIDE)
        try:
            while chosen is None:
                size = terminal_size()
                live.draw(Frame(live=picker.lines(title, size.columns, size.lines)))
                chosen = await _press(picker)
        finally:
            said = rows[chosen] if chosen is not None and chosen != NONE else "nothing"
            live.draw(Frame([fit(Text(f"? {title} → {said}"), terminal_size().columns)]))
            sys.stdout.write(SHOW)
            sys.stdout.flush()
    return None if chosen == NONE else chosen


async def _press(picker: Picker) -> int | None:
    """Read keys and press them one by one until something is decided."""
    try:
        keys, rest = split_keys(await pressed())
    except EOFError:
        return NONE
    for key in (*keys, *([rest] if rest else ())):
        chosen = picker.press(key)
        if chosen is not None:
            return chosen
    return None


async def _pick_number(title: str, rows: Sequence[str]) -> int | None:
    """Let the user type a number, if nothing can be drawn."""
    print("\n".join((title, *(f"{number:>3} {row}" for number, row in enumerate(rows, 1)))))
    typed = await line("Number (Enter for none): ")
    number = int(typed) if typed.isascii() and typed.isdigit() and len(typed) < 6 else 0
    return number - 1 if 0 < number <= len(rows) else None
