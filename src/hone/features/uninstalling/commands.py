"""`hone uninstall`: stop the worker, remove the package, and with --purge the home and the stored keys."""

import asyncio
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import click

from hone.cli.options import Options, confirm
from hone.cli.output import number_of
from hone.cli.worker import end_worker
from hone.core.errors import HoneError, Refused, StoreError
from hone.core.secrets.known import mask_password
from hone.core.visible import visible
from hone.features.uninstalling.installation import Installation, find_installation
from hone.runtime.alone import alone_in
from hone.settings import home_folder, read
from hone.stores.home import FILE
from hone.stores.keys import ProviderKey, ProviderKeys

KNOWN = (FILE, "hone.toml", "MEMORY.md", "USER.md", "keys.json", "moved.json")
"""Any of these makes a folder a home of Hone's."""
ALONE = "Nobody is here to ask. Say --yes, or look first with --dry-run."
KIBIBYTE = 1024


@click.command(short_help="Remove Hone from this machine; your data only with --purge.")
@click.option("--purge", is_flag=True, help="Delete your home folder and your stored keys, too.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def uninstall(options: Options, purge: bool, dry_run: bool, yes: bool) -> int:
    """Stop the worker and remove Hone's package, with the tool that installed it.

    Your home folder (conversations, journal, skills, settings) and your stored keys stay unless you say
    --purge. To keep a copy first: hone backup FILE
    """
    home, installed = options.home or home_folder(), find_installation()
    keys = _find_keys(home)
    if purge:
        _check_home(home)
    _announce(home, installed, keys, purge=purge)
    if dry_run:
        return 0
    question = "Delete all of this? It cannot be undone." if purge else "Remove Hone?"
    if not confirm(question, ALONE, yes=yes):
        click.echo("Nothing was removed.")
        return 1
    click.echo(asyncio.run(end_worker(home)))
    if purge:
        _purge(home, keys)
    # From here on the package's files are gone: nothing may be imported anymore.
    return _remove(installed)


def _announce(home: Path, installed: Installation, keys: Mapping[str, ProviderKey], *, purge: bool) -> None:
    """Describe what is removed and what stays."""
    verb, there = "Deletes" if purge else "Keeps", visible(str(home))
    if installed.command:
        click.echo(f"Removes Hone, which was installed with {installed.kind}: {' '.join(installed.command)}")
    else:
        click.echo(installed.advice)
    if home.is_dir():
        files = [each for each in home.rglob("*") if each.is_file() and not each.is_symlink()]
        size = sum(each.stat().st_size for each in files) / KIBIBYTE
        click.echo(f"{verb} your home {there}: {number_of(len(files), 'file')}, {size:,.0f} KiB.")
    else:
        click.echo(f"There is no home at {there}.")
    for name, key in sorted(keys.items()):
        click.echo(f"{verb} the key {name} in the {'system keyring' if key.place == 'keyring' else 'home'}.")
    if address := _find_database(home):
        click.echo(f"Keeps your data in {address}. To erase it there, use hone erase first.")
    if not purge and (home.is_dir() or keys):
        click.echo("To delete them, too: hone uninstall --purge")


def _find_keys(home: Path) -> Mapping[str, ProviderKey]:
    try:
        return ProviderKeys(home).list()
    except StoreError:
        return {}  # the file cannot be read, and is deleted with the home


def _find_database(home: Path) -> str:
    try:
        return mask_password(read(home).database)
    except HoneError:
        return ""  # an unreadable hone.toml must not prevent the removal of Hone


def _check_home(home: Path) -> None:
    """Raise Refused unless this folder is a home of Hone's and nothing else."""
    place = home.resolve()
    if home.is_symlink():
        raise Refused(f"{visible(str(home))} is a link. Delete what it points to yourself: {place}")
    if not home.exists():
        return
    if place in (Path.home().resolve(), Path("/")) or not any((home / name).exists() for name in KNOWN):
        raise Refused(
            f"{visible(str(home))} does not look like a home of Hone's; nothing was removed. "
            "Name the right one: HONE_HOME=FOLDER hone uninstall --purge"
        )


def _purge(home: Path, keys: Mapping[str, ProviderKey]) -> None:
    kept = ProviderKeys(home)
    with alone_in(home):
        for name, key in keys.items():
            if key.place == "keyring":
                kept.remove(name)
                click.echo(f"Removed {name} from the system keyring.")
    if home.exists():
        shutil.rmtree(home)
        click.echo(f"Deleted {visible(str(home))}.")


def _remove(installed: Installation) -> int:
    if not installed.command:
        return 0
    try:
        ended = subprocess.run(installed.command, check=False)
    except OSError as error:
        click.echo(f"{installed.command[0]} cannot be started: {error.strerror}.", err=True)
        click.echo(f"Run this yourself: {' '.join(installed.command)}", err=True)
        return 1
    return ended.returncode
