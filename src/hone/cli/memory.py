"""`hone memory`: the journal, read and changed by its owner."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hone.cli.main import Options

if TYPE_CHECKING:
    from hone.app import Hone
    from hone.cli.journal import Section
    from hone.core.ledger import Target
    from hone.knowledge.journal import Edit
    from hone.knowledge.keeper import Keeper

PART = click.Choice(["memory", "user", "project"])


@click.group(short_help="Read and change what Hone knows of you and your work.")
def memory() -> None:
    """Read and change the journal: what Hone knows of you and your work.

    It has three parts: memory (the situation), user (you), project (the folder you are in). They are plain
    files in Hone's home, and you may edit them at any time.
    """


@memory.command()
@click.option(
    "--project",
    "folder",
    type=click.Path(path_type=Path),
    help="Show the entries of this folder. [default: the one you are in]",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.pass_obj
def show(options: Options, folder: Path | None, as_json: bool) -> None:
    """Print the journal: each entry with the change it came with."""
    from hone.cli import journal
    from hone.cli.home import with_home
    from hone.cli.log import echo_json
    from hone.cli.paint import paint_for

    wanted = folder.expanduser().resolve() if folder else None

    async def act(hone: "Hone") -> "tuple[list[Section], journal.Measured]":
        found = await journal.sections(hone.keeper, wanted or hone.folder)
        return found, await journal.measured(hone, found)

    found, measured = with_home(options, act)
    if as_json:
        echo_json([journal.data(each) for each in found])
        return
    paint = paint_for(sys.stdout)
    click.echo("\n\n".join("\n".join(journal.rows(each, paint, measured)) for each in found))


@memory.command()
@click.argument("text")
@click.option("--to", "part", type=PART, default="memory", show_default=True, help="The part it belongs to.")
@click.pass_obj
def add(options: Options, text: str, part: str) -> None:
    """Add the entry TEXT."""
    from hone.knowledge.journal import Add

    _change(options, part, Add(text))


@memory.command(short_help="Remove an entry.")
@click.argument("match", metavar="ENTRY")
@click.option("--from", "part", type=PART, help="The part it is in. [default: the one that has it]")
@click.pass_obj
def rm(options: Options, match: str, part: str | None) -> None:
    """Remove an entry, named by its words or a part of them that no other has."""
    from hone.knowledge.journal import Remove

    _change(options, part, Remove(match), match)


@memory.command(short_help="Put other words in the place of an entry.")
@click.argument("match", metavar="ENTRY")
@click.argument("text")
@click.option("--in", "part", type=PART, help="The part it is in. [default: the one that has it]")
@click.pass_obj
def replace(options: Options, match: str, text: str, part: str | None) -> None:
    """Put TEXT in the place of an entry, named by its words or a part of them that no other has."""
    from hone.knowledge.journal import ReplaceEntry

    _change(options, part, ReplaceEntry(match, text), match)


@memory.command(short_help="Open a part of the journal in an editor.")
@click.argument("part", type=PART, default="memory")
@click.pass_obj
def edit(options: Options, part: str) -> None:
    """Open a part of the journal in $VISUAL or $EDITOR: memory, user or project.

    What you save is recorded as your change, like any edit of the file by other means.
    """
    from hone.cli import changes
    from hone.cli.editor import edit as open_editor
    from hone.cli.home import with_keeper
    from hone.cli.journal import place_of, targets

    async def before(hone: "Hone", keeper: "Keeper") -> tuple[Path, int]:
        target = targets(hone.folder)[part]
        await _sync(keeper, target)
        return hone.home / place_of(target), await keeper.ledger.latest()

    file, known = with_keeper(options, before)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    open_editor(file)

    async def after(hone: "Hone", keeper: "Keeper") -> "list[changes.DescribedChange]":
        target = targets(hone.folder)[part]
        await _sync(keeper, target)
        made = await keeper.ledger.entries(target=target)
        return await changes.describe(keeper, [each for each in made if each.id > known])

    found = with_keeper(options, after)
    for change in reversed(found):
        click.echo(f"Recorded as change {change.entry.id}: {changes.stat(change.steps)}.")
    if not found:
        click.echo("Nothing has changed.")


async def _sync(keeper: "Keeper", target: "Target") -> None:
    """Unlike a mere look, this raises StoreError if the file cannot be read."""
    from hone.core.waiting import uninterrupted

    async def take() -> None:
        async with keeper.lock():
            await keeper.sync(target)

    await uninterrupted(take())


def _change(options: Options, part: str | None, edit: "Edit", match: str = "") -> None:
    """By the same way as everybody's edits, with the owner as author. Where no part is named, it is the one
    that has an entry with `match` in it."""
    from hone.cli.home import with_home
    from hone.cli.journal import section, targets
    from hone.core.screen import screen
    from hone.knowledge.keeper import OWNER

    async def act(hone: "Hone") -> list[str]:
        keeper, known = hone.keeper, targets(hone.folder)
        target = known[part] if part else await _holder(keeper, known, match)
        [entry] = await keeper.note([(target, edit)], OWNER)
        now = await section(keeper, target)
        return [
            *(f"Mind that {flag}." for flag in screen(getattr(edit, "text", "")).flags),
            f"Saved as change {entry.id}; {now.place} now has {now.room}.",
            f"Take it back with: hone undo {entry.id}",
        ]

    for row in with_home(options, act):
        click.echo(row)


async def _holder(keeper: "Keeper", targets: "Mapping[str, Target]", match: str) -> "Target":
    """The one part with an entry like this. Raises Refused if several have one, or none."""
    from hone.core.errors import Refused
    from hone.core.visible import visible
    from hone.knowledge import journal

    wanted = journal.normalize(match)
    having = [
        name
        for name, target in targets.items()
        for entry in journal.entries(await keeper.text(target))
        if wanted and (wanted in entry or wanted in visible(entry))
    ]
    if len(set(having)) == 1:
        return targets[having[0]]
    if having:
        raise Refused(f"Several parts have such an entry: {', '.join(dict.fromkeys(having))}. Name one.")
    raise Refused("No entry has these words in it; nothing was changed. hone memory show lists them.")
