"""Find the checkout that a command is about, and refuse folders that are none."""

from pathlib import Path

from hone.app import Hone
from hone.core.errors import Refused, StoreError
from hone.core.secrets.known import mask_password
from hone.core.visible import visible
from hone.features.checkouts.bases import MANIFEST, HomeBases, ManifestBases
from hone.features.checkouts.service import Checkout
from hone.features.checkouts.whereabouts import note_checkout
from hone.files.tree import FileTree


def find_folder(hone: Hone, named: Path | None) -> Path:
    """Return the named folder, or the current one if it is a checkout, or the home."""
    if named is not None:
        return named.expanduser().resolve()
    here = Path.cwd()
    return here if (here / MANIFEST).exists() else hone.home.resolve()


def open_checkout(hone: Hone, folder: Path, *, make: bool, dry_run: bool = False) -> Checkout:
    """Open a checkout. Raises Refused if there is none, or none can be made."""
    if not hone.settings.database:
        raise Refused(
            f"The files in {visible(str(hone.home))} are your journal and skills: edit them there, and Hone "
            "takes them as they are. hone pull and hone push are for a database elsewhere (hone move)."
        )
    keeper, home = hone.keeper, hone.home.resolve()
    if folder == home:
        return Checkout(keeper, FileTree(home), HomeBases(keeper.ledger))
    if home in folder.parents:
        raise Refused(f"{visible(str(folder))} lies in Hone's home. Name a folder outside of it.")
    if not (folder / MANIFEST).exists():
        _check_new(folder, make=make)
    if make and not dry_run:
        note_checkout(home, folder)
    bases = ManifestBases(folder, keeper.ledger, mask_password(hone.settings.database))
    return Checkout(keeper, FileTree(folder), bases)


def _check_new(folder: Path, *, make: bool) -> None:
    shown = visible(str(folder))
    if not make:
        raise Refused(f"{shown} is no checkout, so nothing was pushed. First: hone pull {shown}")
    try:
        if any(folder.iterdir()):
            raise Refused(
                f"{shown} has files and is no checkout. Name a new or an empty folder: hone pull FOLDER"
            )
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{shown} cannot be used: {(error.strerror or '').lower()}.") from error
