"""Read single keys from the terminal while no editor is active."""

import asyncio
import os
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from hone.core.regex import regex

CTRL_C = "\x03"
LEAVING = "Ctrl-D or /quit leaves."
PASTE, PASTED = "\x1b[200~", "\x1b[201~"
"""What a terminal sends before and after pasted text."""
_KEY = regex(r"\x1b\[200~[\s\S]*?\x1b\[201~|\x1b\[[0-?]*[ -/]*[@-~]|\x1bO[ -~]|\x1b[^\x1b\[O]|[^\x1b]")


@contextmanager
def unechoed(*, signals: bool) -> Iterator[None]:
    """Turn echo off: typed keys are hidden and wait, one by one, for the next reader. Without `signals`
    Ctrl-C is an ordinary key."""
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    now = termios.tcgetattr(terminal)
    now[0] &= ~termios.ICRNL
    now[3] &= ~(termios.ECHO | termios.ICANON | (0 if signals else termios.ISIG))
    termios.tcsetattr(terminal, termios.TCSANOW, now)
    try:
        yield
    finally:
        # A closed terminal has no state to restore.
        with suppress(termios.error):
            termios.tcsetattr(terminal, termios.TCSANOW, before)


@contextmanager
def echoed() -> Iterator[None]:
    """Turn echo on: typed text is shown and arrives line by line, whatever the mode before. Ctrl-C ends a
    line, too."""
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    now = termios.tcgetattr(terminal)
    now[0] |= termios.ICRNL
    now[3] |= termios.ECHO | termios.ICANON
    now[3] &= ~termios.ISIG
    now[6][termios.VEOL] = CTRL_C.encode()
    termios.tcsetattr(terminal, termios.TCSANOW, now)
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(terminal, termios.TCSANOW, before)


async def line(prompt: str) -> str:
    """Return one line that is typed after the prompt; empty if Ctrl-C or Ctrl-D ends it."""
    typed = ""
    with echoed():
        print(prompt, end="", flush=True)
        while not {"\n", CTRL_C} & {*typed}:
            try:
                typed += await pressed()
            except EOFError:
                typed = CTRL_C
    if CTRL_C in typed:
        print()
        return ""
    return typed.partition("\n")[0].strip()


def split_keys(typed: str) -> tuple[list[str], str]:
    """Return the keys in a terminal's input, each as it was sent, and the rest, which is the beginning of a
    key, or Esc alone if nothing follows. Pasted text is one key."""
    keys: list[str] = []
    at = 0
    while at < len(typed):
        found = None if _is_open_paste(typed, at) else _KEY.match(typed, at)
        if found is None:
            if "\x1b" not in typed[at + 1 :] or _is_open_paste(typed, at):
                break
            keys.append(typed[at])  # Esc, and another key that begins with it
            at += 1
            continue
        keys.append(found.group())
        at = found.end()
    return keys, typed[at:]


def _is_open_paste(typed: str, at: int) -> bool:
    return typed.startswith(PASTE, at) and PASTED not in typed[at:]


def forget_typed() -> None:
    """Drop keys that were pressed before now: they answer nothing."""
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


async def pressed(within: float | None = None) -> str:
    """Return the next keys; nothing if none comes within this many seconds. Raises EOFError without a
    terminal."""
    ready = asyncio.Event()
    loop, terminal = asyncio.get_running_loop(), sys.stdin.fileno()
    loop.add_reader(terminal, ready.set)
    try:
        async with asyncio.timeout(within):
            await ready.wait()
    except TimeoutError:
        return ""
    finally:
        loop.remove_reader(terminal)
    try:
        keys = os.read(terminal, 65_536)
    except OSError as error:
        raise EOFError from error
    if not keys:
        raise EOFError
    return keys.decode("utf-8", "replace")
