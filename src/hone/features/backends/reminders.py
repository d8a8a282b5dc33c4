"""What memory has to a user's words, as data beside them: what is shown of it, and what it is worth."""

from collections.abc import Iterable, Sequence

from hone.core.backend import MemoryItem
from hone.core.messages import Message, Reminder
from hone.core.trust import Trust, lowest
from hone.prompt.sections import item

MOST = 5
WIDTH = 400
"""Characters of one memo."""
TRUST, HOME = "trust", "home"
"""Names in a memo's metadata: what it was worth when it was stored, and whose copy it is."""


def label(memo: MemoryItem, *, cloud: bool) -> Trust:
    """What a memo is worth now: what it was worth when it was stored, never more than the agent's own words.
    What comes from elsewhere is foreign, whatever it says of itself."""
    return Trust.FOREIGN if cloud else min(Trust.AGENT, stored(memo))


def stored(memo: MemoryItem) -> Trust:
    """The label that a memo was stored with; none is the lowest."""
    named = memo.metadata.get(TRUST, "")
    return next((each for each in Trust if each.name.lower() == named), Trust.FOREIGN)


def reminder(
    memos: Iterable[MemoryItem], *, cloud: bool, home: str, said: Sequence[str] = ()
) -> Reminder | None:
    """What is brought up unasked. Not what was stored from foreign words: it would be before the model in
    every conversation that touches it. Not the copies of what this home knows: the ledger has those, and what
    was withdrawn. Not what was `said` before."""
    fitting = [
        memo
        for memo in memos
        if stored(memo) > Trust.FOREIGN and not _is_copy(memo, home) and not _was_said(memo, said)
    ][:MOST]
    if not fitting:
        return None
    worth = lowest(label(memo, cloud=cloud) for memo in fitting)
    return Reminder("\n".join(map(shown, fitting)), worth.name.lower())


def shown(memo: MemoryItem) -> str:
    value = memo.value if len(memo.value) <= WIDTH else f"{memo.value[: WIDTH - 1].rstrip()}…"
    return "\n".join(item(f"{memo.key}: {value}"))


def reminded(messages: Iterable[Message]) -> list[str]:
    """What a conversation was reminded of so far."""
    return [message.reminder.text for message in messages if message.reminder]


def _is_copy(memo: MemoryItem, home: str) -> bool:
    return bool(home) and memo.metadata.get(HOME) == home


def _was_said(memo: MemoryItem, said: Sequence[str]) -> bool:
    return any(shown(memo) in each for each in said)
