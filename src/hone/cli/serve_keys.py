"""`hone serve keys`: make, list and remove the API keys of people and programs."""

import click

from hone.cli.help_formatter import CommandGroup
from hone.cli.options import Options
from hone.cli.output import echo_json, lay_out, moment, screen_width
from hone.core.clock import SystemClock
from hone.settings import home_folder, read
from hone.web.access import open_place
from hone.web.api_keys import ApiKeys, KeyKind

KIND = click.Choice([each.value for each in KeyKind])
MEANING = {
    KeyKind.PROGRAM: "What it sends counts as foreign text, and it can use /v1 only.",
    KeyKind.PERSON: "What it sends counts as your own words, and it can use everything.",
}


@click.group(cls=CommandGroup, short_help="Make, list and remove API keys.")
def keys() -> None:
    """Make, list and remove API keys, for programs and for people.

    A program's messages count as foreign text: what is learned from them waits for you. A person's messages
    count as yours. The key in serve.key is your own and is not listed here.
    """


@keys.command(short_help="Make a key and print it, once.")
@click.argument("name")
@click.option("--for", "kind", type=KIND, default="program", show_default=True, help="Who will use it.")
@click.pass_obj
def add(options: Options, name: str, kind: str) -> None:
    """Make a key and print it. Only a digest of it is stored, so it cannot be shown again."""
    word = _issued(options).add(name, KeyKind(kind))
    click.echo(word)
    click.echo(f"{name} is a key for a {kind}. {MEANING[KeyKind(kind)]} It is not shown again.", err=True)


@keys.command("list", short_help="List the keys and when each was last used.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.pass_obj
def list_(options: Options, as_json: bool) -> None:
    """List the keys: who each is for, when it was made and when it was last used."""
    issued = _issued(options)
    found, uses = issued.list(), issued.uses()
    if as_json:
        stamps = ((key, uses.get(key.digest)) for key in found)
        echo_json(
            [
                {
                    "name": key.name,
                    "for": key.kind.value,
                    "created": key.created.isoformat(),
                    "used": used.isoformat() if used else None,
                }
                for key, used in stamps
            ]
        )
    elif found:
        rows = [
            (
                key.name,
                key.kind.value,
                moment(key.created),
                moment(uses[key.digest]) if key.digest in uses else "never",
            )
            for key in found
        ]
        click.echo("\n".join(lay_out(("name", "for", "made", "last used"), rows, screen_width())))
    else:
        click.echo("There are no API keys. Make one: hone serve keys add NAME")


@keys.command(short_help="Remove a key; it stops at once.")
@click.argument("name")
@click.pass_obj
def remove(options: Options, name: str) -> None:
    """Remove the key NAME. A running server refuses it from now on and ends what it has under way."""
    gone = _issued(options).remove(name)
    click.echo(f"Removed {gone.name}.")


def _issued(options: Options) -> ApiKeys:
    home = options.home or home_folder()
    return ApiKeys(open_place(home, read(home).database), SystemClock())
