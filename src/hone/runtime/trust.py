"""What the owner allows: trusted folders and approved commands, stored in short lists."""

import json
from collections.abc import Iterable
from pathlib import Path

from hone.core.errors import StoreError
from hone.core.trust import Trust
from hone.files.atomic import write


class OwnersList:
    """A short list in a file of its own, written whole or not at all, readable by the owner only. A list that
    cannot be read is empty: it only ever allows."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def items(self) -> list[str]:
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return []
        return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []

    def add(self, item: str) -> None:
        self._write({*self.items(), item})

    def remove(self, item: str) -> None:
        self._write({*self.items()} - {item})

    def _write(self, items: Iterable[str]) -> None:
        try:
            write(self.path, json.dumps(sorted(items), indent=1, ensure_ascii=False).encode())
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error.strerror}.") from error


class Folders:
    """The folders the owner trusts: what tools bring from there counts as local."""

    def __init__(self, trusted: OwnersList) -> None:
        self._trusted = trusted

    def label(self, path: Path) -> Trust:
        """By where a path really leads, links followed."""
        return Trust.LOCAL if self.trusts(path) else Trust.FOREIGN

    def trusts(self, path: Path) -> bool:
        try:
            real = path.resolve()
        except (OSError, ValueError, RuntimeError):  # links in circles, names that are none
            return False
        return any(real.is_relative_to(folder) for folder in self._trusted.items())

    def trust(self, folder: Path) -> None:
        self._trusted.add(str(folder.resolve()))

    def forget(self, folder: Path) -> None:
        self._trusted.remove(str(folder.resolve()))

    def all(self) -> list[str]:
        return self._trusted.items()


class FolderLabels:
    """Labels files, names and output by the folder they come from."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders

    def of_file(self, path: Path, data: bytes) -> Trust:
        return self._folders.label(path)

    def of_folder(self, path: Path) -> Trust:
        return self._folders.label(path)

    def of_output(self, folder: Path, text: str) -> Trust:
        return self._folders.label(folder)
