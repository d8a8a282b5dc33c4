"""`hone setup`: find what can be used, let the owner choose, test it with one call, write it to hone.toml."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import click

from hone.app import Hone
from hone.cli.keys import ask_key, describe_place, save_key
from hone.cli.models import look
from hone.cli.options import Options, at_terminal
from hone.cli.searching import offer_search
from hone.cli.settings_file import write_settings
from hone.cli.setup_steps import (
    ModelChoice,
    ServerFound,
    find_server,
    find_settings_changes,
    greet,
    name_variable,
)
from hone.cli.terminal.screen import place
from hone.core.errors import HoneError, SettingsError, Unauthorised
from hone.core.loading import import_object
from hone.core.value import replace
from hone.core.visible import one_line, visible
from hone.models.providers import KNOWN, Provider
from hone.registry import CHAT
from hone.runtime.model_factory import KeyedEnvironment
from hone.runtime.offers import ModelOffer, ModelOffers
from hone.settings import Settings, home_folder, read
from hone.stores.keys import ProviderKeys

SHOWN = 8
"""How many models of one provider to list among the choices."""
ADDRESS = "a server at another address"
NOTHING = "No model can be used yet: no key is set or stored, and no local server answers."
ALONE = (
    "Hone cannot ask here. Use --yes for the first model it finds, or name one: "
    "--model PROVIDER/NAME or --url ADDRESS"
)


@click.command(short_help="Choose a model, test it and write it to hone.toml.")
@click.option("--model", "-m", default="", metavar="PROVIDER/NAME", help="Use this model, and ask nothing.")
@click.option("--url", default="", metavar="ADDRESS", help="Use the server at this address.")
@click.option("--name", default="", help="What to call that server in hone.toml. [default: mine]")
@click.option("--key", default="", metavar="VARIABLE", help="The variable that holds that server's key.")
@click.option("--yes", "-y", is_flag=True, help="Use the first model found.")
@click.pass_obj
def setup(options: Options, *, model: str, url: str, name: str, key: str, yes: bool) -> int:
    """Choose a model, test it and write it to hone.toml.

    Looks for keys in the environment, for stored keys and for servers on this machine, and offers what it
    finds. It tests your choice with one call before it writes anything. Everything else in hone.toml stays.
    """
    steps = Setup(options.home or home_folder())
    wanted = model or options.model
    if not (url or wanted or yes):
        if not at_terminal():
            raise click.UsageError(ALONE)
        return _converse(steps, options)
    if url:
        choice = steps.choose_server(
            url, name, key, "" if not wanted else wanted.rpartition("/")[2], ask=False
        )
    else:
        choice = ModelChoice(wanted) if wanted else steps.choose_first()
    steps.test(choice)
    steps.write(choice)
    click.echo("Talk to it: hone")
    return 0


def _converse(steps: "Setup", options: Options) -> int:
    """Ask until a choice works."""
    while True:
        try:
            choice = steps.test(steps.ask(), ask=True)
        except HoneError as error:
            click.echo(f"✗ {visible(str(error))}\n")
            continue
        break
    steps.write(choice)
    if not click.confirm("Talk to it now?", default=True):
        click.echo("Start it any time: hone")
        return 0
    click.echo()
    code: int = import_object(CHAT)(options, ())
    return code


class Setup:
    """One run of the command on a home."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.settings: Settings = read(home)

    def look(self) -> ModelOffers:
        async def act() -> ModelOffers:
            async with Hone(home=self.home, settings=self.settings, learning="off") as hone:
                return await look(hone)

        return asyncio.run(act())

    def choose_first(self) -> ModelChoice:
        found = self.look()
        if not found.usable:
            raise SettingsError(
                "\n".join((NOTHING, *found.notes, "Store a key first: hone keys set anthropic"))
            )
        return ModelChoice(found.usable[0].name)

    def ask(self) -> ModelChoice:
        """Offer the options, numbered; the first is the default."""
        click.echo("Looking for keys and local servers …\n")
        found = self.look()
        offers, keyless = _shorten(found.usable), self._find_keyless()
        rows = [(each.name, each.why) for each in offers]
        rows += [(f"{each.name}/{each.default}", f"asks for a key: {each.key}") for each in keyless]
        for note in found.notes:
            click.echo(f"✗ {visible(note)}")
        if not offers:
            click.echo(NOTHING)
        number = _pick("Which one?", [*_align(rows), ADDRESS])
        if number < len(offers):
            return ModelChoice(offers[number].name)
        if number < len(rows):
            return self._take_key(keyless[number - len(offers)])
        return self.choose_server(
            str(click.prompt("Its address, such as 127.0.0.1:8000")), "", "", "", ask=True
        )

    def choose_server(self, url: str, name: str, key: str, model: str, *, ask: bool) -> ModelChoice:
        """Find a server and one of its models. Raises HoneError if it cannot be used."""
        found = self._find_server(url, name, key)
        choice = ModelChoice(f"{found.name}/{model}", found.url, found.variable if found.has_key else "")
        if found.wants_key:
            choice = self._with_key(choice, ask=ask)
            found = self._find_server(url, found.name, choice.key)
        if not model and len(found.models) > 1 and ask:
            model = found.models[_pick("Which of its models?", found.models[:SHOWN])]
        model = model or next(iter(found.models), "")
        if not model:
            raise SettingsError(f"{found.url} lists no models. Name the one to use with --model.")
        return replace(choice, model=f"{found.name}/{model}")

    def test(self, choice: ModelChoice, *, ask: bool = False) -> ModelChoice:
        """Ask the model one question, and ask for a key if it wants one. Raises HoneError; a typed key that
        is refused is not kept."""
        click.echo(f"Testing {visible(choice.model)} …")
        try:
            said = asyncio.run(greet(self.home, self.settings, choice))
        except Unauthorised:
            if choice.stored:
                ProviderKeys(self.home).remove(choice.stored)
                click.echo(f"{choice.stored} was refused and is not kept.")
            if not choice.url or choice.key:
                raise
            return self.test(self._with_key(choice, ask=ask))
        click.echo(f"✓ {visible(choice.model)} answered: {one_line(visible(said), 60)}")
        return choice

    def _with_key(self, choice: ModelChoice, *, ask: bool) -> ModelChoice:
        """Ask for the key of a new server."""
        variable = name_variable(choice.model.partition("/")[0])
        if not ask:
            raise Unauthorised(
                f"{choice.url} wants a key. Put it into a variable and name that, such as: --key {variable}"
            )
        return replace(choice, key=self._store(variable), stored=variable)

    def write(self, choice: ModelChoice) -> None:
        file = self.home / "hone.toml"
        write_settings(file, find_settings_changes(choice))
        click.echo(f"Wrote {visible(place(str(file)))}: model = {visible(choice.model)}")
        named = os.environ.get("HONE_MODEL", "")
        if named and named != choice.model:
            click.echo(f"HONE_MODEL is set to {visible(named)} and wins over hone.toml; unset it.", err=True)
        if offer := offer_search(self.settings):
            click.echo(offer)

    def _find_server(self, url: str, name: str, key: str) -> ServerFound:
        return asyncio.run(find_server(self.home, self.settings, url, name, key))

    def _find_keyless(self) -> list[Provider]:
        """Return the known providers that only lack a key."""
        environ = KeyedEnvironment(self.home, self.settings)
        known = (each for each in KNOWN if each.key and each.name not in self.settings.providers)
        return [each for each in known if not environ.get(each.key)]

    def _take_key(self, provider: Provider) -> ModelChoice:
        return ModelChoice(f"{provider.name}/{provider.default}", stored=self._store(provider.key))

    def _store(self, variable: str) -> str:
        key = save_key(self.home, variable, ask_key(variable))
        click.echo(f"Stored {variable} in {describe_place(key, self.home)}.")
        return variable


def _shorten(offers: Sequence[ModelOffer]) -> list[ModelOffer]:
    """Shorten the list of a provider with too many models."""
    counts: dict[str, int] = {}
    kept = []
    for offer in offers:
        provider = offer.name.partition("/")[0]
        counts[provider] = counts.get(provider, 0) + 1
        if counts[provider] <= SHOWN:
            kept.append(offer)
    return kept


def _align(rows: Sequence[tuple[str, str]]) -> list[str]:
    width = max((len(name) for name, _ in rows), default=0)
    return [f"{name.ljust(width)}  {why}" for name, why in rows]


def _pick(question: str, rows: Sequence[str]) -> int:
    """Ask for one of the rows; the first is the default."""
    click.echo()
    for number, row in enumerate(rows, 1):
        click.echo(f"  {number}. {visible(row)}")
    click.echo()
    number = click.prompt(question, type=click.IntRange(1, len(rows)), default=1)
    return int(number) - 1
