"""Print tables, times and JSON, and write results to new files."""

import json
import sys
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from textwrap import wrap

import click

from hone.core import seldom
from hone.core.errors import HoneError
from hone.core.visible import one_line, visible
from hone.files.atomic import create_file


def columns() -> int:
    """Return how wide the terminal is."""
    return seldom.shutil.get_terminal_size().columns


def screen_width() -> int | None:
    """Return how wide the screen is that standard output goes to; None for a pipe or a file."""
    return columns() if sys.stdout.isatty() else None


def lay_out(
    titles: Sequence[str], rows: Sequence[Sequence[str]], width: int, right: Collection[str] = ()
) -> list[str]:
    """Set cells in columns, those named in `right` at their right edge. The last one gets the room that is
    left."""
    count = len(titles) - 1
    widths = [max(len(row[column]) for row in (titles, *rows)) for column in range(count)]
    room = max(20, width - sum(widths) - 2 * count)
    lines = []
    for row in (titles, *rows):
        cells = [
            cell.rjust(size) if title in right else cell.ljust(size)
            for title, cell, size in zip(titles, row, widths, strict=False)
        ]
        lines.append("  ".join((*cells, one_line(row[-1], room))).rstrip())
    return lines


def number_of(number: int, noun: str, plural: str = "") -> str:
    """Say how many there are: `1 leaf`, `2 leaves`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def wrap_words(words: str) -> list[str]:
    """Break prose into lines as wide as the terminal."""
    return wrap(words, columns(), break_long_words=False, break_on_hyphens=False)


def wrap_text(text: str, width: int, most: int, indent: str = "  ") -> list[str]:
    """Break a text into at most `most` rows, and cut what is left over. No character is torn apart."""
    rows: list[str] = []
    left = text
    while left and len(rows) < most - 1:
        margin = indent if rows else ""
        room = width - len(margin)
        if len(left) <= room:
            break
        at = left.rfind(" ", 1, room + 1)
        at = at if at > 0 else _fit(left, room)
        rows.append(margin + left[:at].rstrip())
        left = left[at:].lstrip()
    margin = indent if rows else ""
    return [*rows, margin + one_line(left, width - len(margin))] if left or not rows else rows


def _fit(text: str, most: int) -> int:
    """Return how many characters fit without tearing an emoji apart."""
    at = most
    while at > 1 and (visible(text[:at]) != text[:at] or visible(text[at:]) != text[at:]):
        at -= 1
    return at


def day(at: datetime) -> str:
    return f"{at.astimezone():%Y-%m-%d}"


def moment(at: datetime) -> str:
    return f"{at.astimezone():%Y-%m-%d %H:%M}"


def echo(rows: Iterable[str]) -> None:
    for row in rows:
        click.echo(row)


def create(path: Path, text: str) -> None:
    """Write a file that only its owner can read. Raises HoneError if there is one: nothing is overwritten."""
    try:
        descriptor = create_file(path)
    except FileExistsError:
        raise HoneError(f"{path} is there already and is left as it is.") from None
    except OSError as error:
        raise HoneError(f"{path} cannot be written: {error.strerror}.") from error
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def to_json(value: object) -> str:
    return json.dumps(value, indent=2)


def echo_json(value: object) -> None:
    click.echo(to_json(value))
