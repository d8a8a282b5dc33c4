"""Find words in files below a home and remove them. No link is followed, and only files are touched."""

import asyncio
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from hone.core.documents import DocumentKind, Documents, change
from hone.core.erasure import Erasure, Scrubber
from hone.core.errors import StoreError
from hone.core.holding import Occurrence
from hone.files.atomic import open_file, settle, sweep, write

PIECE = 1 << 20
Change = Callable[[bytes, Scrubber], bytes | None]
"""Returns the new content of a file; None if the file is deleted."""


def scrub_text(data: bytes, scrub: Scrubber) -> bytes:
    """Remove the words from a text."""
    return scrub.data(data)


def remove_whole(data: bytes, scrub: Scrubber) -> None:
    """Delete a file that contains the words."""


def walk(home: Path, places: Sequence[str]) -> Iterator[Path]:
    """Yield the files at these places: a name that ends with a slash is a folder, a star stands for any
    characters."""
    try:
        names = sorted(os.listdir(home))
    except OSError:
        return
    for name in names:
        path = home / name
        if any(fnmatchcase(name, place) for place in places if not place.endswith("/")) and _is_file(path):
            yield path
        if any(fnmatchcase(f"{name}/", place) for place in places if place.endswith("/")):
            yield from sorted(below(path))


def below(folder: Path) -> Iterator[Path]:
    """Yield every file below a folder."""
    for root, _, names in os.walk(folder):
        yield from (path for name in names if _is_file(path := Path(root, name)))


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def tally(path: Path, scrub: Scrubber) -> int:
    """Count how often a file contains the words. Raises StoreError."""
    count, rest = 0, b""
    try:
        with open_file(path) as file:
            while piece := file.read(PIECE):
                data = rest + piece
                # The next round sees all of a match at the seam.
                count += scrub.tally(data) - (scrub.tally(data[-scrub.reach :]) if len(piece) == PIECE else 0)
                rest = data[-scrub.reach :] if len(piece) == PIECE else b""
            return count + (scrub.tally(rest) if rest else 0)
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise StoreError(f"{path} cannot be searched: {error.strerror}.") from error


class FileEraser:
    """Erases words in the files of some places. `change` returns the new content of a file that contains
    them."""

    def __init__(self, home: Path, holding: str, places: Sequence[str], change: Change = scrub_text) -> None:
        self._home = home
        self._holding = holding
        self._places = places
        self._change = change

    async def find(self, what: Erasure) -> Sequence[Occurrence]:
        return await asyncio.to_thread(self._find, what)

    async def erase(self, what: Erasure) -> Sequence[str]:
        await asyncio.to_thread(self._erase, what)
        return ()

    def _find(self, what: Erasure) -> list[Occurrence]:
        scrub = Scrubber(what.words)
        counted = [(path, tally(path, scrub), self._is_named(path, what)) for path in self._files()]
        whole = self._change is remove_whole
        return [
            Occurrence(self._holding, self._name(path), max(1, count), whole=whole or named)
            for path, count, named in counted
            if count or named
        ]

    def _erase(self, what: Erasure) -> None:
        scrub = Scrubber(what.words)
        for path in self._files():
            sweep(path.parent)
            if self._is_named(path, what) or scrub.count(path.name):
                remove(path)
            elif tally(path, scrub):
                change_file(path, lambda data: self._change(data, scrub))

    def _files(self) -> list[Path]:
        return list(walk(self._home, self._places))

    def _is_named(self, path: Path, what: Erasure) -> bool:
        return self._name(path) in what.files or Scrubber(what.words).count(path.name) > 0

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self._home))


class DocumentEraser:
    """Erases words in documents of a kind: in files of the home, and in remote ones."""

    def __init__(
        self, home: Path, documents: Documents, kind: DocumentKind, change: Change = scrub_text
    ) -> None:
        self._documents, self._kind, self._change = documents, kind, change
        self._files = FileEraser(home, kind.name, (f"{kind.folder}/",), change)

    async def find(self, what: Erasure) -> Sequence[Occurrence]:
        found = await asyncio.to_thread(self._find, what) if self._documents.shared else []
        return [*found, *await self._files.find(what)]

    async def erase(self, what: Erasure) -> Sequence[str]:
        if self._documents.shared:
            await asyncio.to_thread(self._erase, what)
        return await self._files.erase(what)

    def _find(self, what: Erasure) -> list[Occurrence]:
        scrub, kind, found = Scrubber(what.words), self._kind, []
        for name in self._documents.names(kind):
            place, count = f"{kind.folder}/{name}", scrub.tally(self._documents.read(kind, name) or b"")
            whole = place in what.files or scrub.count(name) > 0
            if count or whole:
                whole = whole or self._change is remove_whole
                found.append(Occurrence(kind.name, place, max(1, count), whole=whole))
        return found

    def _erase(self, what: Erasure) -> None:
        scrub = Scrubber(what.words)
        for each in self._find(what):
            name = each.place.removeprefix(f"{self._kind.folder}/")
            if each.whole:
                self._documents.delete(self._kind, name)
            else:
                change(self._documents, self._kind, name, lambda data: self._change(data or b"", scrub))


def change_file(path: Path, change: Callable[[bytes], bytes | None]) -> None:
    """Replace a file's content, or remove it. Raises StoreError."""
    try:
        with open_file(path) as file:
            data, mode = file.read(), stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        made = change(data)
        if made is None:
            remove(path)
        elif made != data:
            write(path, made)
            path.chmod(mode)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{path} cannot be changed: {error.strerror}.") from error


def remove(path: Path) -> None:
    """Remove a file for good. Raises StoreError."""
    try:
        path.unlink(missing_ok=True)
        settle(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be removed: {error.strerror}.") from error
