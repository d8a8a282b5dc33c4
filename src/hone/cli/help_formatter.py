"""Lay out the help of commands. A line break never splits a command, a hyphenated word, or a sentence in
two."""

from collections.abc import Iterable

import click

from hone.core.loading import import_object
from hone.core.regex import regex
from hone.registry import list_below, list_commands

_HARD_SPACE, _HARD_HYPHEN = "\xa0", "\u2011"
"""Characters without line breaks. The output has ordinary ones, to copy."""
_LOOSE = str.maketrans({_HARD_SPACE: " ", _HARD_HYPHEN: "-"})
_COMMAND = regex(
    rf"(?<![\w./-])hone\s+(?:--?[a-z-]+|(?:{'|'.join(list_commands())})\b(?:\s+(?:[a-z]+|--?[a-z-]+|[A-Z]+))?)"
)
_LONGEST = 1_000
"""Characters of a first sentence."""
_PLAIN = "\b"
"""Begins a paragraph that is printed unchanged."""


class HelpFormatter(click.HelpFormatter):
    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(prog, args.replace("-", _HARD_HYPHEN), prefix)

    def write_text(self, text: str) -> None:
        paragraphs = text.split("\n\n")
        super().write_text(
            "\n\n".join(each if each.startswith(_PLAIN) else _bind(each) for each in paragraphs)
        )

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        super().write_dl([(_bind(name), _bind(text)) for name, text in rows], col_max, col_spacing)

    def getvalue(self) -> str:
        return super().getvalue().translate(_LOOSE)


class CommandGroup(click.Group):
    """Lists its commands with the full first sentence of each, however narrow the screen is."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, each.get_short_help_str(_LONGEST)) for name, each in found if each and not each.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class ExtendedGroup(CommandGroup):
    """Has built-in commands, and commands of features, which are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *list_below(self.name or "")})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place, _ = list_below(self.name or "").get(cmd_name, ("", ""))
        command = import_object(place) if place else super().get_command(ctx, cmd_name)
        return command if isinstance(command, click.Command) else None


def _bind(text: str) -> str:
    joined = _COMMAND.sub(lambda found: _HARD_SPACE.join(found[0].split()), text)
    return joined.replace("-", _HARD_HYPHEN)
