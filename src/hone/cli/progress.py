"""Show progress on a terminal."""

import sys

import click

from hone.core.visible import one_line

WIDEST = 60


class ProgressLine:
    """Shows progress on a terminal, in one line that is removed at the end."""

    def __init__(self) -> None:
        self._shown = ""

    def __enter__(self) -> "ProgressLine":
        return self

    def __exit__(self, *_: object) -> None:
        self._write("")

    def show(self, what: str, done: int, total: int) -> None:
        part = f" {100 * done // total}%" if total else ""
        self._write(one_line(f"{what} …{part}", WIDEST))

    def _write(self, line: str) -> None:
        if line != self._shown and sys.stderr.isatty():
            click.echo(f"\r{line.ljust(WIDEST if self._shown else 0)}\r{line}", nl=False, err=True)
        self._shown = line
