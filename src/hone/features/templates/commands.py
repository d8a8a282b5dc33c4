"""`hone templates`: keep calls that worked as examples for the start of other sessions."""

from collections.abc import Iterator, Sequence
from typing import Any

import click

from hone.app import Hone
from hone.cli.context import with_home
from hone.cli.help_formatter import CommandGroup
from hone.cli.listing import folded
from hone.cli.options import Options
from hone.cli.output import echo, echo_json, lay_out, number_of, screen_width
from hone.cli.render import describe, extent
from hone.core.messages import ToolCall
from hone.core.trust import Trust
from hone.core.visible import one_line, visible
from hone.features.templates.part import TemplatesPart
from hone.features.templates.seeding import TemplateOptions
from hone.features.templates.template_file import examples_digest, to_dict
from hone.features.templates.values import Template, WorkKind, is_listed

EMPTY = "There are no templates yet. Make one: hone templates create SESSION"
FOREIGN = "Foreign text was read in that session: what is learned after these examples waits for you."
TITLES = ("name", "type", "examples", "uses", "about")
WORK = click.Choice(["code", "file", "research", "mixed"])
EPILOG = """\b
Examples:
  hone templates create 3f2a --name notes --tags git
  hone --template notes          begin a chat with it
  hone run --template auto "…"   with the best one
"""


@click.group(
    cls=CommandGroup, epilog=EPILOG, short_help="Keep calls that worked as examples for new sessions."
)
def templates() -> None:
    """Keep calls that worked in one session as examples for the beginning of others.

    A template is a file in Hone's home, below templates/. Foreign text and secrets do not get into it.
    """


