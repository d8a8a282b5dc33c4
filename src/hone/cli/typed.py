"""What the user types: one message from one or more lines, and what is piped in."""

import sys
from collections.abc import Callable, Iterable
from contextlib import suppress

PROMPT, MORE = "> ", ". "
QUOTES = '"""'


def read_message(read: Callable[[str], str]) -> str:
    """A line that ends in a backslash goes on with the next one; three quotes open a text that three quotes
    end. Raises what `read` raises."""
    line = read(PROMPT)
    if line.lstrip().startswith(QUOTES):
        return _quoted(line.lstrip().removeprefix(QUOTES), read)
    lines = [line]
    while lines[-1].endswith("\\"):
        lines[-1] = lines[-1].removesuffix("\\")
        lines.append(read(MORE))
    return "\n".join(lines)


def _quoted(first: str, read: Callable[[str], str]) -> str:
    lines = [first]
    while not lines[-1].rstrip().endswith(QUOTES):
        lines.append(read(MORE))
    lines[-1] = lines[-1].rstrip().removesuffix(QUOTES)
    return "\n".join(lines).strip("\n")


def remember(messages: Iterable[str]) -> None:
    """Line editing where the system has it, with earlier words on the arrow keys."""
    with suppress(ImportError):
        import readline

        for message in messages:
            readline.add_history(" ".join(message.split()))


def half_typed() -> bool:
    """Whether something stood on the line that was broken off."""
    with suppress(ImportError):
        import readline

        return bool(readline.get_line_buffer().strip())
    return False


def at_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def read_piped() -> str:
    """All of the standard input. Bytes that are no text are marked as such."""
    if sys.stdin is None:
        return ""
    return sys.stdin.buffer.read().decode("utf-8", "replace").removeprefix("\ufeff")
