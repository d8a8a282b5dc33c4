"""Remember, for each source that Hone learns from, whose words it holds and which files were read."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from hone.core.errors import StoreError
from hone.core.messages import digest
from hone.core.visible import path_to_text
from hone.features.imports import claude, codex
from hone.features.imports.sources import SourceFile
from hone.files.atomic import locked, write

FILE, LOCK = "learned.json", "learned.lock"
SEPARATE = (claude.NAME, codex.NAME)
"""Sources with one file per conversation. For the others, all files are read if one has changed."""
Marks = Mapping[str, tuple[int, ...]]


class LearnedSource(msgspec.Struct, frozen=True):
    """`mine`: the owner said that words under the user's name there are the owner's. `marks` are the files
    that were read, by a digest of their path."""

    source: str
    path: str
    mine: bool
    marks: Marks = {}


class LearnState:
    """The sources in a home, in one file. An unreadable one is empty: then the owner is asked again, and
    stored conversations are recognized."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def find(self, source: str, path: Path) -> LearnedSource | None:
        place = path_to_text(path.resolve())
        return next((each for each in self._all() if (each.source, each.path) == (source, place)), None)

    def answer(self, source: str, path: Path, *, mine: bool) -> LearnedSource:
        """Remember whose words they are. A different answer makes every file new."""
        known = self.find(source, path)
        if known and known.mine == mine:
            return known
        made = LearnedSource(source, path_to_text(path.resolve()), mine)
        self._save(made)
        return made

    def note(self, known: LearnedSource, marks: Marks) -> None:
        """Remember that these files were read and are fully stored."""
        self._save(LearnedSource(known.source, known.path, known.mine, {**known.marks, **marks}))

    def _all(self) -> list[LearnedSource]:
        try:
            return msgspec.json.decode((self._home / FILE).read_bytes(), type=list[LearnedSource])
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return []

    def _save(self, made: LearnedSource) -> None:
        with locked(self._home, LOCK):
            others = [each for each in self._all() if (each.source, each.path) != (made.source, made.path)]
            try:
                write(self._home / FILE, msgspec.json.encode([*others, made]))
            except OSError as error:
                raise StoreError(f"{self._home / FILE} cannot be written: {error.strerror}.") from error


def mark_files(files: Iterable[SourceFile]) -> dict[str, tuple[int, ...]]:
    """Return the current marks of these files. Take them before reading: later additions are new."""
    return {_key(each): each.mark for each in files}


def find_changed(source: str, files: Sequence[SourceFile], marks: Marks) -> list[SourceFile]:
    """Return the files whose marks have changed since they were last read."""
    changed = [each for each in files if marks.get(_key(each)) != each.mark]
    return changed if source in SEPARATE or not changed else list(files)


def _key(file: SourceFile) -> str:
    return digest(path_to_text(file.path.resolve()).encode())[:16]
