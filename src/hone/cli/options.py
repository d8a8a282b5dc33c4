"""Code that all commands share: global options, standard input, exit codes and error messages."""

import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from hone.core.loading import import_object
from hone.core.visible import visible

FAILED, USAGE, INTERRUPTED = 1, 2, 130
Command = TypeVar("Command", bound=Callable[..., Any])
MODES = ("plan", "ask", "auto", "full")
COMPLETE = "hone.cli.completing:find_names"
"""Imported when a shell asks."""
FIT = "hone.cli.output:fit_lines"
"""Imported for a message on a screen."""
HOURS = {"h": 1, "d": 24, "w": 168}


PICK = "?"
"""Stands for the conversation that the owner still has to choose."""


class Options(NamedTuple):
    """The options before the subcommand, and those that a subcommand adds. `last` continues the latest
    conversation of this folder; `calls` overrides the setting, `allow` and `deny` add to theirs."""

    model: str = ""
    home: Path | None = None
    resume: str = ""
    last: bool = False
    template: str = ""
    mode: str = ""
    images: tuple[Path, ...] = ()
    schema: Path | None = None
    output: str = ""
    calls: int = 0
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise UsageError for options that do not go together."""
        if self.resume and self.last:
            raise click.UsageError("-r names a conversation and -c takes the last one: use one of them.")
        if self.template and (self.resume or self.last):
            raise click.UsageError("--template works only at the start of a conversation.")


def note(field: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Return a callback that stores the value of an option in the options."""

    def put(ctx: click.Context, _: click.Parameter, value: Any) -> None:
        if value and isinstance(ctx.obj, Options):
            ctx.obj = ctx.obj._replace(**{field: value})

    return put


def complete(what: str) -> Callable[[click.Context, click.Parameter, str], list[Any]]:
    """Return a function that completes the names of `sessions`, `skills` or `keys`."""

    def find(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[Any]:
        found: list[Any] = import_object(COMPLETE)(what, ctx, incomplete)
        return found

    return find


def complain(message: str, code: int) -> int:
    """Print a message to standard error and return the exit code."""
    print(fit_complaint(visible(message)), file=sys.stderr)
    return code


def fit_complaint(message: str) -> str:
    """Return a message for standard error: on a screen, its lines are wrapped between words."""
    return "\n".join(import_object(FIT)(message)) if sys.stderr.isatty() else message


def at_terminal() -> bool:
    """Tell whether somebody can be asked."""
    return sys.stdin is not None and sys.stdin.isatty()


def read_piped() -> str:
    """Read all of standard input. Bytes that are not text are escaped."""
    if sys.stdin is None:
        return ""
    return sys.stdin.buffer.read().decode("utf-8", "replace").removeprefix("\ufeff")


def confirm(question: str, alone: str, *, yes: bool) -> bool:
    """Ask the owner unless they said `yes` already. Raises UsageError with `alone` if nobody can be asked."""
    if not yes and not at_terminal():
        raise click.UsageError(alone)
    return yes or click.confirm(question)


def limit_option(help: str, most: int | None = None, default: int = 20) -> Callable[[Command], Command]:
    """Add `--limit`."""
    kind = click.IntRange(1, most)
    return click.option("--limit", "-n", type=kind, default=default, show_default=True, help=help)


def mode_option(*, noted: bool = False) -> Callable[[Command], Command]:
    """Add `--mode`. With `noted`, it goes into the options, as if it preceded the subcommand."""
    help = "How much Hone does without asking; see hone permissions. [default: hone.toml, or auto]"
    kind = click.Choice(MODES)
    if not noted:
        return click.option("--mode", type=kind, help=help)
    return click.option("--mode", type=kind, help=help, expose_value=False, callback=note("mode"))


def image_option() -> Callable[[Command], Command]:
    """Add `--image`, which goes into the options."""
    kind = click.Path(path_type=Path)
    help = "Show it this picture (PNG, JPEG, GIF or WebP); repeatable."
    return click.option(
        *("--image", "images"),
        type=kind,
        multiple=True,
        metavar="FILE",
        help=help,
        expose_value=False,
        callback=note("images"),
    )


def schema_option() -> Callable[[Command], Command]:
    """Add `--schema`, which goes into the options."""
    return click.option(
        "--schema",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Print only JSON that fits the JSON schema in this file.",
        expose_value=False,
        callback=note("schema"),
    )


def parse_age(age: str) -> timedelta:
    """Read an age like 12h, 30d or 8w. Raises UsageError."""
    number, unit = age[:-1], age[-1:]
    if unit not in HOURS or not (number.isascii() and number.isdigit() and len(number) < 6):
        raise click.UsageError(f"{age!r} is not an age. Write hours, days or weeks: 12h, 30d, 8w.")
    return timedelta(hours=int(number) * HOURS[unit])
