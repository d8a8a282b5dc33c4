"""`hone backup` and `hone restore`: copy a home into one file, and make a home of such a file."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import click

from hone.app import Hone
from hone.cli.context import with_home
from hone.cli.options import Options
from hone.cli.output import number_of
from hone.cli.progress import ProgressLine
from hone.core.errors import SettingsError
from hone.core.holding import Holding
from hone.core.visible import one_line, visible
from hone.features.backups.restoring import RestoredHome, RestoreOptions, restore_backup
from hone.features.backups.values import BackupManifest
from hone.features.backups.writing import verify_backup, write_backup
from hone.holdings import all_holdings
from hone.settings import Settings, home_folder


@click.command(short_help="Copy everything Hone keeps into one FILE.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.option("--verify", is_flag=True, help="Write nothing; check an existing backup.")
@click.pass_obj
def backup(options: Options, file: Path, *, force: bool, verify: bool) -> None:
    """Copy conversations, journal, skills, settings and everything else in Hone's home into one FILE.

    Other processes can keep working meanwhile. The backup is read back and checked before FILE gets its name.
    Only you can read it; it is not encrypted. Keys, locks and caches are not in it.
    """
    file = file.expanduser()
    if verify:
        with ProgressLine() as progress:
            manifest, size = verify_backup(file, progress.show)
        click.echo(f"{_name(file)} is sound: {_contents(manifest, size)}.")
        return
    home = options.home or home_folder()
    holdings, now = find_holdings(options), datetime.now().astimezone()
    with ProgressLine() as progress:
        written = write_backup(
            home, holdings, file, now, progress.show, force=force, address=find_address(home)
        )
    click.echo(f"Wrote {_name(file)}: {_contents(written.manifest, written.size)}. Read back and checked.")
    _tell_left_out(written.manifest)


@click.command(short_help="Restore a home from a FILE that hone backup wrote.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--replace", is_flag=True, help="Replace an existing home; it is kept under another name.")
@click.option("--with-rules", is_flag=True, help="Restore trust, allow rules, plugins and hooks, too.")
@click.pass_obj
def restore(options: Options, file: Path, *, replace: bool, with_rules: bool) -> None:
    """Restore a home from a FILE that `hone backup` wrote, on this machine or another one.

    Conversations and what was learned go where they are now: into the PostgreSQL database that the home's
    settings or HONE_DATABASE name, or else into its file hone.db.

    The whole file is checked first. Settings that decide what may run without asking are left out, unless you
    add --with-rules. No backup has keys; a home that is replaced passes its own on.
    """
    home = options.home or home_folder()
    with ProgressLine() as progress:
        restored = restore_backup(
            file.expanduser(),
            home,
            all_holdings(Hone(home=home, settings=Settings()).parts("holdings")),
            RestoreOptions(replace, with_rules, find_address(home)),
            datetime.now().astimezone(),
            progress.show,
        )
    _tell_restored(home, restored)
    if restored.left:
        place = f" --home {_name(options.home)}" if options.home else ""
        click.echo(f"To restore that, too: hone{place} restore {_name(file)} --replace --with-rules")


def find_address(home: Path) -> str:
    """Return the address of a home's remote database. Unreadable settings name none: a home with such
    settings can be replaced."""
    with suppress(SettingsError):
        return Hone(home=home).settings.database
    return ""


def find_holdings(options: Options) -> Sequence[Holding]:
    """Return the holdings of this home. If its settings or a plugin cannot be loaded, report that and
    continue without: a backup must be possible before that is fixed."""

    async def act(hone: Hone) -> Sequence[Holding]:
        return all_holdings(hone.parts("holdings"))

    try:
        return with_home(options, act)
    except SettingsError as error:
        click.echo(f"{visible(str(error))} Files that only a plugin knows are not in the backup.", err=True)
        return all_holdings(Hone(home=options.home, settings=Settings()).parts("holdings"))


def _tell_restored(home: Path, restored: RestoredHome) -> None:
    manifest = restored.manifest
    click.echo(
        f"Restored {_name(home)} from a backup of {manifest.created[:16].replace('T', ' ')}: "
        f"{number_of(restored.files, 'file')}, {_size(manifest.size)}."
    )
    if restored.kept:
        click.echo(f"The old home is kept as {_name(restored.kept)}.")
    for note in restored.notes:
        click.echo(visible(note))
    _tell_left_out(manifest)
    if restored.left:
        click.echo("Not restored, because it decides what may run:")
        for name, paths in restored.left.items():
            click.echo(f"  {name}: {one_line(', '.join(paths), 200)}")


def _tell_left_out(manifest: BackupManifest) -> None:
    if manifest.left_out:
        click.echo("Not in the backup:")
    for each in manifest.left_out:
        click.echo(f"  {one_line(each, 200)}")


def _contents(manifest: BackupManifest, size: int) -> str:
    return f"{number_of(len(manifest.members), 'file')}, {_size(manifest.size)}, {_size(size)} compressed"


def _size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{max(1, round(size / 1e3))} kB"


def _name(path: Path) -> str:
    return one_line(str(path), 200)
