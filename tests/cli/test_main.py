"""Every command explains itself."""

from collections.abc import Iterator

import click
import pytest

from hone.cli.main import cli


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
