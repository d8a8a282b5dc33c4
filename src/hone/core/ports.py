"""The Protocol of a session store. One contract suite tests every implementation."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from hone.core.ids import SessionId
from hone.core.jobs import Job, Look, TopicCount, Topics
from hone.core.model import Usage
from hone.core.prefix import Prefix
from hone.core.transcript import Node, Transcript
from hone.core.turn import Origin

IMPORTED = "imported"
"""Stands for a provider: a conversation with another agent that was never continued here."""


class Header(Struct, frozen=True):
    """A session's title and origin. A fork or branch has a `parent`, with which it shares the first `shared`
    messages."""

    id: SessionId
    created: datetime
    title: str = ""
    origin: Origin = Origin.USER
    folder: str = ""
    parent: SessionId | None = None
    shared: int = 0


class StoredSession(Struct, frozen=True):
    header: Header
    prefix: Prefix
    transcript: Transcript


class SessionSummary(Struct, frozen=True):
    """A line in a list of sessions. `opening` is the start of the user's first words."""

    header: Header
    model: str
    messages: int
    updated: datetime
    opening: str

    @property
    def source(self) -> str:
        """The agent that the session was imported from; empty if it began or continued here."""
        provider, _, name = self.model.partition("/")
        return name if provider == IMPORTED and self.header.parent is None else ""


class Spending(Struct, frozen=True):
    """One model call: its time, model, origin and cost."""

    at: datetime
    model: str
    origin: Origin
    usage: Usage


class SpendingTotal(Struct, frozen=True):
    """US dollars, and the tokens of calls without a known price."""

    cost: float = 0.0
    unpriced: int = 0


class Sessions(Protocol):
    """Conversations. Writes are durable when a method returns. Contents are stored once, by digest; nodes
    form a tree that branches and forks share."""

    async def start(
        self, header: Header, prefix: Prefix, nodes: Sequence[Node], look: Look | None = None
    ) -> None:
        """Create a session with its first messages. Without a parent there must be at least one; with a
        parent the nodes follow the parent's first `header.shared` messages. Raises Missing if there is no
        such parent, Conflict if the id is taken or the nodes do not follow. `look` is stored with them."""
        ...

    async def append(
        self,
        session: SessionId,
        nodes: Sequence[Node],
        spending: Spending | None = None,
        counts: Sequence[TopicCount] = (),
        look: Look | None = None,
    ) -> Job | None:
        """Add nodes after the head, with their cost. Raises Conflict unless the first node's parent is the
        head: otherwise another process has continued this session. One transaction also updates the tree's
        counters by `counts`, and queues the review of all messages if one is now due, which is returned. That
        review covers the look's topics, too; if none is due, `look` is stored."""
        ...

    async def move(self, session: SessionId, prefix: Prefix, transcript: Transcript) -> None:
        """Open a new segment: the same contents under another prefix, linked to the old head. Raises Conflict
        unless the contents are those of the stored session."""
        ...

    async def shorten(
        self,
        session: SessionId,
        after: str,
        transcript: Transcript,
        topics: Topics = frozenset(),
        look: Look | None = None,
    ) -> Job | None:
        """Continue with other messages under the same prefix. The old messages stay, linked from the new
        line. With `topics`, what was to be looked back over is queued for a review of these topics, which is
        returned. `look` is stored with the messages. Raises Conflict unless `after` is the head."""
        ...

    async def load(self, session: SessionId) -> StoredSession:
        """Load a session. Raises Missing, or Corrupt if a content or the chain does not match its digest."""
        ...

    async def earlier(self, session: SessionId) -> Sequence[StoredSession]:
        """Return the lines that the session has left by `move` and `shorten`, oldest first. Raises Missing or
        Corrupt."""
        ...

    async def find(self, beginning: str) -> SessionId:
        """Return the only session whose id starts like this. Raises Missing; if several match, it names
        them."""
        ...

    async def list(
        self, limit: int | None = None, origin: Origin | None = Origin.USER, *, own: bool = False
    ) -> Sequence[SessionSummary]:
        """Return sessions, the latest activity first, by sequence and not by clock. Imported sessions are
        sorted by their own time, or left out with `own`."""
        ...

    async def rename(self, session: SessionId, title: str) -> None: ...

    async def delete(self, session: SessionId) -> None:
        """Remove the session, the forks and children that Hone made of it, and the contents that no other
        session shares. The user's branches stay, and so does the record of what it cost."""
        ...

    async def find_deleted(self, beginning: str) -> Sequence[SessionId]:
        """Return deleted sessions whose ids start like this, if they have cost something."""
        ...

    async def spending(
        self,
        session: SessionId | None = None,
        *,
        since: datetime | None = None,
        origins: Collection[Origin] = (),
    ) -> Sequence[Spending]:
        """Return spending in the order it was noted; for one session, since a moment, or for some origins
        only."""
        ...

    async def total_spending(
        self, since: datetime, until: datetime, origins: Collection[Origin]
    ) -> SpendingTotal:
        """Add up what these origins spent from one moment until before another."""
        ...
