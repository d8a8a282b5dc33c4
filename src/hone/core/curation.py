"""Records of the curator's runs. A run and its changes are stored in one transaction, or not at all."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NewType, Protocol

from msgspec import Struct

from hone.core.ids import SessionId
from hone.core.ledger import NO_SESSION, Change, ChangeId, ChangeState, Entry

CuratorRunId = NewType("CuratorRunId", int)

UNNUMBERED = CuratorRunId(0)


class CuratorRun(Struct, frozen=True):
    """`session` is the session that asked a model, `library` a digest of the skills it was asked about,
    `error` why there was no usable answer. `report` is Markdown."""

    at: datetime
    why: str
    session: SessionId = NO_SESSION
    library: str = ""
    error: str = ""
    report: str = ""
    changes: tuple[ChangeId, ...] = ()
    id: CuratorRunId = UNNUMBERED


class CuratorRuns(Protocol):
    """Writes are durable when a method returns. Order is by id, never by clock."""

    async def runs(self, limit: int | None = None) -> Sequence[CuratorRun]:
        """Return runs, newest first."""
        ...

    async def complete(
        self, run: CuratorRun, after: CuratorRunId, changes: Sequence[Change], contents: Mapping[str, bytes]
    ) -> tuple[CuratorRun, Sequence[Entry]]:
        """Record a run and its changes, both or neither. `after` is the latest run that was known when it
        began (0: none). Raises Conflict if there is a newer one by now, and what Ledger.record raises."""
        ...


def summarize(run: CuratorRun, entries: Sequence[Entry]) -> str:
    """Describe a run that has ended in one line."""
    groups: dict[str, Entry] = {}
    for entry in entries:
        groups.setdefault(entry.change.group, entry)
    told = [_answer(first) for first in groups.values()]
    changed = "1 skill" if len(entries) == 1 else f"{len(entries)} skills"
    said = f"{changed} ({'; '.join(told)})" if entries else "no skill changed"
    return f"curator, round {run.id}: {said}"


def _answer(first: Entry) -> str:
    waits = first.change.standing is ChangeState.PENDING
    return f"{'it waits: hone approve' if waits else 'undo it with: hone undo'} {first.id}"
