"""Quote the evidence of changes, and withdraw a source together with everything derived from it."""

from collections.abc import Sequence

from msgspec import Struct

from hone.core.errors import Corrupt, Missing, Refused, StoreError
from hone.core.ids import SessionId
from hone.core.ledger import Actor, ChangeKind, ChangeState, Entry, Evidence
from hone.core.ports import Sessions
from hone.core.transcript import Node
from hone.core.visible import one_line
from hone.knowledge.evidence import find_cited
from hone.knowledge.keeper import Keeper

LONGEST = 300
"""The most letters of a message to show."""


class Withdrawn(Struct, frozen=True):
    """What was undone or rejected, and what could not be, with the reason."""

    entries: tuple[Entry, ...]
    left: tuple[tuple[Entry, str], ...]


async def find_derived(keeper: Keeper, session: SessionId, message: int | None = None) -> Sequence[Entry]:
    """Return the active and pending changes that rest on a session or on one of its messages, newest
    first."""
    every = await keeper.ledger.entries()
    tainted = {entry.id for entry in every if _rests(entry, session, message)}
    while more := {
        entry.id
        for entry in every
        if entry.id not in tainted and entry.change.kind is not ChangeKind.UNDO and _sources(entry) & tainted
    }:
        tainted |= more
    return [entry for entry in every if entry.id in tainted and await keeper.is_standing(entry)]


async def withdraw(keeper: Keeper, entries: Sequence[Entry]) -> Withdrawn:
    """Undo or reject changes, newest first, so that each finds the state it left."""
    done: list[Entry] = []
    left: list[tuple[Entry, str]] = []
    for entry in entries:
        if done and not await keeper.is_standing(await keeper.ledger.entry(entry.id)):
            continue  # already done with its group
        pending = entry.change.standing is ChangeState.PENDING
        try:
            done.append(await (keeper.reject if pending else keeper.undo)(entry.id))
        except (Refused, StoreError) as error:
            left.append((entry, str(error)))
    return Withdrawn(tuple(done), tuple(left))


def _rests(entry: Entry, session: SessionId, message: int | None) -> bool:
    if entry.change.author.actor is Actor.OWNER:
        return False
    cited = [each.message for each in entry.change.author.evidence if each.session == session]
    if message is not None:
        return message in cited
    return bool(cited) or session in (entry.change.author.session, entry.change.author.parent)


def _sources(entry: Entry) -> set[int]:
    return {*entry.change.sources, *([entry.change.about] if entry.change.about else [])}


async def quote(sessions: Sessions, evidence: Evidence) -> str:
    """Return what was said, in quotes; if that is impossible, the reason in brackets."""
    try:
        nodes = (await sessions.load(evidence.session)).transcript.nodes
    except Missing:
        return "(the session is gone)"
    except Corrupt as error:
        return f"({error})"
    cited = find_cited(nodes, evidence)
    return f"“{one_line(_said(cited), LONGEST)}”" if cited else "(the session no longer has it)"


def _said(node: Node) -> str:
    message = node.message
    return message.text or (message.result.text if message.result else "")
