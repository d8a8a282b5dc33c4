"""The ledger: an append-only list of changes. The journal and the skills are published from it.

A target holds named contents: a journal file holds one text, a skill holds its files. A name that starts with
@ is a fact about the target (origin, pinned …) and is never published.
"""

from collections.abc import Collection, Mapping, Sequence, Set
from datetime import datetime
from enum import StrEnum
from typing import NewType, Protocol

from msgspec import Struct

from hone.core.ids import SessionId
from hone.core.trust import Trust

ChangeId = NewType("ChangeId", int)
Target = NewType("Target", str)
"""`memory`, `user`, `project:FOLDER`, `skill:NAME`, `item:USER/KEY`, or what Hone wrote for another agent:
`copy:FOLDER` for a skill's folder and `section:FILE#NAME` for a section of a file."""

START = ChangeId(0)
"""Before the first change."""
NO_SESSION = SessionId("")
MEMORY, USER = Target("memory"), Target("user")
PROJECT, SKILL = "project:", "skill:"
ITEM = "item:"
"""What Hone stores under a key with a memory backend."""

COPY, SECTION = "copy:", "section:"
"""What Hone wrote outside of its home for other agents to read."""

Held = Mapping[str, str]
"""What a target holds: the digest of each content, by its path."""


def project(folder: str) -> Target:
    return Target(PROJECT + folder)


def skill(name: str) -> Target:
    return Target(SKILL + name)


def memory_item(user_id: str, key: str) -> Target:
    """Name the target of a memory item. A user id holds no slash."""
    return Target(f"{ITEM}{user_id}/{key}")


def copy(folder: str) -> Target:
    """Name a skill's folder that another agent reads, by its absolute path."""
    return Target(COPY + folder)


def section(file: str, name: str) -> Target:
    """Name the section of a file that another agent reads. No skill's name holds a #."""
    return Target(f"{SECTION}{file}#{name}")


class Actor(StrEnum):
    """Who changes something."""

    OWNER = "owner"
    AGENT = "agent"
    """In the foreground, with a tool."""
    REVIEW = "review"
    CURATOR = "curator"
    EXPERIMENT = "experiment"
    """Measures what is known. It only proposes and confirms."""
    CLIENT = "client"
    """Another agent, over MCP. It only proposes; its changes carry its name as the platform."""
    MEMBER = "member"
    """A person of the team, only in the team's own ledger. Their changes carry their name as the platform."""


class ChangeKind(StrEnum):
    """What a change did. The values are stored: a member may be renamed, its value never changes."""

    ADD = "add"
    REPLACE = "replace"
    REMOVE = "remove"
    SET = "become"
    BATCH = "batch"
    EDIT = "edit"
    """The owner edited a file by hand."""
    CREATE = "create"
    REWRITE = "rewrite"
    PATCH = "patch"
    WRITE_FILE = "writefile"
    REMOVE_FILE = "removefile"
    ARCHIVE = "archive"
    RESTORE = "restore"
    PIN = "pin"
    UNPIN = "unpin"
    INSTALL = "install"
    UNINSTALL = "uninstall"
    MERGE = "merge"
    AGE = "age"
    """Archived because nothing used it."""
    WAKE = "wake"
    """Restored because something used it again."""
    DEMOTE = "demote"
    """Switched off because one of its own checks failed."""
    RECOVER = "recover"
    """Switched on again because its checks pass."""
    UNDO = "undo"
    APPROVE = "approve"
    REJECT = "reject"
    CONFIRM = "confirm"
    REPAIR = "repair"
    ERASE = "erase"
    """The owner erased something. The change does not say what; every reader reloads what is known."""
    OTHER = "other"
    """A kind that only a newer version of Hone knows."""

    @classmethod
    def _missing_(cls, _: object) -> "ChangeKind":
        return cls.OTHER


class ChangeState(StrEnum):
    ACTIVE = "active"
    PENDING = "pending"
    """Waits for the owner: it is in no prompt and no file."""


class Evidence(Struct, frozen=True):
    """A message that a change rests on: its place, its trust, and the digest of its text."""

    session: SessionId
    message: int
    trust: Trust
    digest: str


class Said(Struct, frozen=True):
    """Words of the owner's among the evidence, in whole sentences, and when they were said."""

    text: str
    session: SessionId
    message: int
    at: datetime


class Delta(Struct, frozen=True):
    """One content before and after, by digest; None: it is not there."""

    path: str
    before: str | None
    after: str | None


class Author(Struct, frozen=True):
    """Who makes a change, where, and what it rests on. `trust_floor` is the lowest label in the conversation
    so far. `quotes` are the owner's own words among the evidence, in whole sentences; `said`, which is not
    stored, adds when they were said. `platform` is the kind of program that makes the change."""

    actor: Actor
    session: SessionId = NO_SESSION
    parent: SessionId = NO_SESSION
    tool: str = ""
    call: str = ""
    reason: str = ""
    evidence: tuple[Evidence, ...] = ()
    trust_floor: Trust = Trust.OWNER
    quotes: tuple[str, ...] = ()
    platform: str = ""
    said: tuple[Said, ...] = ()

    @property
    def name(self) -> str:
        """Return the author in one word: a client by the name that the owner gave it, as mcp/NAME, and a team
        member by their own name."""
        is_named = self.actor in (Actor.CLIENT, Actor.MEMBER) and self.platform
        return self.platform if is_named else self.actor


