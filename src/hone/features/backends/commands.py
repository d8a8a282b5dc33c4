"""`hone backends`: list memory backends, check whether they respond, and compare them."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from hone.app import Hone
from hone.cli.context import with_home
from hone.cli.help_formatter import CommandGroup
from hone.cli.options import Options
from hone.cli.output import echo, echo_json, moment
from hone.core.backend import Backend, Deleted, MemoryItem
from hone.core.errors import Missing, Refused
from hone.core.visible import visible
from hone.features.backends.durability import PROBE, READY, survives
from hone.features.backends.evaluate import Measured, advice, data, recommend, table
from hone.features.backends.evaluate import svg as drawn
from hone.features.backends.evaluation import describe
from hone.features.backends.evaluation import evaluate as measure
from hone.features.backends.guarded import named
from hone.features.backends.mirror import FOLDER
from hone.features.backends.part import MemoryPart
from hone.knowledge.keeper import OWNER


@click.group(cls=CommandGroup, short_help="Show, read and measure backends that store memories by key.")
def backends() -> None:
    """Manage memory by key across conversations: off, in a file, in PostgreSQL or with Honcho.

    hone.toml says which one, as backend under [memory], or HONE_MEMORY_BACKEND.
    """


@backends.command(name="list", short_help="List the backends.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.pass_obj
def list_(options: Options, as_json: bool) -> None:
    """List the backends, whether each can be used, and which one is in use."""

    async def act(hone: Hone) -> list[dict[str, object]]:
        backing = hone.part(MemoryPart).backing
        used, found = await backing.choose(), []
        for name in backing.names:
            ready = await backing.make(name).available()
            found.append(
                {
                    "name": name,
                    "used": name == used.name,
                    "available": bool(ready),
                    "why_not": ready.why or None,
                    "cloud": backing.make(name).is_cloud,
                    "location": backing.location(name),
                }
            )
        return found

    rows = with_home(options, act)
    if as_json:
        echo_json(rows)
        return
    for row in rows:
        mark = "*" if row["used"] else " "
        click.echo(visible(f"{mark} {row['name']:<10}{row['why_not'] or row['location']}"))


@backends.command(short_help="Show which backend is used, why, and what waits.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@click.pass_obj
def info(options: Options, as_json: bool) -> None:
    """Show which backend is used and why, whether it answers, and how many copies wait for it."""

    async def act(hone: Hone) -> tuple[list[str], dict[str, object]]:
        lines = await describe(hone)
        backing, post = hone.part(MemoryPart).backing, await hone.stores.outbox.post()
        choice = await backing.choose()
        return lines, {
            "backend": choice.name,
            "because": choice.why,
            "user": backing.user_id,
            "cloud": backing.make(choice.name).is_cloud,
            "location": backing.location(choice.name),
            "waiting": post.waiting,
            "refused": post.refused,
            "last_error": post.error or None,
        }

    lines, data = with_home(options, act)
    if as_json:
        echo_json(data)
        return
    echo(map(visible, lines))


@backends.command(short_help="List what is stored, newest first.")
@click.option("--limit", "-n", type=click.IntRange(1), default=100, show_default=True, help="How many keys.")
@click.pass_obj
def keys(options: Options, limit: int) -> None:
    """List the keys that memories are stored under, newest first."""

    async def act(hone: Hone) -> Sequence[str]:
        return await (await _used(hone)).list_keys(hone.part(MemoryPart).backing.user_id, limit)

    echo(with_home(options, act))


@backends.command(short_help="Print what is stored under a key.")
@click.argument("key")
@click.pass_obj
def show(options: Options, key: str) -> None:
    """Print what is stored under KEY, with where it comes from."""

    async def act(hone: Hone) -> MemoryItem:
        found = await (await _used(hone)).retrieve(hone.part(MemoryPart).backing.user_id, key)
        if found is None:
            raise Missing(f"There is nothing under {key!r}. To list the keys: hone backends keys")
        return found

    memory = with_home(options, act)
    click.echo(memory.value)
    facts = {"stored": moment(memory.updated_at), **memory.metadata}
    click.echo("\n".join(["", *(f"{name}: {value}" for name, value in facts.items())]))


@backends.command(short_help="Remove what is stored under a key.")
@click.argument("key")
@click.pass_obj
def rm(options: Options, key: str) -> None:
    """Remove what is stored under KEY."""

    async def act(hone: Hone) -> str:
        part, backend = hone.part(MemoryPart), await _used(hone)
        if named(key).startswith(f"{FOLDER}/"):  # a copy; the ledger has the original
            done = await backend.delete(part.backing.user_id, key)
            return "" if done is Deleted.ABSENT else f"Deleted: {key!r}."
        removed = await part.access(backend).remove(named(key), OWNER)
        back = f"To bring it back: hone undo {await hone.ledger.latest()}"
        return "" if removed.failed else f"{removed.text}\n{back}"

    said = with_home(options, act)
    if not said:
        raise Missing(f"There is nothing under {key!r}. To list the keys: hone backends keys")
    click.echo(visible(said))


async def _used(hone: Hone) -> Backend:
    backend = await hone.part(MemoryPart).used()
    if backend is None:
        raise Refused("No backend is in use. Set backend under [memory] in hone.toml first.")
    return backend


@backends.command(short_help="Measure each backend by using it, and recommend one.")
@click.argument("names", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@click.option("--svg", type=click.Path(path_type=Path), help="Also draw the scores into this file.")
@click.pass_obj
def evaluate(options: Options, names: tuple[str, ...], as_json: bool, svg: Path | None) -> None:
    """Measure the backends NAMES, or all of them, by using each: round trips, time, a set of questions, and
    the kill of a process that has just stored something. Everything stored for that is removed again."""

    async def act(hone: Hone) -> list[Measured]:
        return await measure(hone, names, lambda name: survives(hone, name))

    found = with_home(options, act)
    if svg:
        svg.write_text(drawn(found), encoding="utf-8")
    if as_json:
        best = recommend(found)
        echo_json(
            {
                "backends": [data(each) for each in found],
                "recommended": best.name if best else None,
                "advice": advice(found),
            }
        )
        return
    click.echo(visible(table(found)))


@backends.command(hidden=True)
@click.argument("name")
@click.argument("key")
@click.pass_obj
def probe(options: Options, name: str, key: str) -> None:
    """Store one memory, say so, and wait to be killed."""

    async def act(hone: Hone) -> None:
        await hone.part(MemoryPart).backing.make(name).store(PROBE, key, "kept")
        sys.stdout.write(f"{READY}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()

    with_home(options, act)
