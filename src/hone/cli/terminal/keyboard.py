"""Read single keys from the terminal while no editor is active."""

import asyncio
import os
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress

CTRL_C = "\x03"
LEAVING = "Ctrl-D or /quit leaves."


@contextmanager
def unechoed(*, signals: bool) -> Iterator[None]:
    """What is typed does not show and waits, key by key, for whoever reads next. Without `signals` Ctrl-C is
    a key like any other."""
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    now = termios.tcgetattr(terminal)
    now[0] &= ~termios.ICRNL
    now[3] &= ~(termios.ECHO | termios.ICANON | (0 if signals else termios.ISIG))
    termios.tcsetattr(terminal, termios.TCSANOW, now)
    try:
        yield
    finally:
        # A terminal that has been closed has no state to go back to.
        with suppress(termios.error):
            termios.tcsetattr(terminal, termios.TCSANOW, before)


@contextmanager
def echoed() -> Iterator[None]:
    """What is typed shows, and comes line by line, whatever held before. Ctrl-C ends a line, too."""
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
    """Return one line that is typed after the prompt; empty if it is broken off by Ctrl-C or Ctrl-D."""
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


def forget_typed() -> None:
    """Keys that were pressed before now are nobody's answer."""
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


async def pressed(within: float | None = None) -> str:
    """The next keys; nothing if none comes within so many seconds. Raises EOFError without a terminal."""
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
