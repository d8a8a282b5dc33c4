"""Input while the agent works: a line to send, and Esc to stop.

`TypeAhead` decides what keys mean and reads none. `Listening` reads them while a turn is drawn.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from hone.cli.terminal.keyboard import PASTE, PASTED, split_keys
from hone.core.visible import one_line, visible

ESCAPE = "\x1b"
GRACE = 0.05
"""Seconds after which an Esc is a key and not the beginning of one."""
SHOWN = 5
"""The most lines of a message to show while it is typed."""
_ERASE, _CLEAR, _WORD = ("\x7f", "\x08"), "\x15", "\x17"


class TypeAhead:
    """One line. Enter passes it to `send`, Esc calls `stop`. `text` is the current line, and `waiting`
    returns what was sent but not heard yet."""

    def __init__(
        self,
        send: Callable[[str], None],
        stop: Callable[[], None],
        waiting: Callable[[], Sequence[str]] = tuple,
        text: str = "",
    ) -> None:
        self.text = text
        self._send = send
        self._stop = stop
        self._waiting = waiting
        self._rest = ""

    @property
    def is_open(self) -> bool:
        """Tell whether an Esc has come that may be the beginning of a key."""
        return bool(self._rest)

    def lines(self, width: int) -> list[str]:
        """Return what to show: the waiting words, and the line with a cursor at its end."""
        waiting = [one_line(f"↳ {text}", width) for text in self._waiting()]
        if not self.text:
            return waiting
        first, *further = visible(self.text).split("\n")
        typed = [f"> {first}", *(f"  {line}" for line in further)][-SHOWN:]
        return [
            *waiting,
            *(_end_of(line, width - 1) for line in typed[:-1]),
            f"{_end_of(typed[-1], width - 1)}▏",
        ]

    def feed(self, typed: str) -> None:
        keys, self._rest = split_keys(self._rest + typed)
        for key in keys:
            self._press(key)

    def close(self) -> None:
        """Note that nothing follows: an Esc was a key."""
        rest, self._rest = self._rest, ""
        if rest == ESCAPE:
            self._press(rest)

    def _press(self, key: str) -> None:
        if key.startswith(PASTE):
            self.text += (
                key.removeprefix(PASTE).removesuffix(PASTED).replace("\r\n", "\n").replace("\r", "\n")
            )
        elif key in ("\r", "\n"):
            self._enter()
        elif key in (f"{ESCAPE}\r", f"{ESCAPE}\n"):
            self.text += "\n"
        elif key == ESCAPE:
            self._stop()
        elif key in _ERASE:
            self.text = self.text[:-1]
        elif key == _CLEAR:
            self.text = ""
        elif key == _WORD:
            self.text = self.text.rstrip().rpartition(" ")[0]
        elif key.isprintable():
            self.text += key

    def _enter(self) -> None:
        """Handle Enter. A backslash at the end begins another line, as at the prompt."""
        if self.text.endswith("\\"):
            self.text = f"{self.text[:-1]}\n"
            return
        text, self.text = self.text, ""
        if text.strip():
            self._send(text)


def _end_of(line: str, width: int) -> str:
    """Return the end of a line that is too long, since somebody types there."""
    return line if len(line) <= width else f"{line[:2]}…{line[3 - width :]}"


class Listening:
    """Reads the terminal while the context is active; `changed` is called after each key. `paused` leaves the
    keys to other code, such as a question."""

    def __init__(self, ahead: TypeAhead, changed: Callable[[], None]) -> None:
        self._ahead = ahead
        self._changed = changed
        self._timer: asyncio.TimerHandle | None = None
        self._terminal = sys.stdin.fileno()

    @contextmanager
    def reading(self) -> Iterator[None]:
        self._begin()
        try:
            yield
        finally:
            self._end()

    @contextmanager
    def paused(self) -> Iterator[None]:
        self._end()
        try:
            yield
        finally:
            self._begin()

    def _begin(self) -> None:
        asyncio.get_running_loop().add_reader(self._terminal, self._read)

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._terminal)
        self._settle()

    def _read(self) -> None:
        try:
            typed = os.read(self._terminal, 65_536)
        except OSError:
            typed = b""
        if not typed:  # the terminal is gone; the next question reports it
            asyncio.get_running_loop().remove_reader(self._terminal)
            return
        if self._timer:
            self._timer.cancel()
        self._ahead.feed(typed.decode("utf-8", "replace"))
        if self._ahead.is_open:
            self._timer = asyncio.get_running_loop().call_later(GRACE, self._settle)
        self._changed()

    def _settle(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self._ahead.is_open:
            self._ahead.close()
            self._changed()
