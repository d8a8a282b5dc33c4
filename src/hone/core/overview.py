"""What the page reads of a large home: sums, counts and windows, made where the data lies."""

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
    """Model calls added up. `usage.cost` is that of the calls with a known price; `unpriced` counts the
    others."""

    usage: Usage = Usage(cost=0.0)
    calls: int = 0
    unpriced: int = 0


class SkillCount(Struct, frozen=True):
    """How many skills of the ledger are alike in these."""

    origin: SkillOrigin
    pinned: bool
    archived: bool
    count: int


class SkillTouch(Struct, frozen=True):
    """A change of a skill. `counts`: it took effect, and somebody other than the curator made it. `merged`
    are the skills that it was made from."""

    name: str
    at: datetime
    merged: tuple[str, ...] = ()
    counts: bool = True


class MessageWindow(Struct, frozen=True):
    """Some messages of a session in a row, the first of which has the number `first`."""

    header: Header
    model: str
    prefix: str
    total: int
    first: int
    nodes: tuple[Node, ...]


class SpentCall(Struct, frozen=True):
    """One model call with where it was made. `prefix` is the digest of the prompt that its session has now,
    `folder` where that works; both are empty if the session is gone."""

    session: SessionId
    spending: Spending
    prefix: str = ""
    folder: str = ""


class Overview(Protocol):
    """Reads of one database whose cost does not grow with what they leave out."""

    async def spans(
        self, bounds: Sequence[datetime], origins: Collection[Origin]
    ) -> Sequence[tuple[SpendingSum, SpendingSum]]:
        """Add up the calls between each two neighbors of `bounds`: those by `origins`, and the others."""
        ...

    async def session_sum(self, session: SessionId) -> SpendingSum:
        """Add up the calls of one session."""
        ...

    async def extent(self) -> tuple[datetime, datetime] | None:
        """Return the moments of the earliest and the latest call, by the clock; None if there was none."""
        ...

    async def numbers(self, bounds: Sequence[datetime], origin: Origin) -> Sequence[tuple[int, int] | None]:
        """Return the lowest and the highest number of the calls between each two neighbors of `bounds`. Calls
        are numbered in the order in which they were noted."""
        ...

    async def skill_counts(self) -> Sequence[SkillCount]: ...

    async def skill_names(self, origin: SkillOrigin, *, pinned: bool, archived: bool) -> Sequence[str]:
        """Return the names of those skills of the ledger that are alike in these, in order."""
        ...

    async def skill_touches(self) -> Sequence[SkillTouch]:
        """Return them in the order in which they happened."""
        ...

    async def former_lines(self, session: SessionId) -> Sequence[tuple[int, str]]:
        """Return the lines that a session has left, oldest first: how many messages, and by which model.
        Raises Missing or Corrupt."""
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
        """Return which skill was used in which session, since a day."""
        ...
