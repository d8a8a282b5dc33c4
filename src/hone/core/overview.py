"""What the page reads of a large home: sums, counts and windows, computed where the data lies."""

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from typing import Protocol

from msgspec import Struct

from hone.core.ids import SessionId
from hone.core.model import Usage
from hone.core.ports import Header, Spending
from hone.core.prefix import Prefix
from hone.core.skill import SkillOrigin
from hone.core.transcript import Node
from hone.core.turn import Origin


class SpendingSum(Struct, frozen=True):
    """Model calls added up. `usage.cost` covers the calls with a known price; `unpriced` counts the
    others."""

    usage: Usage = Usage(cost=0.0)
    calls: int = 0
    unpriced: int = 0


class SkillCount(Struct, frozen=True):
    """The number of skills in the ledger that share these properties."""

    origin: SkillOrigin
    pinned: bool
    archived: bool
    count: int


class SkillTouch(Struct, frozen=True):
    """A change of a skill. `counts`: it took effect, and its author is not the curator. `merged` are the
    skills that it was made from."""

    name: str
    at: datetime
    merged: tuple[str, ...] = ()
    counts: bool = True


class MessageWindow(Struct, frozen=True):
    """Consecutive messages of a session. The first one has the number `first`."""

    header: Header
    model: str
    prefix: str
    total: int
    first: int
    nodes: tuple[Node, ...]


class SpentCall(Struct, frozen=True):
    """One model call and where it was made. `prefix` is the digest of the session's current prompt, `folder`
    its working folder; both are empty if the session is gone."""

    session: SessionId
    spending: Spending
    prefix: str = ""
    folder: str = ""


class Overview(Protocol):
    """Reads of one database. Their cost does not grow with what they leave out."""

    async def spans(
        self, bounds: Sequence[datetime], origins: Collection[Origin]
    ) -> Sequence[tuple[SpendingSum, SpendingSum]]:
        """Add up the calls between each two neighbors of `bounds`: those by `origins`, and the others."""
        ...

    async def session_sum(self, session: SessionId) -> SpendingSum:
        """Add up the calls of one session."""
        ...

    async def extent(self) -> tuple[datetime, datetime] | None:
        """Return the times of the earliest and the latest call, by the clock; None if there was none."""
        ...

    async def numbers(self, bounds: Sequence[datetime], origin: Origin) -> Sequence[tuple[int, int] | None]:
        """Return the lowest and the highest number of the calls between each two neighbors of `bounds`. Calls
        are numbered in the order in which they were noted."""
        ...

    async def skill_counts(self) -> Sequence[SkillCount]: ...

    async def skill_names(self, origin: SkillOrigin, *, pinned: bool, archived: bool) -> Sequence[str]:
        """Return the names of the ledger's skills with these properties, in order."""
        ...

    async def skill_touches(self) -> Sequence[SkillTouch]:
        """Return changes of skills in the order in which they happened."""
        ...

    async def former_lines(self, session: SessionId) -> Sequence[tuple[int, str]]:
        """Return the lines of messages that a session has left, oldest first: how many messages, and by which
        model. Raises Missing or Corrupt."""
        ...

    async def window(self, session: SessionId, first: int | None, limit: int) -> MessageWindow:
        """Return at most `limit` messages from number `first` on, or the last ones. Raises Missing, or
        Corrupt if a content or a link in the window does not match its digest."""
        ...

    async def calls(
        self, since: datetime, until: datetime, origins: Collection[Origin] = ...
    ) -> Sequence[SpentCall]:
        """Return the calls from one moment until before another, by some origins or by all, in the order in
        which they were noted."""
        ...

    async def prompts(self, digests: Collection[str]) -> Mapping[str, Prefix]:
        """Return the prefixes with these digests; those that are not there are left out. Raises Corrupt."""
        ...

    async def skill_uses(self, since: date) -> Sequence[tuple[str, SessionId]]:
        """Return which skill was used in which session since a day."""
        ...