class Change(Struct, frozen=True):
    """`cause` is why the change is pending. `about` is the change that this one undoes, approves, rejects or
    confirms. Unless `confirmed`, it rests on nothing the owner said or did. Changes of one `group` are
    undone, approved and rejected together; their deltas list every content of their targets, unchanged ones
    included."""

    target: Target
    kind: ChangeKind
    deltas: tuple[Delta, ...]
    author: Author
    standing: ChangeState = ChangeState.ACTIVE
    confirmed: bool = False
    cause: str = ""
    about: ChangeId | None = None
    sources: tuple[ChangeId, ...] = ()
    group: str = ""


class Entry(Struct, frozen=True):
    """A change at its place in the ledger. `settled` is the latest change that approved, rejected, undid or
    confirmed it."""

    id: ChangeId
    at: datetime
    change: Change
    settled: ChangeId | None = None


class LessonText(Struct, frozen=True):
    """A change in its own words. `text` is the entry added, a skill's description or its first new line;
    `replaced` is the entry removed. `file` is a support file of a skill. `undo` is the change to undo: the
    first of its group."""

    change: ChangeId
    undo: ChangeId
    target: Target
    kind: ChangeKind
    standing: ChangeState
    text: str = ""
    replaced: str = ""
    file: str = ""


class ChangeQuery(Struct, frozen=True):
    """Selects changes. `target` is one target, or a prefix if it ends with a colon; `session` is where a
    change was made or what it rests on; `kinds` limits the kinds (empty: all); `after` and `before` keep only
    the ids beyond and below them."""

    target: str = ""
    actor: Actor | None = None
    session: str = ""
    group: str = ""
    since: datetime | None = None
    after: ChangeId | None = None
    limit: int | None = None
    kinds: tuple[ChangeKind, ...] = ()
    before: ChangeId | None = None


EVERY = ChangeQuery()


class PublishedFile(Struct, frozen=True):
    """A content as it was last written to disk, and how to recognize that file."""

    digest: str
    inode: int
    modified: int
    """In nanoseconds."""


class LedgerView(Struct, frozen=True):
    """What some targets hold and which of it is on disk, as of one change. `contents` holds their contents by
    digest, without those that the caller knew. `kinds` holds those of the latest changes, if requested."""

    latest: ChangeId
    held: Mapping[Target, Held]
    published: Mapping[tuple[Target, str], PublishedFile]
    contents: Mapping[str, bytes]
    kinds: frozenset[ChangeKind] | None = None


class Ledger(Protocol):
    """Writes are durable when a method returns. Order is by id, never by clock."""

    async def record(
        self, changes: Sequence[Change], contents: Mapping[str, bytes], at: datetime
    ) -> Sequence[Entry]:
        """Record all of the changes or none. Raises Conflict unless every `before` of an active change is
        what its target holds now, counting changes of this same call, and unless what it is `about` exists; a
        pending change can be settled once. Raises Missing if a digest, old or new, belongs to no content."""
        ...

    async def entry(self, id: ChangeId) -> Entry:
        """Raises Missing."""
        ...

    async def entries(self, query: ChangeQuery = EVERY) -> Sequence[Entry]:
        """Return entries, newest first."""
        ...

    async def pending(self, target: Target | None = None) -> Sequence[Entry]:
        """Return the pending changes that are not settled, oldest first; with a target, only those of that
        target."""
        ...

    async def latest(self) -> ChangeId:
        """Return the last id given out; 0 if there is none."""
        ...

    async def held(self, target: Target) -> Held:
        """Return what a target holds after all active changes; empty if it holds nothing."""
        ...

    async def view(
        self,
        targets: Collection[Target],
        known: Set[str] = frozenset(),
        since: ChangeId | None = None,
    ) -> LedgerView:
        """Return what `latest`, `held`, `published_files` and `contents` return, all from one moment.
        Contents in `known`, by digest, are left out. `kinds` covers the changes `since` another one."""
        ...

    async def held_below(self, beginning: str) -> Mapping[Target, Held]:
        """Return what each target with this prefix holds; skip those that hold nothing."""
        ...

    async def contents(self, digests: Collection[str]) -> Mapping[str, bytes]:
        """Return contents by digest. Raises Missing if one is absent, Corrupt if one does not match its
        digest."""
        ...

    async def published_files(
        self, targets: Collection[Target]
    ) -> Mapping[tuple[Target, str], PublishedFile]:
        """Return what was written to disk, by target and path."""
        ...

    async def mark_published(self, files: Mapping[tuple[Target, str], PublishedFile | None]) -> None:
        """Note what was written to disk; None: it was removed."""
        ...
