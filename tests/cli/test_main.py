"""Every command explains itself."""

import subprocess
import sys
from collections.abc import Iterator, Sequence, Set
from inspect import cleandoc
from itertools import pairwise

import click
import pytest

from hone import registry
from hone.cli.main import cli, perform
from hone.core.loading import import_object

WIDEST, MARGIN = 100, 2
"""How wide a help gets, and what click leaves free at the right."""


def commands(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from commands(child, (*path, name))


@pytest.mark.parametrize(
    ("path", "command"), [pytest.param(*pair, id=" ".join(pair[0])) for pair in commands(cli)]
)
def test_a_command_and_each_of_its_options_have_a_help_text(
    path: tuple[str, ...], command: click.Command
) -> None:
    assert command.help
    assert not command.get_short_help_str(limit=67).endswith("...")
    options = [each for each in command.params if isinstance(each, click.Option)]
    assert [each.name for each in options if not each.help] == []


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_help_of_every_command_fits_the_screen_and_breaks_no_command(width: int) -> None:
    every = list(commands(cli))
    known = {("hone", *path) for path, _ in every}
    for path, command in every:
        context = click.Context(command, info_name=" ".join(("hone", *path)))
        context.terminal_width = min(width, WIDEST) - MARGIN
        lines = [line.rstrip() for line in context.get_help().splitlines()]
        assert [line for line in lines if len(line) > width] == []
        assert not any(each.startswith("hone ") for each in cleandoc(command.help or "").split("\n\n"))
        assert [line for line in lines if line.endswith("...") and not line.startswith("Usage:")] == []
        for line, following in pairwise(lines):
            assert not (line.endswith("-") and line[-2:-1].isalpha()), line
            assert not is_broken(line.split(), following.split(), known), (line, following)


def is_broken(line: Sequence[str], following: Sequence[str], known: Set[tuple[str, ...]]) -> bool:
    """Tell whether a command begins at the end of a line and ends on the next one."""
    begins = [tuple(line[at:]) for at, word in enumerate(line) if word in ("hone", "`hone")]
    after = [word.strip("`.,;:)") for word in following[:1]]
    return any(("hone", *begin[1:], *after) in known for begin in begins if after)


@pytest.mark.parametrize(("name", "entry"), registry.list_commands().items())
def test_the_table_says_of_a_command_what_the_command_says_of_itself(
    name: str, entry: tuple[str, str]
) -> None:
    place, short_help = entry
    command = import_object(place)
    assert isinstance(command, click.Command)
    assert (command.name, command.get_short_help_str(limit=100)) == (name, short_help)


def test_each_feature_follows_a_command_of_the_kernel_and_keeps_to_its_folder() -> None:
    for feature in registry.FEATURES:
        assert feature.after in registry.COMMANDS
        for place, _ in feature.commands.values():
            assert place.startswith(f"hone.features.{feature.name}.")


def test_the_help_reads_the_table_and_loads_no_command() -> None:
    asked = "import sys; from hone.cli.main import perform; perform(['--help'])"
    told = "; print(*(name for name in sys.modules if name.startswith('hone.') or name == 'msgspec'))"
    out = subprocess.run([sys.executable, "-c", asked + told], check=True, capture_output=True, text=True)
    loaded = set(out.stdout.splitlines()[-1].split())
    assert loaded <= {
        *("hone.cli", "hone.cli.help_formatter", "hone.cli.main", "hone.cli.options", "hone.registry"),
        *("hone.core", "hone.core.errors", "hone.core.loading", "hone.core.regex", "hone.core.visible"),
    }


def test_a_feature_that_was_taken_out_is_an_unknown_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = registry.Feature("gone", "run", {"gone": ("hone.features.gone.commands:gone", "Nothing.")})
    monkeypatch.setattr(registry, "FEATURES", (*registry.FEATURES, gone))
    assert perform(["gone"]) == 2
    assert "No such command 'gone'." in capsys.readouterr().err
