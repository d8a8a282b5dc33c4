"""`hone memory`: show and edit the journal."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from hone.app import Hone
from hone.cli.context import in_home, ledger_of, with_home
from hone.cli.editing import MUST_WAIT, edit_journal
from hone.cli.help_formatter import ExtendedGroup
from hone.cli.options import Options
from hone.cli.output import moment, to_json
from hone.cli.render import Paint, paint_for
from hone.core.errors import Refused
from hone.core.ledger import PROJECT, Entry, Target
from hone.core.messages import digest
from hone.core.screen import screen
from hone.core.visible import one_line, visible
from hone.core.waiting import uninterrupted
from hone.knowledge import descriptions, journal
from hone.knowledge.journal import (
    Add,
    Block,
    Edit,
    PinEntry,
    Remove,
    ReplaceEntry,
    UnpinEntry,
    blocks,
    entries,
    format_entry,
)
from hone.knowledge.keeper import OWNER, Keeper
from hone.knowledge.places import path_of, place_of
from hone.knowledge.sections import Section, data, section, sections, targets

PART = click.Choice(["memory", "user", "project"])
Measured = Mapping[str, Sequence[str]]


@click.group(cls=ExtendedGroup, short_help="Read and change what Hone knows about you and your work.")
def memory() -> None:
    """Read and change the journal: what Hone knows about you and your work.

    It has three parts: memory (the situation), user (you), project (the folder you are in). They are plain
    files in Hone's home, and you may edit them at any time. With a database elsewhere, hone pull brings them
    to a folder.
    """


@memory.command()
@click.option(
    "--project",
    "folder",
    type=click.Path(path_type=Path),
    callback=lambda _, __, folder: folder and folder.expanduser().resolve(),
    help="Show the entries of this folder. [default: the one you are in]",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@in_home
async def show(hone: Hone, folder: Path | None, as_json: bool) -> str:
    """Print the journal, each entry with the change that added it."""
    found = await sections(hone.keeper, folder or hone.folder)
    measured, paint = await measure(hone, found), paint_for(sys.stdout)
    if as_json:
        return to_json([data(each) for each in found])
    return "\n\n".join("\n".join(rows(each, paint, measured)) for each in found)


@memory.command()
@click.argument("text")
@click.option("--to", "part", type=PART, default="memory", show_default=True, help="The part it belongs to.")
@in_home
async def add(hone: Hone, text: str, part: str) -> list[str]:
    """Add the entry TEXT."""
    return await _change(hone, part, Add(text))


@memory.command(short_help="Remove an entry.")
@click.argument("match", metavar="ENTRY")
@click.option("--from", "part", type=PART, help="The part it is in. [default: the one that has it]")
@in_home
async def rm(hone: Hone, match: str, part: str | None) -> list[str]:
    """Remove an entry, named by its text or a unique part of it."""
    return await _change(hone, part, Remove(match), match)


@memory.command(short_help="Replace the text of an entry.")
@click.argument("match", metavar="ENTRY")
@click.argument("text")
@click.option("--in", "part", type=PART, help="The part it is in. [default: the one that has it]")
@in_home
async def replace(hone: Hone, match: str, text: str, part: str | None) -> list[str]:
    """Replace an entry, named by its text or a unique part of it, with TEXT."""
    return await _change(hone, part, ReplaceEntry(match, text), match)


@memory.command(short_help="Pin an entry: only you can change it then.")
@click.argument("match", metavar="ENTRY")
@click.option("--in", "part", type=PART, help="The part it is in. [default: the one that has it]")
@in_home
async def pin(hone: Hone, match: str, part: str | None) -> list[str]:
    """Pin an entry, named by its change number or by a unique part of its text.

    Agents cannot change or remove a pinned entry. What they propose waits for you: hone pending.
    """
    found, text = await _named(hone, match, part)
    return await _change(hone, found, PinEntry(text), text)


@memory.command(short_help="Let agents change a pinned entry again.")
@click.argument("match", metavar="ENTRY")
@click.option("--in", "part", type=PART, help="The part it is in. [default: the one that has it]")
@in_home
async def unpin(hone: Hone, match: str, part: str | None) -> list[str]:
    """Unpin an entry, named by its change number or by a unique part of its text."""
    found, text = await _named(hone, match, part)
    return await _change(hone, found, UnpinEntry(text), text)


@memory.command(short_help="Open a part of the journal in an editor.")
@click.argument("part", type=PART, default="memory")
@click.pass_obj
def edit(options: Options, part: str) -> None:
    """Open a part of the journal in $VISUAL or $EDITOR: memory, user or project.

    You edit a copy. Hone merges what you save with changes made meanwhile and records it as your change. If
    that fails, the copy stays, and Hone says where it is.
    """

    async def read(hone: Hone) -> tuple[Target, Path, str]:
        target = targets(hone.folder)[part]
        return target, hone.home / place_of(target), await _synced(ledger_of(hone), target)

    edited = edit_journal(options, *with_home(options, read))
    if edited.entry is None:
        click.echo("Nothing has changed.")
        click.echo(MUST_WAIT, err=True)
        return
    for notice in edited.notices:
        click.echo(notice)
    entry = edited.entry
    [change] = with_home(options, lambda hone: descriptions.describe(hone.keeper, [entry]))
    click.echo(f"Recorded as change {entry.id}: {descriptions.stat(change.steps)}.")


async def _named(hone: Hone, match: str, part: str | None) -> tuple[str | None, str]:
    """Return the part and the text of the entry that a change added; other names are words of an entry."""
    if not (match.isascii() and match.isdigit()):
        return part, match
    found = [
        (each.name, text)
        for each in await sections(hone.keeper, hone.folder)
        if part in (None, each.name)
        for text, entry in each.brought.items()
        if entry.id == int(match)
    ]
    if len(found) > 1:
        raise Refused(f"Several entries came with change {match}; name one by its text.")
    return found[0] if found else (part, match)


async def _synced(keeper: Keeper, target: Target) -> str:
    """Return what is known, merged with the file. Unlike a plain read, this raises StoreError if the file is
    unreadable."""

    async def take() -> str:
        async with keeper.lock():
            return (await keeper.sync(target)).get(path_of(target), b"").decode()

    return await uninterrupted(take())


async def _change(hone: Hone, part: str | None, edit: Edit, match: str = "") -> list[str]:
    """Make a change the same way as everybody else, with the owner as author. Without a named part, use the
    one that has an entry with `match` in it."""
    keeper, known = hone.keeper, targets(hone.folder)
    target = known[part] if part else await _holder(keeper, known, match)
    [entry] = await keeper.note([(target, edit)], OWNER)
    now = await section(keeper, target)
    return [
        *(f"Note that {flag}." for flag in screen(getattr(edit, "text", "")).flags),
        f"Saved as change {entry.id}; {now.place} now has {now.room}.",
        f"Undo it with: hone undo {entry.id}",
    ]


async def _holder(keeper: Keeper, targets: Mapping[str, Target], match: str) -> Target:
    """Return the only part with such an entry. Raises Refused if several have one, or none."""
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


def rows(section: Section, paint: Paint, measured: Measured) -> Iterator[str]:
    """Yield the rows of a table. `measured` is what experiments say about an entry."""
    about = section.target.removeprefix(PROJECT)
    belongs = f" (for {one_line(about, 200)})" if about != section.target else ""
    room = section.room if section.limit else "switched off in the settings: in no prompt"
    yield f"{paint.bold(f'{section.name}: {section.place}')}{belongs}, {room}"
    found = [block for block in blocks(section.text) if block.entry is not None or block.raw.strip()]
    for block in found:
        yield from _block(block, section, paint)
        yield from (paint.dim(f"      {row}") for row in measured.get(block.entry or "", ()))
    if not found:
        yield paint.dim("  (empty)")
    if any(block.entry is None for block in found):
        yield paint.dim("  (Lines marked │ are your own notes: Hone keeps them, and no prompt has them.)")


def _block(block: Block, section: Section, paint: Paint) -> Iterator[str]:
    if block.entry is None:
        yield from (paint.dim(f"  │ {row}") for row in visible(block.raw).rstrip("\n").split("\n"))
        return
    yield from (f"  {row}" for row in format_entry(visible(block.entry)).rstrip("\n").split("\n"))
    yield paint.dim(f"      {_origin(section.brought.get(block.entry))}")


def _origin(entry: Entry | None) -> str:
    if entry is None:
        return "of unknown origin"
    change = entry.change
    about = f" of {change.about}" if change.about else ""
    doubt = "" if change.confirmed else ", unconfirmed"
    who = f"{one_line(change.kind, 20)}{about} by {one_line(change.author.name, 40)}"
    return f"change {entry.id}: {who}, {moment(entry.at)}{doubt}"


async def measure(hone: Hone, found: Sequence[Section]) -> Measured:
    """Return what was measured about each entry, one line for each study."""
    return {
        entry: await hone.findings("entry", section.target, digest(entry.encode()))
        for section in found
        for entry in entries(section.text)
    }
