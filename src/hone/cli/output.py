"""Print tables, times and JSON, and write results to new files."""

import json
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from unicodedata import combining, east_asian_width

import click

from hone.core import seldom
from hone.core.errors import HoneError
from hone.core.regex import regex
from hone.core.visible import one_line, visible
from hone.files.atomic import create_file

HARD_SPACE = "\xa0"
"""A width at which no line is wrapped."""
_COMMAND = regex(r"(?<=: )(?:hone|/[a-z]+)(?: \S*[^\s.,;])+$")
_WORDS = regex(r"([ \t-\r]*)([^ \t-\r]+)")
_JOINER = "\u200d"
_OPENING = "（「『【《〈［｛"
_CLOSING = (
    "、。，．！？：；）」』】》〉］｝…ー々"
    + "".join(map(chr, range(0xFE00, 0xFE10)))  # how the letter before it looks
    + "".join(map(chr, range(0x1F3FB, 0x1F400)))  # the skin of the person before it
)
LONGEST = 10_000
"""The most characters of a cell in a pipe."""
LEAST = 20
"""The fewest characters for the last column of a table, next to the others."""


def columns() -> int:
    """Return how wide the terminal is."""
    return seldom.shutil.get_terminal_size().columns


def screen_width() -> int | None:
    """Return the width of the screen behind standard output; None for a pipe or a file."""
    return columns() if sys.stdout.isatty() else None


def lay_out(
    titles: Sequence[str], rows: Sequence[Sequence[str]], width: int | None, right: Collection[str] = ()
) -> list[str]:
    """Set cells in columns, those named in `right` right-aligned. Without a width, as in a pipe, each row is
    one line; with one, nothing is wider."""
    return [line for lines in lay_out_rows(titles, rows, width, right) for line in lines]


def lay_out_rows(
    titles: Sequence[str], rows: Sequence[Sequence[str]], width: int | None, right: Collection[str] = ()
) -> list[list[str]]:
    """Return the lines of the titles and of each row. The last cell gets the remaining room. If that is too
    little, the columns that do not fit are below the row."""
    *sizes, last = [max(measure(row[column]) for row in (titles, *rows)) for column in range(len(titles))]
    room = LONGEST if width is None else width - sum(sizes) - 2 * len(sizes)
    if width is None or room >= min(last, LEAST):
        return [[_set(titles, row, sizes, right, row[-1], room)] for row in (titles, *rows)]
    fitting = 1
    while fitting < len(sizes) and sum(sizes[: fitting + 1]) + 2 * fitting <= width:
        fitting += 1
    shown = sizes[:fitting]
    first = cut(_set(titles, titles, shown, right), width)
    return [[first], *(_stack(titles, row, shown, right, width) for row in rows)]


def _set(
    titles: Sequence[str],
    row: Sequence[str],
    sizes: Sequence[int],
    right: Collection[str],
    text: str = "",
    room: int = LONGEST,
) -> str:
    """Return one line: the first cells in their columns, followed by a text."""
    cells = [
        pad(cell, size, right=title in right) for title, cell, size in zip(titles, row, sizes, strict=False)
    ]
    return "  ".join((*cells, cut(one_line(text, room), room))).rstrip()


def _stack(
    titles: Sequence[str], row: Sequence[str], sizes: Sequence[int], right: Collection[str], width: int
) -> list[str]:
    """Return the lines of a row that is too wide: what fits, then the other cells with titles, and the last
    one."""
    names, cells = titles[len(sizes) : -1], row[len(sizes) : -1]
    named = " · ".join(f"{name.strip()} {cell}" for name, cell in zip(names, cells, strict=True) if cell)
    lines = [cut(_set(titles, row, sizes, right), width)]
    lines += wrap_cells(named, width, "  ", "  ")
    return [*lines, f"  {cut(one_line(row[-1], width), width - 2)}"] if row[-1] else lines


def measure(text: str) -> int:
    """Return how many columns of a screen a text takes. East Asian letters and most emoji take two."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(each) else 1 + _is_wide(each) for each in text)


def _is_wide(letter: str) -> bool:
    return east_asian_width(letter) in "WF"


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Return the text padded to a width, on the right or on the left."""
    space = " " * (width - measure(text))
    return f"{space}{text}" if right else f"{text}{space}"


def count_fitting(text: str, width: int) -> int:
    """Return how many characters of a text fit into this many columns."""
    if text.isascii():
        return min(len(text), width)
    at = 0
    while at < len(text) and (width := width - measure(text[at])) >= 0:
        at += 1
    return at


def cut(line: str, width: int) -> str:
    """Return the line, shortened to a width. Its spaces stay."""
    return line if measure(line) <= width else f"{line[: count_fitting(line, width - 1)]}…"


