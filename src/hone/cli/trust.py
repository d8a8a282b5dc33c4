"""`hone trust`: list and change the trusted folders and files, and the approved instruction files."""

from pathlib import Path

import click

from hone.cli.options import FAILED, Options, confirm
from hone.core.visible import one_line, visible
from hone.runtime.instructions import FoundInstructions, Instructions, UnusedInstructions, look
from hone.runtime.provenance.trusting import ForeignFile, find_foreign, trust_files, trust_folder
from hone.runtime.trust import Folders, OwnersList
from hone.settings import home_folder

MEANING = """\
What tools bring from a trusted folder counts as local: Hone may learn from it without asking,
and follows the instructions it finds there (AGENTS.md, CLAUDE.md or .hone/instructions.md, the
first that is there) as you have seen them: after a change they are not used until you say so
again. Everything else that tools bring counts as foreign. So does a file that Hone wrote in
a trusted folder after it had read something foreign, or that a command with network wrote,
until you edit it, commit it, or name it here. Trusting sends nothing anywhere and gives no
further rights."""
LINES = 400
"""Lines of a file that are shown."""


@click.command(epilog=f"\b\n{MEANING}")
@click.argument("paths", metavar="[FOLDER | FILE...]", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--forget", is_flag=True, help="Trust it no longer.")
@click.option("--list", "listing", is_flag=True, help="Print the trusted folders.")
@click.option("--yes", is_flag=True, help="Do not ask about what is shown.")
@click.pass_obj
def trust(options: Options, paths: tuple[Path, ...], forget: bool, listing: bool, yes: bool) -> int:
    """Trust FOLDER, or the one you are in; or each FILE as it is shown.

    If there are instructions for agents in a folder, you see them and are asked whether to follow them.
    """
    home = options.home or home_folder()
    named_files = [path for path in paths if not path.is_dir()]
    if (len(paths) > 1 and named_files != [*paths]) or (forget and named_files):
        raise click.UsageError("Name one folder, or files to trust.")
    if named_files and not listing:
        return _trust_files(home, named_files, yes=yes)
    folders = Folders.of(home)
    instructions = Instructions(folders, OwnersList(home / "instructions.json"))
    if listing:
        click.echo("\n".join(one_line(each, 500) for each in folders.all()) or "No folder is trusted yet.")
        return 0
    place = (paths[0] if paths else Path.cwd()).resolve()
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
    trust_folder(home, place)
    followed = f", and its {file.name} is followed as shown" if file else ""
    click.echo(f"{called} is trusted now{followed}. Take it back with: hone trust --forget")
    if isinstance(found, UnusedInstructions):
        click.echo(found.why)
    return 0


def _trust_files(home: Path, paths: list[Path], *, yes: bool) -> int:
    """What was shown is what is trusted, by its bytes."""
    found = [(path, find_foreign(home, path)) for path in paths]
    for path in [path for path, file in found if file is None]:
        click.echo(f"{one_line(str(path), 300)} is not foreign.")
    files = [file for _, file in found if file]
    if not files:
        return 0
    for file in files:
        click.echo("\n".join(_excerpt(file)))
    alone = "Nobody can be asked here whether to trust this: say --yes."
    count = "this file" if len(files) == 1 else f"these {len(files)} files"
    if not confirm(f"Trust {count} as shown?", alone, yes=yes):
        click.echo("Nothing was changed.")
        return FAILED
    trust_files(home, files)
    click.echo(f"Trusted {count} as shown. A change by Hone may make it foreign again.")
    return 0


def _excerpt(file: ForeignFile) -> list[str]:
    """The file to the letter; nothing in it can steer the terminal or pass for a line of ours."""
    lines = visible(file.text).rstrip("\n").split("\n")
    count = "1 line" if len(lines) == 1 else f"{len(lines):,} lines"
    rows = [f"  │ {line}" for line in lines[:LINES]]
    more = [f"  … {len(lines) - LINES:,} more lines, which become trusted, too"] if len(lines) > LINES else []
    return [f"{one_line(str(file.path), 300)}, {count}, {len(file.data):,} bytes:", *rows, *more]


def _agreed(found: FoundInstructions, called: str, *, yes: bool) -> bool:
    click.echo("\n".join(shown(found)))
    alone = f"Nobody can be asked here whether to follow {found.name}: say --yes."
    return confirm(f"Trust {called}, and follow its {found.name} as shown?", alone, yes=yes)


def shown(found: FoundInstructions) -> list[str]:
    """The file to the letter; nothing in it can steer the terminal or pass for a line of ours."""
    lines = visible(found.text).rstrip("\n").split("\n")
    count = "1 line" if len(lines) == 1 else f"{len(lines):,} lines"
    return [f"{found.name}, {count}:", *(f"  │ {line}" for line in lines)]
