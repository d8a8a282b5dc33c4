"""Stage changes that only one run sees until they are committed together, or dropped."""

from collections.abc import Collection, Mapping, Sequence, Set
from datetime import datetime

from hone.core.errors import Conflict
from hone.core.ledger import (
    START,
    Change,
    ChangeId,
    ChangeState,
    Entry,
    Held,
    Ledger,
    LedgerView,
    PublishedFile,
    Target,
)


class StagedLedger:
    """A ledger on top of another one. Changes recorded here have no number yet."""

    def __init__(self, base: Ledger) -> None:
        self._base = base
        self.entry, self.entries = base.entry, base.entries
        self.latest = base.latest
        self.changes: list[Change] = []
        self.contents_made: dict[str, bytes] = {}
        self._held: dict[Target, dict[str, str]] = {}
        self._waiting: list[Entry] = []
        self.since: ChangeId | None = None
        """The last change that existed when this run made its first."""

    async def record(
        self, changes: Sequence[Change], contents: Mapping[str, bytes], at: datetime
    ) -> Sequence[Entry]:
        if self.since is None:
            self.since = await self._base.latest()
        held: dict[Target, dict[str, str]] = {}
        for change in changes:
            if change.standing is ChangeState.ACTIVE:
                known = held.get(change.target)
                before = await self.held(change.target) if known is None else known
                held[change.target] = _fold(before, change)
        self._held |= held
        self.changes += changes
        self.contents_made.update(contents)
        entries = [Entry(START, at, change) for change in changes]
        self._waiting += [each for each in entries if each.change.standing is ChangeState.PENDING]
        return entries

    async def pending(self, target: Target | None = None) -> Sequence[Entry]:
        """Return pending changes, including this run's."""
        own = [each for each in self._waiting if target in (None, each.change.target)]
        return [*await self._base.pending(target), *own]

    async def held(self, target: Target) -> Held:
        """Return a target's content as of the first call, plus the changes of this run only."""
        if target not in self._held:
            self._held[target] = dict(await self._base.held(target))
        return self._held[target]

    async def view(
        self,
        targets: Collection[Target],
        known: Set[str] = frozenset(),
        since: ChangeId | None = None,
    ) -> LedgerView:
        held = {target: await self.held(target) for target in targets}
        wanted = {name for each in held.values() for name in each.values()} - known
        return LedgerView(await self.latest(), held, {}, await self.contents(wanted))

    async def held_below(self, beginning: str) -> Mapping[Target, Held]:
        known = {**await self._base.held_below(beginning), **self._held}
        return {target: held for target, held in known.items() if target.startswith(beginning) and held}

    async def contents(self, digests: Collection[str]) -> Mapping[str, bytes]:
        own = {each: self.contents_made[each] for each in digests if each in self.contents_made}
        return {**await self._base.contents(set(digests) - own.keys()), **own}

    async def published_files(
        self, targets: Collection[Target]
    ) -> Mapping[tuple[Target, str], PublishedFile]:
        return {}

    async def mark_published(self, files: Mapping[tuple[Target, str], PublishedFile | None]) -> None:
        """Do nothing: a staged ledger publishes nothing."""


def _fold(before: Held, change: Change) -> dict[str, str]:
    held = dict(before)
    for delta in change.deltas:
        if held.get(delta.path) != delta.before:
            raise Conflict(f"{change.target} has changed meanwhile; nothing was changed.")
        held.pop(delta.path, None)
        if delta.after is not None:
            held[delta.path] = delta.after
    return held
