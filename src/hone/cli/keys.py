"""`hone keys`: store, list and remove the keys of model providers and MCP servers."""

import os
from collections.abc import Iterable
from pathlib import Path

import click

from hone.cli.help_formatter import CommandGroup
from hone.cli.options import Options, at_terminal, read_piped
from hone.cli.output import echo_json, lay_out, moment, screen_width
from hone.core.clock import SystemClock
from hone.core.regex import regex
from hone.core.visible import visible
from hone.models.providers import Provider
from hone.runtime.model_factory import list_providers
from hone.settings import home_folder, read
from hone.stores.keys import FILE, ProviderKey, ProviderKeys, find_keyring

_VARIABLE = regex(r"(?=.{3,64}\Z)[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")


@click.group(
    cls=CommandGroup, short_help="Store, list and remove the keys of model providers and MCP servers."
)
def keys() -> None:
    """Store, list and remove the keys of model providers and MCP servers.

    A key goes into the system keyring if there is one and the extra is installed (pip install
    'hone-agent[keyring]'), else into a file in Hone's home that only you can read. The agent and its commands
    see neither. A key in the environment wins over a stored one.
    """


@keys.command("set", short_help="Store the key of a provider. Hone asks for it.")
@click.argument("name")
@click.argument("rest", nargs=-1, metavar="")
@click.option("--file", "in_file", is_flag=True, help="Use the file in Hone's home, not the system keyring.")
@click.pass_obj
def set_(options: Options, name: str, rest: tuple[str, ...], in_file: bool) -> None:
    """Store the key of NAME: a provider, or a variable.

    A variable holds a provider's key, or it is one that an MCP server gets: ${NAME} in its env or headers.
    Its name has capital letters, digits and underscores.

    Hone asks for the key and does not show it, or reads it from standard input. A key is never an argument:
    arguments stay in the shell's history, and other programs can see them.
    """
    variable = name if _is_variable(name) else find_variable(name, _providers(options))
    if rest:
        raise click.UsageError(
            f"A key is never an argument. Leave it out: hone keys set {name} asks for it. "
            "The one you typed is now in your shell's history; delete it there."
        )
    key = save_key(_home(options), variable, ask_key(variable), in_file=in_file)
    click.echo(f"Stored {variable} in {describe_place(key, _home(options))}.")
    if not any(each.key == variable for each in _providers(options)):
        click.echo(
            f"No model provider uses it. An MCP server gets it where its env or headers say ${{{variable}}}."
        )
    if os.environ.get(variable):
        click.echo(f"{variable} is also set in the environment, and Hone uses that one.", err=True)


@keys.command("list", short_help="List the keys that are stored or set; never their values.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.pass_obj
def list_(options: Options, as_json: bool) -> None:
    """List which keys there are and where each one is, never the keys themselves."""
    providers, stored = _providers(options), ProviderKeys(_home(options)).list()
    names = [name for name in _variables(providers) if name in stored or os.environ.get(name)]
    names += [name for name in stored if name not in names]
    found = [_describe(name, providers, stored.get(name)) for name in names]
    if as_json:
        echo_json(found)
    elif found:
        rows = [(each["name"], each["provider"], each["used"], each["stored"]) for each in found]
        click.echo("\n".join(lay_out(("name", "provider", "used from", "stored"), rows, screen_width())))
    else:
        click.echo("There are no keys. Store one: hone keys set anthropic")


@keys.command(short_help="Remove a stored key.")
@click.argument("name")
@click.pass_obj
def remove(options: Options, name: str) -> None:
    """Remove the stored key of NAME: a provider, or the variable that holds its key."""
    kept = ProviderKeys(_home(options))
    variable = name if name in kept.list() else find_variable(name, _providers(options))
    gone = kept.remove(variable)
    click.echo(f"Removed {variable} from the {gone.place}.")
    if os.environ.get(variable):
        click.echo(f"{variable} is still set in the environment, and Hone uses it.", err=True)


def find_variable(name: str, providers: Iterable[Provider]) -> str:
    """Return the variable of a provider's key. Raises UsageError, which never repeats what may be a key."""
    known = [each for each in providers if each.key]
    for each in known:
        if name in (each.name, each.key):
            return each.key
    names = ", ".join(dict.fromkeys(each.name for each in known))
    raise click.UsageError(
        f"No provider with a key has this name. These have one: {names}. "
        "Another one needs its table in hone.toml first, with `key`: see hone config. "
        "For an MCP server, give the name of a variable, such as TRACKER_TOKEN."
    )


def _is_variable(name: str) -> bool:
    """Tell whether a text must be the name of a variable. Without an underscore it may be a key."""
    return _VARIABLE.fullmatch(name) is not None


def ask_key(variable: str) -> str:
    """Ask for a key without echoing it, or read it from standard input if nobody is there."""
    if at_terminal():
        return str(click.prompt(f"{variable} (not shown)", hide_input=True, default="", show_default=False))
    return read_piped()


def save_key(home: Path, variable: str, value: str, *, in_file: bool = False) -> ProviderKey:
    """Store a key. Raises Refused or StoreError."""
    return ProviderKeys(home, find_keyring).set(variable, value, SystemClock().now(), in_file=in_file)


def describe_place(key: ProviderKey, home: Path) -> str:
    if key.place == "keyring":
        return "the system keyring"
    return f"{visible(str(home / FILE))}, which only you can read"


def _describe(name: str, providers: Iterable[Provider], key: ProviderKey | None) -> dict[str, str]:
    is_set = bool(os.environ.get(name))
    return {
        "name": name,
        "provider": ", ".join(each.name for each in providers if each.key == name) or "none",
        "used": "environment" if is_set else key.place if key else "",
        "stored": f"{key.place}, {moment(key.created)}" if key else "no",
    }


def _variables(providers: Iterable[Provider]) -> list[str]:
    return list(dict.fromkeys(each.key for each in providers if each.key))


def _providers(options: Options) -> tuple[Provider, ...]:
    return list_providers(read(_home(options)))


def _home(options: Options) -> Path:
    return options.home or home_folder()
