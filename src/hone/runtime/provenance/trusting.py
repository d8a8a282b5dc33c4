"""Trust a file as the owner has seen it: its bytes become clean, and later changes are judged again."""

from pathlib import Path

from msgspec import Struct

from hone.core.errors import Refused, StoreError
from hone.core.fingerprints import runs
from hone.core.messages import digest
from hone.core.trust import Trust
from hone.core.visible import one_line
from hone.runtime.provenance.observer import Provenance
from hone.runtime.provenance.recording import decode, read
from hone.runtime.provenance.view import name
from hone.runtime.trust import Folders
from hone.stores.tainted import FILE, TaintStore, TrustedContent


class ForeignFile(Struct, frozen=True):
    """A file in a trusted folder that is foreign, as it is now."""

    path: Path
    data: bytes

    @property
    def text(self) -> str:
        return decode(self.data)


def find_foreign(home: Path, folders: Folders, path: Path) -> ForeignFile | None:
    """Return a foreign file as it would become trusted; None if it is not foreign. Raises Refused if it
    cannot be."""
    real = path.resolve()
    data = read(real)
    if data is None:
        raise Refused(f"{one_line(str(path), 300)} is not a readable file; nothing was changed.")
    if not folders.trusts(real):
        raise Refused(
            f"{one_line(str(real.parent), 300)} is not trusted, and everything in it is foreign. "
            "Trust the folder first: hone trust FOLDER"
        )
    provenance = Provenance(home, folders)
    try:
        foreign = provenance.of_file(real, data) is Trust.FOREIGN
    finally:
        provenance.close()
    return ForeignFile(real, data) if foreign else None


def has_records(home: Path) -> bool:
    """Tell whether anything was ever recorded in a home."""
    return (home / FILE).exists()


def find_fault(home: Path) -> str:
    """Return why the records cannot be read; empty if they can, or if there are none."""
    store = TaintStore(home)
    try:
        if store.exists:
            store.windows()
    except StoreError as error:
        return str(error)
    finally:
        store.close()
    return ""


def list_foreign(home: Path, folders: Folders, folder: Path) -> list[Path]:
    """Return the foreign files below a trusted folder, as far as Hone wrote them."""
    provenance = Provenance(home, folders)
    store = TaintStore(home)
    try:
        texts = store.texts(name(folder)) if store.exists else []
        paths = {
            Path(text.path) for _, text in texts if text.kind == "file" and folders.trusts(Path(text.path))
        }
        contents = [(path, read(path)) for path in sorted(paths)]
        return [path for path, data in contents if data and provenance.of_file(path, data) is Trust.FOREIGN]
    finally:
        provenance.close()
        store.close()


def trust_files(home: Path, folders: Folders, files: list[ForeignFile]) -> None:
    """Trust contents as they were shown, wherever they are stored. Raises StoreError."""
    store = TaintStore(home)
    try:
        store.trust(
            [
                TrustedContent(
                    *(digest(each.data), name(each.path), "named"),
                    *(name(folders.root(each.path) or each.path), runs(each.text)),
                )
                for each in files
            ]
        )
    finally:
        store.close()


def trust_folder(home: Path, folder: Path) -> None:
    """Forget that a folder is foreign as a whole. Raises StoreError."""
    store = TaintStore(home)
    try:
        if store.exists:
            store.trust_folder(name(folder))
    finally:
        store.close()
