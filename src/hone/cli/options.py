"""What all commands share: global options, standard input, exit codes and error messages."""

import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from hone.core.visible import visible

FAILED, USAGE, INTERRUPTED = 1, 2, 130
Command = TypeVar("Command", bound=Callable[..., Any])
MODES = ("plan", "ask", "auto", "full")
HOURS = {"h": 1, "d": 24, "w": 168}


class Options(NamedTuple):
    """What stands before the sub-command. `last` goes on with the session that was active last."""

    model: str = ""
    home: Path | None = None
    resume: str = ""
    last: bool = False
    template: str = ""
    mode: str = ""
    images: tuple[Path, ...] = ()
    schema: Path | None = None


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


def limit_option(help: str, most: int | None = None, default: int = 20) -> Callable[[Command], Command]:
    """Add `--limit`."""
    kind = click.IntRange(1, most)
    return click.option("--limit", "-n", type=kind, default=default, show_default=True, help=help)


def mode_option(*, noted: bool = False) -> Callable[[Command], Command]:
    """Add `--mode`. If it is `noted`, it goes into the options, as if it stood before the sub-command."""
    help = "How much is done without a question; see hone permissions. [default: hone.toml, or auto]"
    kind = click.Choice(MODES)
    if not noted:
        return click.option("--mode", type=kind, help=help)
    return click.option("--mode", type=kind, help=help, expose_value=False, callback=_note_mode)


def _note_mode(ctx: click.Context, _: click.Parameter, mode: str | None) -> None:
    if mode and isinstance(ctx.obj, Options):
        ctx.obj = ctx.obj._replace(mode=mode)


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
        callback=_note_images,
    )


def _note_images(ctx: click.Context, _: click.Parameter, images: tuple[Path, ...]) -> None:
    if images and isinstance(ctx.obj, Options):
        ctx.obj = ctx.obj._replace(images=images)


def schema_option() -> Callable[[Command], Command]:
    """Add `--schema`, which goes into the options."""
    return click.option(
        "--schema",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Print only JSON that fits the JSON schema in this file.",
        expose_value=False,
        callback=_note_schema,
    )


def _note_schema(ctx: click.Context, _: click.Parameter, schema: Path | None) -> None:
    if schema and isinstance(ctx.obj, Options):
        ctx.obj = ctx.obj._replace(schema=schema)


def parse_age(age: str) -> timedelta:
    """Read an age like 12h, 30d or 8w. Raises UsageError."""
    number, unit = age[:-1], age[-1:]
    if unit not in HOURS or not (number.isascii() and number.isdigit() and len(number) < 6):
        raise click.UsageError(f"{age!r} is no age. Write hours, days or weeks: 12h, 30d, 8w.")
    return timedelta(hours=int(number) * HOURS[unit])
