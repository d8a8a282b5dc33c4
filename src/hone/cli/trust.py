"""`hone trust`: list and change the trusted folders and the approved instruction files in them."""

from pathlib import Path

import click

from hone.cli.options import FAILED, Options, confirm
from hone.core.visible import one_line, visible
from hone.runtime.instructions import FoundInstructions, Instructions, UnusedInstructions, look
from hone.runtime.trust import Folders, OwnersList
from hone.settings import home_folder

MEANING = """\
What tools bring from a trusted folder counts as local: Hone may learn from it without asking,
and follows the instructions it finds there (AGENTS.md, CLAUDE.md or .hone/instructions.md, the
first that is there) as you have seen them: after a change they are not used until you say so
again. Everything else that tools bring counts as foreign. Trusting a folder sends nothing
anywhere and gives no further rights."""


@click.command(epilog=f"\b\n{MEANING}")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), required=False)
@click.option("--forget", is_flag=True, help="Trust it no longer.")
@click.option("--list", "listing", is_flag=True, help="Print the trusted folders.")
@click.option("--yes", is_flag=True, help="Do not ask whether its instructions are to be followed.")
@click.pass_obj
def trust(options: Options, folder: Path | None, forget: bool, listing: bool, yes: bool) -> int:
    """Trust FOLDER, or the one you are in.

    If there are instructions for agents in it, they are shown, and you are asked whether to follow them.
    """
    home = options.home or home_folder()
    folders = Folders(home)
    instructions = Instructions(folders, OwnersList(home / "instructions.json"))
    if listing:
        click.echo("\n".join(one_line(each, 500) for each in folders.all()) or "No folder is trusted yet.")
        return 0
    place = (folder or Path.cwd()).resolve()
    called = one_line(str(place), 500)
    if forget:
        instructions.forget(place)
        click.echo(f"{called} is no longer trusted.")
        return 0
    found = look(place)
    file = found if isinstance(found, FoundInstructions) else None
    if file and not _agreed(file, called, yes=yes):
        click.echo("Nothing was changed.")
        return FAILED
    instructions.trust(place, file)
    followed = f", and its {file.name} is followed as shown" if file else ""
    click.echo(f"{called} is trusted now{followed}. Take it back with: hone trust --forget")
    if isinstance(found, UnusedInstructions):
        click.echo(found.why)
    return 0


def _agreed(found: FoundInstructions, called: str, *, yes: bool) -> bool:
    click.echo("\n".join(shown(found)))
    alone = f"Nobody can be asked here whether to follow {found.name}: say --yes."
    return confirm(f"Trust {called}, and follow its {found.name} as shown?", alone, yes=yes)


def shown(found: FoundInstructions) -> list[str]:
    """The file to the letter; nothing in it can steer the terminal or pass for a line of ours."""
    lines = visible(found.text).rstrip("\n").split("\n")
    count = "1 line" if len(lines) == 1 else f"{len(lines):,} lines"
    return [f"{found.name}, {count}:", *(f"  │ {line}" for line in lines)]
