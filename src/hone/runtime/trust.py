"""What the owner allows: trusted folders and approved commands, stored in short lists."""

import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Self

from hone.core.documents import RULES, Documents, change
from hone.core.errors import StoreError
from hone.core.trust import Trust
from hone.core.visible import path_to_text
from hone.files.repository import read_pointer

TRUSTED, DECLINED, ASKED = "trusted.json", "untrusted.json", "asked.json"
FRESH = 1.0
"""Seconds for which answers that were read in advance stay valid."""
A_DAY = 2
"""The most folders to ask the owner about in one day."""


class OwnersList:
    """A short list in a document of this machine, written as a whole or not at all. An unreadable list is
    empty, since the lists only ever allow."""

    def __init__(self, documents: Documents, name: str) -> None:
        self._documents = documents
        self._name = name

    def beside(self, name: str) -> "OwnersList":
        """Return another list of the same owner."""
        return OwnersList(self._documents, name)

    def items(self) -> list[str]:
        return self.known() or []

    def known(self) -> list[str] | None:
        """Return None if the list cannot be read."""
        try:
            data = self._documents.read(RULES, self._name)
        except StoreError:
            return None
        return _decode(data)

    def add(self, item: str) -> None:
        self._change(lambda items: items | {item})

    def remove(self, item: str) -> None:
        self._change(lambda items: items - {item})

    def _change(self, edit: Callable[[frozenset[str]], Iterable[str]]) -> None:
        def rewrite(data: bytes | None) -> bytes:
            items = edit(frozenset(_decode(data) or ()))
            return json.dumps(sorted(items), indent=1, ensure_ascii=False).encode()

        change(self._documents, RULES, self._name, rewrite)


def _decode(data: bytes | None) -> list[str] | None:
    """Return the items of a stored list; None if it is not a list."""
    if data is None:
        return []
    try:
        found = json.loads(data)
    except ValueError:
        return None
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else None


class Folders:
    """The folders that the owner has answered for: what tools bring from a trusted one counts as local.

    An answer holds for everything below its folder, down to a folder with another answer and down to a nested
    repository, which needs a separate answer.
    """

    def __init__(self, trusted: OwnersList) -> None:
        """The lists of folders that the owner declined, and of those asked about today, lie beside it."""
        self._trusted = trusted
        self._declined = trusted.beside(DECLINED)
        self._asked = trusted.beside(ASKED)
        self._seen: tuple[float, list[str], list[str] | None] | None = None

    @classmethod
    def of(cls, documents: Documents) -> Self:
        return cls(OwnersList(documents, TRUSTED))

    def look(self) -> None:
        """Read all answers and cache them briefly. In a server this is done in a thread, so that a slow
        database blocks nobody else. Answers given on another machine in the meantime count afterwards."""
        trusted, declined = self._trusted.items(), self._declined.known()
        self._seen = time.monotonic() + FRESH, trusted, declined

    def _answers(self) -> tuple[list[str], list[str] | None]:
        seen = self._seen
        if seen and time.monotonic() < seen[0]:
            return seen[1], seen[2]
        return self._trusted.items(), self._declined.known()

    def label(self, path: Path) -> Trust:
        """Return the label of a path, by where it really leads, links followed."""
        return Trust.LOCAL if self.trusts(path) else Trust.FOREIGN

    def trusts(self, path: Path) -> bool:
        return self.root(path) is not None

    def root(self, path: Path) -> Path | None:
        """Return the trusted folder whose answer holds for a path; None if it is not trusted."""
        folder, trusted = self._nearest(path)
        return folder if trusted else None

    def is_answered(self, path: Path) -> bool:
        return self._nearest(path)[0] is not None

    def may_ask(self, folder: Path, today: date) -> bool:
        """Tell whether the owner may be asked about a folder: only once per folder, and about few folders a
        day."""
        asked = [each for each in self._asked.items() if each.startswith(f"{today} ")]
        return len(asked) < A_DAY and not self.is_answered(folder)

    def note_asked(self, folder: Path, today: date) -> None:
        for each in self._asked.items():
            if not each.startswith(f"{today} "):
                self._asked.remove(each)
        self._asked.add(f"{today} {path_to_text(folder.resolve())}")

    def covers(self, folder: Path, path: Path) -> bool:
        """Tell whether an answer for a folder would hold for a path."""
        try:
            real, top = path.resolve(), folder.resolve()
        except (OSError, ValueError, RuntimeError):
            return False
        answered = {*self._trusted.items(), *self._declined.items()}
        for each in (real, *real.parents):
            if each == top:
                return True
            if path_to_text(each) in answered or is_own_repository(each):
                return False
        return False

    def trust(self, folder: Path) -> None:
        self._seen = None
        name = path_to_text(folder.resolve())
        self._trusted.add(name)
        if name in self._declined.items():
            self._declined.remove(name)

    def decline(self, folder: Path) -> None:
        self._seen = None
        name = path_to_text(folder.resolve())
        self._declined.add(name)
        if name in self._trusted.items():
            self._trusted.remove(name)

    def forget(self, folder: Path) -> None:
        """Remove an answer. Below a trusted folder that means no: the answer above must not apply."""
        self._seen = None
        name = path_to_text(folder.resolve())
        self._trusted.remove(name)
        if self.trusts(folder):
            self.decline(folder)

    def all(self) -> list[str]:
        return self._trusted.items()

    def find_untrusted(self, folder: Path, skipped: Collection[str]) -> Iterator[Path]:
        """Yield the outermost untrusted folders below a trusted one. Skipped names are not searched."""
        trusted, declined = frozenset(self._trusted.items()), frozenset(self._declined.items())
        todo = [str(folder)]
        while todo:
            here = todo.pop()
            try:
                with os.scandir(here) as entries:
                    found = list(entries)
            except OSError:
                continue
            nested = here != str(folder) and any(each.name == ".git" for each in found)
            name = path_to_text(here)
            if name in declined or (nested and name not in trusted and is_own_repository(Path(here))):
                yield Path(here)
                continue
            inner = (each for each in found if each.name not in skipped)
            todo += [each.path for each in inner if each.is_dir(follow_symlinks=False)]

    def _nearest(self, path: Path) -> tuple[Path | None, bool]:
        """Return the folder whose answer holds for a path, and the answer."""
        try:
            real = path.resolve()
        except (OSError, ValueError, RuntimeError):  # circular links, invalid names
            return None, False
        yes, no = self._answers()
        if no is None:  # a declined folder could pass for part of a trusted one
            return None, False
        trusted, declined = frozenset(yes), frozenset(no)
        for folder in (real, *real.parents):
            name = path_to_text(folder)
            if name in declined:
                return folder, False
            if name in trusted:
                return folder, True
            if is_own_repository(folder):
                return None, False
        return None, False


def is_own_repository(folder: Path) -> bool:
    """Tell whether a folder is the top of a repository. A submodule or worktree inside its repository is
    part of it."""
    place = folder / ".git"
    if not os.path.lexists(place):
        return False
    pointer = read_pointer(place)
    return pointer is None or not any(pointer.is_relative_to(above / ".git") for above in folder.parents)


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
