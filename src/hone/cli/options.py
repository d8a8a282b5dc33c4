"""What a command is told and how it answers: options, standard input, exit codes, complaints."""

import sys
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import click

from hone.core.visible import visible

FAILED, USAGE, INTERRUPTED = 1, 2, 130
HOURS = {"h": 1, "d": 24, "w": 168}


class Options(NamedTuple):
    """What stands before the sub-command. `last` goes on with the session that was active last."""

    model: str = ""
    home: Path | None = None
    resume: str = ""
    last: bool = False
    template: str = ""


def complain(message: str, code: int) -> int:
    """Print a message to standard error and return the exit code."""
    print(visible(message), file=sys.stderr)
    return code


def at_terminal() -> bool:
    """Return whether somebody can be asked."""
    return sys.stdin is not None and sys.stdin.isatty()


def read_piped() -> str:
    """Read all of the standard input. Bytes that are no text are marked as such."""
    if sys.stdin is None:
        return ""
    return sys.stdin.buffer.read().decode("utf-8", "replace").removeprefix("\ufeff")


def confirm(question: str, alone: str, *, yes: bool) -> bool:
    """Ask the owner unless they said `yes` already. Raises UsageError, `alone`, where nobody can be asked."""
    if not yes and not at_terminal():
        raise click.UsageError(alone)
    return yes or click.confirm(question)


def parse_age(age: str) -> timedelta:
    """Read an age like 12h, 30d or 8w. Raises UsageError."""
    number, unit = age[:-1], age[-1:]
    if unit not in HOURS or not (number.isascii() and number.isdigit() and len(number) < 6):
        raise click.UsageError(f"{age!r} is no age. Write hours, days or weeks: 12h, 30d, 8w.")
    return timedelta(hours=int(number) * HOURS[unit])
