"""Decide what `hone WORDS` means if the first word is no command: a task, or a mistyped command.

A first argument with a space in it is a task. One without that resembles the name of a command is a typo; any
other one begins a task.
"""

from collections.abc import Collection, Sequence
from difflib import get_close_matches

import click

NEAR = 0.65
"""The least similarity between a word and a command that it may stand for: `rnu` and `run` have two
thirds."""
MOST = 3
HABITS = {
    "help": "hone --help",
    "version": "hone --version",
    "init": "hone setup",
    "login": "hone setup",
    "auth": "hone keys",
    "chat": "hone",
    "continue": "hone -c",
    "resume": "hone -r",
    "history": "hone sessions list",
    "mode": "hone permissions",
    "settings": "hone config",
}
"""Commands of other programs, and their names here."""


def find_meant(words: Sequence[str], names: Collection[str]) -> list[str]:
    """Return the commands that the first word may stand for; none if it begins a task."""
    first = words[0]
    if not first.strip("-") or any(letter.isspace() for letter in first):
        return []
    if first in HABITS and len(words) == 1:
        return [HABITS[first]]
    known = [name for name in names if name != first]
    return [f"hone {name}" for name in get_close_matches(first.lower(), known, MOST, NEAR)]


def check_task(words: Sequence[str], names: Collection[str]) -> None:
    """Raise UsageError if the first word is a mistyped command, or one whose feature was removed. People ask
    for help about a command, never about a task."""
    first = words[0]
    if first in names or (len(words) > 1 and {"-h", "--help"} & set(words) and not find_meant(words, names)):
        raise click.UsageError(f"No such command {first!r}.")
    meant = find_meant(words, names)
    if meant:
        task = " ".join(words).replace('"', '\\"')
        raise click.UsageError(
            f"There is no command {first!r}. Did you mean: {' or '.join(meant)}\n"
            f'If it is a task: hone run "{task}"'
        )
