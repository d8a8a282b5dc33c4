"""The values of checkpoints: the state of a path, a change of it, and a rewind."""

from datetime import datetime
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from hone.core.ids import SessionId


class PathKind(StrEnum):
    FILE = "file"
    LINK = "link"
    FOLDER = "folder"
    OTHER = "other"
    """A device, a pipe or a socket. It has no content to keep."""


class PathState(Struct, frozen=True):
    """The state of a path; None stands for nothing. `digest` is that of a file's content or a link's target,
    and empty for a folder. A file too large to be read has the digest `stat:…`, which identifies it but
    cannot restore it."""

    kind: PathKind
    mode: int
    digest: str = ""

    @property
    def has_content(self) -> bool:
        """Tell whether there are bytes to keep under its digest."""
        return self.kind in (PathKind.FILE, PathKind.LINK) and not self.digest.startswith(UNREAD)


UNREAD = "stat:"
"""The prefix of the digest of a file that is too large to be read."""


class TurnMark(Struct, frozen=True):
    """A user's message in a conversation: its current number among the user's messages, and an `anchor` that
    stays the same when older messages are summarized."""

    session: SessionId
    number: int
    anchor: str


class ChangeDraft(Struct, frozen=True):
    """A change that is about to be stored. `lost` says why it cannot be undone, if so."""

    path: Path
    before: PathState | None
    after: PathState | None
    by: str
    lost: str = ""


class FileChange(Struct, frozen=True):
    """A stored change. `open`: the process ended before it knew the state after it; then `expected` are the
    possible digests of the file if the change was made. `rewind` is the one that made it, `taken_back` the
    one that undid it."""

    id: int
    session: SessionId
    turn: int
    anchor: str
    path: Path
    before: PathState | None
    after: PathState | None
    by: str
    at: datetime
    lost: str = ""
    open: bool = False
    expected: tuple[str, ...] = ()
    rewind: int = 0
    taken_back: int = 0


class RewindStep(Struct, frozen=True):
    """What a rewind does to one path. `undoes` are the changes that it undoes. `left` says why the rest of
    them, or all, are not undone."""

    path: Path
    now: PathState | None
    target: PathState | None
    undoes: tuple[int, ...] = ()
    left: str = ""

    @property
    def acts(self) -> bool:
        return bool(self.undoes) and self.now != self.target


class RewindPlan(Struct, frozen=True):
    """What a rewind to the state before a turn does. `redoes` is the rewind that it undoes, if any."""

    session: SessionId
    turn: int
    steps: tuple[RewindStep, ...]
    redoes: int = 0

    @property
    def acting(self) -> tuple[RewindStep, ...]:
        return tuple(step for step in self.steps if step.acts)

    @property
    def left(self) -> tuple[RewindStep, ...]:
        return tuple(step for step in self.steps if step.left)


class TurnChanges(Struct, frozen=True):
    """What tools and commands changed in one turn. `session` is where the turn happened: for a branch,
    perhaps its parent. `words` are the user's."""

    number: int
    session: SessionId
    anchor: str
    at: datetime
    changes: tuple[FileChange, ...]
    words: str = ""

    @property
    def is_taken_back(self) -> bool:
        return all(change.taken_back for change in self.changes)


class Rewind(Struct, frozen=True):
    """A rewind that was begun; `finished` once its result is known. `redoes` is the one that it undid, if
    any."""

    id: int
    session: SessionId
    turn: int
    at: datetime
    finished: bool
    redoes: int = 0
