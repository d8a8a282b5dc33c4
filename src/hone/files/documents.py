"""Documents as files of a home, for the owner only, each written atomically."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from hone.core.documents import NEW, DocumentKind, Documents, LateDocuments
from hone.core.errors import Conflict, StoreError
from hone.core.messages import digest
from hone.files.atomic import is_draft, make_folder, open_file, settle, write
from hone.files.locks import acquire, release


class FileDocuments:
    """The documents of one home on one machine."""

    shared = False

    def __init__(self, home: Path) -> None:
        self._home = home

    def path(self, kind: DocumentKind, name: str) -> Path:
        return self._folder(kind) / name

    def read(self, kind: DocumentKind, name: str) -> bytes | None:
        path = self.path(kind, name)
        try:
            with open_file(path, follow=not kind.folder) as file:  # the owner may keep a list elsewhere
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}.") from error

    def names(self, kind: DocumentKind) -> list[str]:
        if kind.fixed:
            return sorted(name for name in kind.fixed if (self._home / name).is_file())
        return sorted(self._walk(self._folder(kind)))

    def write(self, kind: DocumentKind, name: str, data: bytes, over: str | None = None) -> None:
        path = self.path(kind, name)
        try:
            if over is None:
                write(path, data)
                return
            with self._locked(kind):
                if self._digest(path) != over:
                    raise Conflict(f"{path} was changed meanwhile; nothing was written.")
                write(path, data)
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror}. It is as it was.") from error

    def delete(self, kind: DocumentKind, name: str) -> bool:
        path = self.path(kind, name)
        if not os.path.lexists(path):
            return False
        try:
            with self._locked(kind):
                path.unlink()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise StoreError(f"{path} cannot be removed: {error.strerror}.") from error
        settle(path)
        return True

    def expire(self, kind: DocumentKind, before: datetime) -> int:
        old = [name for name in self.names(kind) if self._changed(self.path(kind, name)) < before.timestamp()]
        return sum(self.delete(kind, name) for name in old)

    def describe(self, kind: DocumentKind, name: str) -> str:
        return str(self.path(kind, name))

    def _folder(self, kind: DocumentKind) -> Path:
        return self._home / kind.folder if kind.folder else self._home

    def _walk(self, folder: Path) -> Iterator[str]:
        def fail(error: OSError) -> None:
            if not isinstance(error, FileNotFoundError):
                raise StoreError(f"{error.filename or folder} cannot be read: {error.strerror}.") from error

        for top, folders, files in os.walk(folder, onerror=fail):
            folders[:] = [each for each in folders if not each.startswith(".")]
            for name in files:
                if not name.startswith(".") and not is_draft(name):
                    yield os.path.relpath(os.path.join(top, name), folder)

    def _changed(self, path: Path) -> float:
        try:
            return path.lstat().st_mtime
        except FileNotFoundError:  # deleted in the meantime
            return float("inf")

    def _digest(self, path: Path) -> str:
        """Return the digest of a file, NEW if there is none. An unreadable file is never replaced."""
        if not os.path.lexists(path):
            return NEW
        with open_file(path, follow=True) as file:
            return digest(file.read())

    @contextmanager
    def _locked(self, kind: DocumentKind) -> Iterator[None]:
        """Let one writer at a time compare and replace, in any process."""
        folder = self._folder(kind)
        make_folder(folder)
        handle = acquire(folder / kind.lock)
        try:
            yield
        finally:
            release(handle)


def choose_documents(home: Path, database: str, open_elsewhere: Callable[[], Documents]) -> Documents:
    """Return the documents of a home: files, which need no opening, or those of a remote database."""
    return LateDocuments(open_elsewhere, shared=True) if database else FileDocuments(home)
