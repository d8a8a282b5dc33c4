"""What is piped in, and whether somebody sits at a terminal."""

import sys


def at_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def read_piped() -> str:
    """All of the standard input. Bytes that are no text are marked as such."""
    if sys.stdin is None:
        return ""
    return sys.stdin.buffer.read().decode("utf-8", "replace").removeprefix("\ufeff")
