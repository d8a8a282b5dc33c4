"""What the curator did: each round is recorded in one transaction with what it changed, or is not at all."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NewType, Protocol

from hone.core.ids import SessionId
from hone.core.ledger import NO_SESSION, Change, ChangeId, Entry
from hone.core.value import dataclass

RoundId = NewType("RoundId", int)

UNNUMBERED = RoundId(0)


@dataclass(frozen=True, slots=True)
class CuratorRun:
    """`session` is where a model was asked, `library` a digest of the skills it was asked about, `error` why
    it came to no answer that could be used. `report` is Markdown."""

    at: datetime
    why: str
    session: SessionId = NO_SESSION
    library: str = ""
    error: str = ""
    report: str = ""
    changes: tuple[ChangeId, ...] = ()
    id: RoundId = UNNUMBERED


class CuratorRuns(Protocol):
    """Durable once a method has returned. Order is the order of ids, never of clocks."""

    async def rounds(self, limit: int | None = None) -> Sequence[CuratorRun]:
        """Newest first."""
        ...

    async def complete(
        self, round: CuratorRun, after: RoundId, changes: Sequence[Change], contents: Mapping[str, bytes]
    ) -> tuple[CuratorRun, Sequence[Entry]]:
        """Records a round and what it changed, both or neither. `after` is the latest round that was known
        when it began (0: none): raises Conflict if there is another one by now, and what Ledger.record
        raises."""
        ...
