"""The port of an index that finds the session a history belongs to. It is a cache: sessions are the truth."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from hone.core.ids import SessionId


class HistoryNote(Struct, frozen=True):
    """A turn was added to a session: the heads before and after it, the number of messages now, and the
    digest of everything said."""

    session: SessionId
    before: str
    head: str
    messages: int
    digest: str


class KnownHistory(Struct, frozen=True):
    """A session that had this history at this many messages. Unless `current`, it has changed since."""

    session: SessionId
    messages: int
    current: bool


class Histories(Protocol):
    async def find(self, digest: str) -> Sequence[KnownHistory]:
        """Return the sessions with this history, the latest activity first."""
        ...

    async def unfilled(self, limit: int) -> Sequence[tuple[SessionId, str]]:
        """Return the owner's conversations whose index entry is missing or outdated, the latest activity
        first, with their first words."""
        ...

    async def fill(self, session: SessionId, head: str, places: Sequence[tuple[str, int]]) -> None:
        """Replace what the index holds for a session: digests, each with its number of messages. Do nothing
        if `head` is no longer its head."""
        ...

    async def add(self, notes: Sequence[HistoryNote]) -> Sequence[SessionId]:
        """Add turns to sessions whose index entry was up to date before. Return the other turns."""
        ...
