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
"""In the place of a provider: a conversation with another agent, which nobody here has gone on with."""


class Header(Struct, frozen=True):
    """What a session is called and where it comes from. A fork or branch has a `parent`, with whom it shares
    the first `shared` messages."""

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
    """A line in a list of sessions. `opening` is the beginning of the first words the user said."""

    header: Header
    model: str
    messages: int
    updated: datetime
    opening: str

    @property
    def source(self) -> str:
        """The agent it was brought in from; empty if it was had or gone on with here."""
        provider, _, name = self.model.partition("/")
        return name if provider == IMPORTED and self.header.parent is None else ""


class Spending(Struct, frozen=True):
    """One model call: when, by which model, for whom, how much."""

    at: datetime
    model: str
    origin: Origin
    usage: Usage


class SpendingTotal(Struct, frozen=True):
    """US dollars, and the tokens of those calls whose price nobody knows."""

    cost: float = 0.0
    unpriced: int = 0


class Sessions(Protocol):
    """Conversations, durable once a method has returned. Contents are kept once, by digest; nodes form a tree
    that branches and forks share."""

    async def start(
        self, header: Header, prefix: Prefix, nodes: Sequence[Node], look: Look | None = None
    ) -> None:
        """Makes a session with its first messages. Without a parent there must be at least one; with a parent
        the nodes follow the parent's first `header.shared` messages. Raises Missing if there is no such
        parent, Conflict if the id is taken or the nodes do not follow. `look` is stored with them."""
        ...

    async def append(
        self,
        session: SessionId,
        nodes: Sequence[Node],
        spending: Spending | None = None,
        counts: Sequence[TopicCount] = (),
        look: Look | None = None,
    ) -> Job | None:
        """Adds nodes after the head, with what they cost. Raises Conflict unless the first one's parent is
        the head: then another process went on with this session. Nothing is added by half: what `counts` make
        of the tree's counters is part of it, and so is the review of all messages that becomes due, which is
        returned. Such a review is about the look's topics, too; where none is due, `look` is stored."""
        ...

    async def move(self, session: SessionId, prefix: Prefix, transcript: Transcript) -> None:
        """Opens a new segment: the same contents under another prefix, linked to the old head. Raises
        Conflict unless the contents are those of the stored session."""
        ...

    async def shorten(
        self,
        session: SessionId,
        after: str,
        transcript: Transcript,
        topics: Topics = frozenset(),
        look: Look | None = None,
    ) -> Job | None:
        """Goes on with other messages under the same prefix; what was said stays, linked from the new line.
        With `topics`, what was to be looked back over in it is queued for a review of these, which is
        returned. `look` is stored with the messages. Raises Conflict unless `after` is the head."""
        ...

    async def load(self, session: SessionId) -> StoredSession:
        """Raises Missing, or Corrupt if a content or the chain does not match its digest."""
        ...

    async def earlier(self, session: SessionId) -> Sequence[StoredSession]:
        """The lines it has left by `move` and `shorten`, oldest first. Raises Missing or Corrupt."""
        ...

    async def find(self, beginning: str) -> SessionId:
        """The one session whose id starts like this. Raises Missing; if several do, it names them."""
        ...

    async def list(
        self, limit: int | None = None, origin: Origin | None = Origin.USER, *, own: bool = False
    ) -> Sequence[SessionSummary]:
        """Latest activity first, by sequence and not by clock. What was brought in from elsewhere stands
        where its own time belongs, or with `own` is left out."""
        ...

    async def rename(self, session: SessionId, title: str) -> None: ...

    async def delete(self, session: SessionId) -> None:
        """Removes the session, the forks and children that Hone made of it, and the contents that no other
        session shares. The user's branches stay. What it cost stays known."""
        ...

    async def find_deleted(self, beginning: str) -> Sequence[SessionId]:
        """Deleted sessions whose ids start like this, of those that have cost something."""
        ...

    async def spending(
        self,
        session: SessionId | None = None,
        *,
        since: datetime | None = None,
        origins: Collection[Origin] = (),
    ) -> Sequence[Spending]:
        """In the order it was noted; of one session, not older than a moment, or by some origins only."""
        ...

    async def total_spending(
        self, since: datetime, until: datetime, origins: Collection[Origin]
    ) -> SpendingTotal:
        """Add up what these origins spent from one moment until before another."""
        ...