def number_of(number: int, noun: str, plural: str = "") -> str:
    """Say how many there are: `1 leaf`, `2 leaves`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def wrap_cells(
    text: str, width: int, indent: str = "", more: str = "", *, whole_words: bool = False
) -> list[str]:
    """Wrap a text into lines of at most this many columns: between words, and in East Asian text between
    letters. A word longer than a line is broken, too, unless `whole_words`: then it is alone on a line that
    is too long, so that it can be copied. `indent` begins the first line, `more` the others."""
    lines: list[str] = []
    start, line = indent, ""
    for space, piece in _find_pieces(text):
        left = f"{line}{space}{piece}" if line else piece
        breaks = not whole_words and measure(piece) > width - len(more)
        if line and not breaks and measure(start + left) > width:
            lines.append(start + line)
            start, left = more, piece
        while breaks and measure(start + left) > width:
            at = _fit(left, max(1, count_fitting(left, width - len(start))))
            lines.append(start + left[:at].rstrip())
            start, left = more, left[at:].lstrip()
        line = left
    return [*lines, start + line] if line else lines


def _find_pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a text between which a line may be broken, each with the space before it."""
    for space, word in _WORDS.findall(text):
        cuts = [at for at, (one, other) in enumerate(pairwise(word), 1) if _may_break(one, other)]
        for begin, end in pairwise((0, *cuts, len(word))):
            yield " " * len(space) if not begin else "", word[begin:end]


def _may_break(before: str, after: str) -> bool:
    """Tell whether a line may end between two letters: next to a wide one, but not before a letter that
    belongs to it and not after an opening quotation mark."""
    if after.isascii() and before.isascii():
        return False
    if before in _OPENING or after in _CLOSING or _JOINER in (before, after) or combining(after):
        return False
    return _is_wide(before) or _is_wide(after)


def wrap_words(words: str) -> list[str]:
    """Wrap prose to the width of the terminal. A command at the end stays in one piece."""
    width = columns()
    lines = wrap_cells(_join_command(words, width), width, whole_words=True)
    return [line.replace(HARD_SPACE, " ") for line in lines]


def wrap_rows(rows: Iterable[str], width: int | None) -> Iterator[str]:
    """Yield the lines of these rows, wrapped between words to the screen. A command at the end of a row stays
    in one piece, so that it can be copied."""
    for line in (line for row in rows for line in row.split("\n")):
        if width is None or measure(line) <= width:
            yield line
            continue
        margin = " " * min(len(line) - len(line.lstrip()), width // 2)
        more = f"{margin}  "
        words = _join_command(line.strip(), width - len(more))
        lines = wrap_cells(words, width, margin, more)
        yield from (each.replace(HARD_SPACE, " ") for each in lines)


def _join_command(words: str, width: int) -> str:
    """Return the words with hard spaces in a command at their end, if it fits on a line."""
    found = _COMMAND.search(words)
    if found is None or measure(found[0]) > width:
        return words
    return words[: found.start()] + found[0].replace(" ", HARD_SPACE)


def fit_lines(text: str) -> list[str]:
    """Return the lines of a text, wrapped between words to the terminal. Colored ones stay as they are."""
    return [
        row
        for line in text.split("\n")
        for row in ([line] if "\x1b" in line else wrap_rows([line], columns()))
    ]


def wrap_text(text: str, width: int, most: int, indent: str = "  ") -> list[str]:
    """Wrap a text into at most `most` rows, and cut the rest. No character is split."""
    rows: list[str] = []
    left = text
    while left and len(rows) < most - 1:
        margin = indent if rows else ""
        fitting = count_fitting(left, width - len(margin))
        if fitting == len(left):
            break
        at = left.rfind(" ", 1, fitting + 1)
        at = at if at > 0 else _fit(left, fitting)
        rows.append(margin + left[:at].rstrip())
        left = left[at:].lstrip()
    margin = indent if rows else ""
    last = cut(one_line(left, width - len(margin)), width - len(margin))
    return [*rows, margin + last] if left or not rows else rows


def _fit(text: str, most: int) -> int:
    """Return how many characters fit without splitting an emoji."""
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


def echo_prose(rows: Iterable[str]) -> None:
    """Print sentences: on a screen wrapped between words, in a pipe unchanged."""
    for row in rows:
        echo(fit_lines(row) if sys.stdout.isatty() else (row,))


def create(path: Path, text: str) -> None:
    """Write a file that only its owner can read. Raises HoneError if it exists: nothing is overwritten."""
    try:
        descriptor = create_file(path)
    except FileExistsError:
        raise HoneError(f"{path} already exists and was not changed.") from None
    except OSError as error:
        raise HoneError(f"{path} cannot be written: {error.strerror}.") from error
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def to_json(value: object) -> str:
    return json.dumps(value, indent=2)


def echo_json(value: object) -> None:
    click.echo(to_json(value))
