"""Documents as files of a home, at one end of a move, and how they get into a home."""

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from hone.core.documents import KINDS, DocumentKind
from hone.core.errors import StoreError
from hone.core.messages import digest
from hone.files.atomic import make_folder, settle, sync_tree, write
from hone.files.documents import FileDocuments
from hone.stores.moving.tables import Row

MICRO = 1_000
"""In nanoseconds. Times of files are finer than those of rows."""


class DocumentFiles:
    """The documents below a folder as rows: kind, name, digest, body, and when it was written."""

    def __init__(self, home: Path) -> None:
        self._files = FileDocuments(home)

    def count(self) -> int:
        return sum(len(self._files.names(kind)) for kind in KINDS)

    def rows(self) -> Iterator[Row]:
        for kind in KINDS:
            for name in self._files.names(kind):
                data = self._files.read(kind, name)
                if data is not None:
                    at = self._files.path(kind, name).stat().st_mtime_ns // MICRO
                    yield kind.name, name, digest(data), data, at

    def put(self, rows: Iterable[Row]) -> None:
        """Write the rows as files. Raises StoreError for a name that would escape the folder."""
        kinds = {kind.name: kind for kind in KINDS}
        for named, name, _, data, at in rows:
            kind = kinds.get(named)
            if kind is None or not is_safe(kind, name):
                raise StoreError(f"There is a document that no home can hold: {named} {name!r:.200}.")
            path = self._files.path(kind, name)
            write(path, data, durable=False)
            os.utime(path, ns=(at * MICRO, at * MICRO))


def is_safe(kind: DocumentKind, name: str) -> bool:
    """Tell whether a name leads to a file of its kind and nowhere else."""
    if kind.fixed:
        return name in kind.fixed
    return name.isprintable() and all(each and not each.startswith(".") for each in name.split("/"))


def take_away(home: Path) -> None:
    """Remove a home's documents, which nobody uses since they have moved elsewhere."""
    for kind in KINDS:
        if kind.folder:
            shutil.rmtree(home / kind.folder, ignore_errors=True)
        for name in kind.fixed:
            (home / name).unlink(missing_ok=True)


def put_in_place(staged: Path, home: Path, aside: Path) -> None:
    """Give a home the documents below `staged`. Its previous ones are then below `aside`, with a number if
    that name is taken. Raises OSError."""
    free, number = aside, 1
    while os.path.lexists(free):
        number += 1
        free = aside.with_name(f"{aside.name}-{number}")
    aside = free
    if staged.is_dir():
        sync_tree(staged)
    for place in _places():
        if os.path.lexists(home / place):
            make_folder(aside)
            os.rename(home / place, aside / place)
        if os.path.lexists(staged / place):
            os.rename(staged / place, home / place)
    shutil.rmtree(staged, ignore_errors=True)
    settle(home / "any")
    if aside.is_dir():
        settle(aside / "any")


def _places() -> Iterator[str]:
    """Yield the names in a home that hold documents."""
    for kind in KINDS:
        yield from kind.fixed or (kind.folder,)
