"""`hone trust`: the folders whose contents count as the owner's own."""

from pathlib import Path

import click

from hone.cli.main import Options
from hone.cli.visible import one_line

MEANING = """\
What tools bring from a trusted folder counts as local: Hone may learn from it without asking,
and later follows the instructions it finds there (AGENTS.md and the like), each file once you
have seen it. Everything else that tools bring counts as foreign. Trusting a folder sends nothing
anywhere and gives no further rights."""


@click.command(epilog=f"\b\n{MEANING}")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), required=False)
@click.option("--forget", is_flag=True, help="Trust it no longer.")
@click.option("--list", "listing", is_flag=True, help="Print the trusted folders.")
@click.pass_obj
def trust(options: Options, folder: Path | None, forget: bool, listing: bool) -> None:
    """Trust FOLDER, or the one you are in."""
    from hone.runtime.folders import Folders
    from hone.runtime.lists import OwnersList
    from hone.settings import home_folder

    folders = Folders(OwnersList((options.home or home_folder()) / "trusted.json"))
    if listing:
        click.echo("\n".join(one_line(each, 500) for each in folders.all()) or "No folder is trusted yet.")
        return
    place = (folder or Path.cwd()).resolve()
    if forget:
        folders.forget(place)
        click.echo(f"{one_line(str(place), 500)} is no longer trusted.")
    else:
        folders.trust(place)
        click.echo(f"{one_line(str(place), 500)} is trusted now. Take it back with: hone trust --forget")
