"""Documents of the owner: files such as a template or a list of rules, each read and replaced as a whole."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from hone.core.errors import Conflict
from hone.core.messages import digest

NEW = ""
"""Stands for a digest: no document may exist yet."""
TRIES = 1_000
"""Attempts at a change. Each failure means that another writer's change was stored."""


class DocumentKind(Struct, frozen=True):
    """What documents are for.

    folder:  where they lie below a home; empty: in the home itself
    machine: they are about files of one machine, so that no other machine sees them
    fixed:   the only names there are; empty: any path below the folder, without hidden names
    lock:    the file that writers of a home lock
    """

    name: str
    folder: str = ""
    machine: bool = False
    fixed: tuple[str, ...] = ()
    lock: str = ".lock"


TEMPLATES = DocumentKind("templates", "templates")
EXPERIMENTS = DocumentKind("experiments", "experiments")
GATE = DocumentKind("gate", "gate")
SPILL = DocumentKind("spill", "spill")
QUEUED = DocumentKind("queued", "queued")
"""Commands that wait for a worker, and their subjects."""
PAUSES = DocumentKind("pauses", fixed=("curator-paused",), lock="permissions.lock")
"""What the owner paused on all machines."""
RULES = DocumentKind(
    "rules",
    machine=True,
    fixed=(
        *("trusted.json", "untrusted.json", "asked.json"),
        *("instructions.json", "approved.json", "permissions.json"),
    ),
    lock="permissions.lock",
)
"""What the owner allows and trusts on one machine: on another, the same path means another folder."""
CONSENT = DocumentKind("consent", fixed=("permissions-everywhere.json",), lock="permissions.lock")
"""What the owner allows and denies on every machine. A home that is not shared keeps this among its rules."""
KINDS = (CONSENT, EXPERIMENTS, GATE, PAUSES, QUEUED, RULES, SPILL, TEMPLATES)


class Documents(Protocol):
    """Every method waits for the disk or the database. Where that matters, call it in a thread. Raises
    StoreError."""

    @property
    def shared(self) -> bool:
        """Whether several machines use them."""
        ...

    def read(self, kind: DocumentKind, name: str) -> bytes | None: ...

    def names(self, kind: DocumentKind) -> list[str]:
        """Return all names, in order."""
        ...

    def write(self, kind: DocumentKind, name: str, data: bytes, over: str | None = None) -> None:
        """Store a document; it is durable when this returns. `over` is the digest of what it replaces, NEW if
        nothing may be there, None to replace anything. Raises Conflict on a mismatch."""
        ...

    def delete(self, kind: DocumentKind, name: str) -> bool:
        """Delete a document. Return whether it existed."""
        ...

    def expire(self, kind: DocumentKind, before: datetime) -> int:
        """Delete documents last written before a time. Return how many."""
        ...

    def describe(self, kind: DocumentKind, name: str) -> str:
        """Return where a document is, for a sentence to the owner."""
        ...


class LateDocuments:
    """Opens the documents at first use: most commands that could read one do not."""

    def __init__(self, open_: Callable[[], Documents], *, shared: bool) -> None:
        self._open = open_
        self.shared = shared

    def read(self, kind: DocumentKind, name: str) -> bytes | None:
        return self._open().read(kind, name)

    def names(self, kind: DocumentKind) -> list[str]:
        return self._open().names(kind)

    def write(self, kind: DocumentKind, name: str, data: bytes, over: str | None = None) -> None:
        self._open().write(kind, name, data, over)

    def delete(self, kind: DocumentKind, name: str) -> bool:
        return self._open().delete(kind, name)

    def expire(self, kind: DocumentKind, before: datetime) -> int:
        return self._open().expire(kind, before)

    def describe(self, kind: DocumentKind, name: str) -> str:
        return self._open().describe(kind, name)


def change(
    documents: Documents, kind: DocumentKind, name: str, edit: Callable[[bytes | None], bytes | None]
) -> None:
    """Replace a document by what `edit` makes of it. Retry if another writer was faster. If `edit` returns
    None or what was there, nothing changes. Raises StoreError, and what `edit` raises."""
    for attempt in range(TRIES):
        before = documents.read(kind, name)
        after = edit(before)
        if after is None or after == before:
            return
        try:
            documents.write(kind, name, after, NEW if before is None else digest(before))
        except Conflict:
            if attempt == TRIES - 1:
                raise
        else:
            return


def is_document(path: str) -> bool:
    """Tell whether a path below a home is that of a document."""
    top, slash, _ = path.partition("/")
    return any(path in kind.fixed or (slash and top == kind.folder) for kind in KINDS)


def all_documents(documents: Documents) -> Iterator[tuple[DocumentKind, str, bytes]]:
    """Yield every document, by kind and name. Skip one that is deleted in the meantime."""
    for kind in KINDS:
        for name in documents.names(kind):
            data = documents.read(kind, name)
            if data is not None:
                yield kind, name, data