def _tags(_: click.Context, __: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    words = (word.strip().casefold() for each in value for word in each.split(","))
    return tuple(dict.fromkeys(word for word in words if word))


@templates.command()
@click.argument("session")
@click.option("--name", default="", help="1 to 64 of a-z, 0-9 and -. [default: from the description]")
@click.option("--type", "work", type=WORK, help="The kind of work. [default: found out from the calls]")
@click.option(
    "--max-examples",
    "most",
    type=click.IntRange(1, 50),
    default=10,
    show_default=True,
    help="How many calls to keep at most.",
)
@click.option("--description", default="", help="What it is for. [default: your first words in the session]")
@click.option("--tags", multiple=True, callback=_tags, help="Words to find it by: a,b or several --tags.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@click.pass_obj
def create(
    options: Options,
    session: str,
    name: str,
    work: str | None,
    most: int,
    description: str,
    tags: tuple[str, ...],
    as_json: bool,
) -> None:
    """Make a template of the calls in SESSION that succeeded."""
    wish = TemplateOptions(name, WorkKind(work) if work else None, most, description, tags)
    made = with_home(options, lambda hone: hone.part(TemplatesPart).create(session, wish))
    if as_json:
        echo_json(to_dict(made))
        return
    click.echo(f"Made template {made.name} ({made.work}, {number_of(len(made.examples), 'example')}):")
    click.echo("\n".join(_briefly(made)))
    if any(Trust.FOREIGN in (each.call_trust, each.result_trust) for each in made.examples):
        click.echo(FOREIGN)
    click.echo(f"Begin with it: hone --template {made.name}")


@templates.command("list")
@click.option("--type", "work", type=WORK, help="Only this kind of work.")
@click.option("--tags", multiple=True, callback=_tags, help="Only those with one of these tags or more.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.pass_obj
def list_(options: Options, work: str | None, tags: tuple[str, ...], as_json: bool) -> None:
    """List templates by name."""
    found = [each for each in _all(options) if is_listed(each, work, tags)]
    if as_json:
        echo_json([_summary(each) for each in found])
    elif found:
        echo(lay_out(TITLES, [_row(each) for each in found], screen_width(), right=("examples", "uses")))
    else:
        click.echo("There are no such templates." if work or tags else EMPTY)


@templates.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print all that the file says.")
@click.pass_obj
def show(options: Options, name: str, as_json: bool) -> None:
    """Print the template NAME with its examples."""

    async def act(hone: Hone) -> tuple[Template, list[str]]:
        found = await hone.part(TemplatesPart).store.read(name)
        return found, await hone.findings("template", name, examples_digest(found))

    found, measured = with_home(options, act)
    if as_json:
        echo_json(to_dict(found))
        return
    click.echo(f"{found.name} ({found.work}, {number_of(len(found.examples), 'example')}, {_used(found)})")
    if found.description:
        click.echo(one_line(found.description, 200))
    click.echo(f"made from session {found.session} on {found.created.astimezone():%Y-%m-%d}")
    if found.tags:
        click.echo(one_line(f"tags: {', '.join(found.tags)}", 200))
    echo(measured)
    click.echo("\n".join(_wholly(found)))


@templates.command()
@click.argument("name")
@click.pass_obj
def delete(options: Options, name: str) -> None:
    """Delete the template NAME: its file is removed.

    Sessions that began with it keep their examples.
    """
    with_home(options, lambda hone: hone.part(TemplatesPart).store.delete(name))
    click.echo(f"Deleted template {name}.")


@templates.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@click.pass_obj
def stats(options: Options, as_json: bool) -> None:
    """Count templates, their examples and their use, in all and by type."""
    found = _all(options)
    figures = statistics(found)
    if as_json:
        echo_json(figures)
    elif not found:
        click.echo(EMPTY)
    else:
        click.echo(f"{'type':<10}{'templates':>10}{'examples':>10}{'uses':>8}")
        rows = [*figures["by_type"].items(), ("all", figures)]
        for name, each in rows:
            click.echo(f"{name:<10}{each['total']:>10,}{each['examples']:>10,}{each['uses']:>8,}")


def statistics(found: Sequence[Template]) -> dict[str, Any]:
    """Return the statistics, in total and for each type."""
    kinds = sorted({each.work for each in found})
    return {
        **_figures(found),
        "by_type": {str(kind): _figures([each for each in found if each.work is kind]) for kind in kinds},
    }


def _figures(found: Sequence[Template]) -> dict[str, int]:
    return {
        "total": len(found),
        "examples": sum(len(each.examples) for each in found),
        "uses": sum(len(each.uses) for each in found),
    }


def _all(options: Options) -> list[Template]:
    """Return the usable templates; errors of the others go to standard error."""

    async def act(hone: Hone) -> list[Template]:
        found, faults = await hone.part(TemplatesPart).store.all()
        hone.notices += faults
        return found

    return with_home(options, act)


def _summary(template: Template) -> dict[str, object]:
    counted = {"examples": len(template.examples), "uses": len(template.uses)}
    return {name: value for name, value in to_dict(template).items() if name != "format"} | counted


def _row(each: Template) -> tuple[str, ...]:
    tags = f"[{', '.join(each.tags)}] " if each.tags else ""
    counts = f"{len(each.examples)}", f"{len(each.uses):,}"
    return each.name, str(each.work), *counts, tags + each.description


def _briefly(template: Template) -> Iterator[str]:
    """Yield one line per call, or the full call if the model had read foreign text before it wrote the
    arguments."""
    for example in template.examples:
        call = describe(ToolCall("", example.tool, example.arguments))
        if example.call_trust is Trust.FOREIGN:
            call = visible(f"{example.tool} {example.arguments}")
        unkept = f"{example.size:,} characters of foreign text, not kept"
        yield f"  → {call}: {unkept if example.result_trust is Trust.FOREIGN else extent(example.result)}"


def _wholly(template: Template) -> Iterator[str]:
    for example in template.examples:
        yield ""
        yield from folded(f"→ {example.tool} {example.arguments}", full=True)
        yield from (f"  {line}" for line in folded(example.result, full=True))
        labels = f"call {example.call_trust.name.lower()}, result {example.result_trust.name.lower()}"
        yield f"  ({example.size:,} characters; {labels})"


def _used(template: Template) -> str:
    uses = len(template.uses)
    return "not used yet" if not uses else "used once" if uses == 1 else f"used {uses:,} times"
