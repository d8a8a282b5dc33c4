"""Find out from the ledger whether a change has effect, what belongs to it, and what came after it."""

from collections.abc import Sequence

from hone.core.ledger import ChangeQuery, ChangeState, Entry, Ledger


async def is_standing(ledger: Ledger, entry: Entry) -> bool:
    """Return whether a change has effect, or still waits for an answer."""
    if not entry.settled:
        return bool(entry.change.deltas)
    if entry.change.standing is ChangeState.PENDING:
        return False
    return not await is_standing(ledger, await ledger.entry(entry.settled))


async def find_group(ledger: Ledger, entry: Entry) -> Sequence[Entry]:
    """Return the changes that are answered or undone with this one, itself included, oldest first."""
    if not entry.change.group:
        return [entry]
    group = await ledger.entries(ChangeQuery(group=entry.change.group))
    return [each for each in reversed(group) if await is_standing(ledger, each)]


async def describe_since(ledger: Ledger, entry: Entry) -> str:
    """Name the changes of the same target that took effect later; nothing if there are none."""
    later = await ledger.entries(ChangeQuery(target=entry.change.target, after=entry.id))
    active = [
        str(each.id) for each in later if each.change.standing is ChangeState.ACTIVE and each.change.deltas
    ]
    return f"\nChanges since: {', '.join(reversed(active))}." if active else ""
