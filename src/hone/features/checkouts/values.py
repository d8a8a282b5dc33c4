"""What a checkout knows of its files, and what a pull or a push made of them."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from hone.core.ledger import ChangeId, PublishedFile, Target


class BaseFile(Struct, frozen=True):
    """A version of a file by its digest, and whose file it is."""

    target: Target
    digest: str


class BaseVersion(Struct, frozen=True):
    """A base with its content; None if that was erased since."""

    digest: str
    data: bytes | None


class LocalFile(Struct, frozen=True):
    """A file of the checkout, and how to recognize it."""

    data: bytes
    file: PublishedFile


class LocalFolder(Struct, frozen=True):
    """The files of a checkout by target and place. `faulty` are targets with something that is not a file, or
    cannot be read; `problems` describe them."""

    files: Mapping[Target, Mapping[str, LocalFile]]
    faulty: frozenset[Target] = frozenset()
    problems: tuple[str, ...] = ()


class SyncAction(StrEnum):
    """What happened to a file, or would happen to it."""

    WRITTEN = "written"
    MERGED = "merged with your edit"
    REMOVED = "removed"
    RECORDED = "recorded"


class FileAction(Struct, frozen=True):
    """`change` is the change by which a push recorded it; None in a dry run."""

    place: str
    action: SyncAction
    change: ChangeId | None = None


class SyncReport(Struct):
    """The result of a pull or a push. `edited` are files to push, `waiting` counts those to pull."""

    upto: ChangeId
    actions: list[FileAction] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    edited: list[str] = field(default_factory=list)
    waiting: int = 0
