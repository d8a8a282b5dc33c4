"""`hone memory promote`: make a project's entry one of the owner's, in every folder."""

import click

from hone.app import Hone
from hone.cli.context import with_home, writable_keeper
from hone.cli.options import FAILED, Options, at_terminal
from hone.cli.output import echo
from hone.core.errors import Refused
from hone.core.ledger import PROJECT, Entry, Target
from hone.features.team.exposures import find_exposures
from hone.features.team.preparing import find_entry, find_trust
from hone.features.team.showing import describe_shown
from hone.features.team.values import ENTRY, ShareReport, place_exposures
from hone.knowledge.journal import Add, Edit, Remove
from hone.knowledge.keeper import OWNER
from hone.knowledge.sections import targets


@click.command()
@click.argument("entry", metavar="ENTRY")
@click.option(
    "--to",
    "part",
    type=click.Choice(["memory", "user"]),
    default="memory",
    show_default=True,
    help="The part it belongs to then.",
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def promote(options: Options, entry: str, part: str, yes: bool) -> int:
    """Make an entry of this project yours in every folder.

    ENTRY is its change number or a unique part of its text. Hone shows what the text tells first. It is one
    change, and hone undo takes it back.
    """
    shown, text = with_home(options, lambda hone: prepare(hone, entry))
    echo(describe_shown(shown))
    if not yes and not at_terminal():
        raise click.UsageError("Hone cannot ask here whether to do this. Add --yes.")
    if not yes and not click.confirm("Use this entry in every folder?"):
        return FAILED
    made = with_home(options, lambda hone: promote_entry(hone, text, part))
    click.echo(f"Saved as change {made.id}: the entry is in {part} now. Undo it with: hone undo {made.id}")
    return 0


async def prepare(hone: Hone, match: str) -> tuple[ShareReport, str]:
    """Return an entry of this folder's project as it is shown. Raises Refused for any other."""
    found = await find_entry(hone, match)
    if not found.section.target.startswith(PROJECT):
        raise Refused(f"This entry is yours in every folder already, in {found.section.name}.")
    trust = await find_trust(hone.keeper, found.origin)
    exposures = place_exposures(ENTRY, found.text, find_exposures(found.text))
    return ShareReport("", {ENTRY: found.text}, tuple(exposures), trust=trust), found.text


async def promote_entry(hone: Hone, text: str, part: str) -> Entry:
    """Move an entry in one step, and return its first change. Its evidence is kept."""
    known, found = targets(hone.folder), await find_entry(hone, text)
    edits: list[tuple[Target, Edit]] = [(known["project"], Remove(text)), (known[part], Add(text))]
    moved = found.origin.id if found.origin else None
    keeper = writable_keeper(hone)
    made = await keeper.note(edits, OWNER, moved=moved)
    return made[0]
