"""Remember what the owner took back, so that no agent learns it again from the same words.

Everything is derived from the ledger: a change of the owner's that undid, rejected, removed or replaced
something, and a later statement of the owner's that took the place of an older one. If such a change is
itself undone, it no longer counts.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from hone.core.ledger import (
    MEMORY,
    START,
    USER,
    Actor,
    Author,
    Change,
    ChangeId,
    ChangeKind,
    ChangeQuery,
    ChangeState,
    Entry,
    Evidence,
    Ledger,
    Said,
    Target,
)
from hone.knowledge import places
from hone.knowledge.folding import Step, load_steps
from hone.knowledge.journal import entries as entries_of
from hone.knowledge.resemblance import resembles, shares_words
from hone.knowledge.skills import bundled

SHOWN = 20
"""Withdrawn lessons that a review is told of."""
_NEAR = 64
"""Changes that are looked at before all are."""
_KINDS = (
    ChangeKind.UNDO,
    ChangeKind.REJECT,
    ChangeKind.REMOVE,
    ChangeKind.REPLACE,
    ChangeKind.BATCH,
    ChangeKind.EDIT,
    ChangeKind.SET,
    ChangeKind.UNINSTALL,
)
Quoted = Callable[[str, Sequence[str]], bool]


class Withdrawal(Struct, frozen=True):
    """`gone` are the lessons that were taken back, `kept` the entries that the owner brought back. `evidence`
    is what the lessons rested on; `newer` is what the statement rests on that took their place. `owners`: the
    lessons had been active on the owner's own words."""

    id: ChangeId
    target: Target
    at: datetime
    gone: tuple[str, ...]
    kept: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    newer: tuple[Evidence, ...] = ()
    owners: bool = False

    def binds(self, target: Target) -> bool:
        """Whether it counts for lessons of this target. What was taken back in one project may hold in
        another."""
        if not places.is_journal(self.target) or not places.is_journal(target):
            return places.is_journal(self.target) == places.is_journal(target)
        return self.target == target or not {self.target, target}.isdisjoint({MEMORY, USER})


class Withdrawals:
    """What was taken back, as the ledger has it. Only changes since the last look are read."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._upto = START
        self._known: dict[ChangeId, Withdrawal] = {}

    async def all(self) -> Sequence[Withdrawal]:
        """Oldest first."""
        latest = await self._ledger.latest()
        if latest != self._upto:
            query = ChangeQuery(kinds=_KINDS, after=self._upto)
            for entry in reversed(await self._ledger.entries(query)):
                await self._note(entry)
            self._upto = latest
        return tuple(self._known.values())

    async def was_owners_word(self, withdrawal: Withdrawal, text: str) -> bool:
        """Whether an entry that the owner removed had come as the owner's own words."""
        if withdrawal.evidence:
            return withdrawal.owners
        origin = await find_origin(self._ledger, withdrawal.target, text)
        return origin is not None and is_owners_word(origin.change)

    async def _note(self, entry: Entry) -> None:
        change = entry.change
        if change.standing is not ChangeState.ACTIVE:
            return
        if change.kind is ChangeKind.UNDO and change.about:
            self._known.pop(change.about, None)
        owners_deed = change.author.actor is Actor.OWNER
        if not owners_deed and not change.confirmed:
            return
        about = await _resolved(self._ledger, change) if change.about else None
        gone, kept = await _differences(self._ledger, change, about)
        if not gone and not kept:
            return
        origin = about.change if about else None
        self._known[entry.id] = Withdrawal(
            entry.id,
            change.target,
            entry.at,
            gone,
            kept if change.about else (),
            origin.author.evidence if origin else (),
            () if owners_deed else change.author.evidence,
            origin is not None and is_owners_word(origin),
        )


def find_repeated(
    withdrawals: Sequence[Withdrawal], target: Target, text: str, author: Author, quoted: Quoted
) -> Withdrawal | None:
    """Return the withdrawn lesson that a new one resembles, unless the owner has said the new one since."""
    for each in reversed(withdrawals):
        if each.binds(target) and any(resembles(text, old) for old in each.gone):
            return None if any(quoted(text, [said.text]) for said in said_since(author, each)) else each
    return None


def find_repeated_skill(
    withdrawals: Sequence[Withdrawal], target: Target, text: str, author: Author
) -> Withdrawal | None:
    """The same for a skill. No quote covers one: the owner must have spoken of it since."""
    for each in reversed(withdrawals):
        if each.binds(target) and any(resembles(text, old) for old in each.gone):
            return None if any(shares_words(said.text, text) for said in said_since(author, each)) else each
    return None


def find_same_ground(withdrawals: Sequence[Withdrawal], target: Target, author: Author) -> Withdrawal | None:
    """Return the withdrawal whose messages are all that a new lesson rests on."""
    ground = {(each.session, each.digest) for each in author.evidence}
    for each in reversed(withdrawals):
        old = {(one.session, one.digest) for one in each.evidence}
        if ground and ground <= old and each.binds(target):
            return each
    return None


def find_kept(withdrawals: Sequence[Withdrawal], target: Target, entry: str) -> Withdrawal | None:
    """Return the withdrawal with which the owner brought this very entry back."""
    found = (each for each in reversed(withdrawals) if each.target == target and entry in each.kept)
    return next(found, None)


def said_since(author: Author, withdrawal: Withdrawal) -> list[Said]:
    """Return what the owner has said since: after the owner's own deed, or after the statement that took
    the place of the lesson."""
    return [each for each in author.said if is_later(each, withdrawal.newer, withdrawal.at)]


def is_later(said: Said, evidence: Sequence[Evidence], at: datetime) -> bool:
    """Whether it was said after the messages that something rests on. Where they are in another conversation,
    the moment counts at which it was recorded."""
    here = [each.message for each in evidence if each.session == said.session]
    return said.message >= max(here) if here else said.at > at


async def find_origin(ledger: Ledger, target: Target, text: str) -> Entry | None:
    """Return the newest change that brought an entry; None if no change has."""
    for limit in (_NEAR, None):
        for entry in await ledger.entries(ChangeQuery(target=target, limit=limit)):
            if entry.change.standing is ChangeState.ACTIVE and text in await _brought(ledger, entry.change):
                return entry
    return None


async def for_review(withdrawals: Withdrawals) -> Sequence[str]:
    """Return the withdrawn lessons that a review is told of, the newest first: those that had been active on
    the owner's own words. What was rejected is never shown to a model."""
    journal = [each for each in await withdrawals.all() if places.is_journal(each.target) and not each.newer]
    told: dict[str, None] = {}
    for each in reversed(journal[-SHOWN:]):
        for text in each.gone:
            if each.owners or await withdrawals.was_owners_word(each, text):
                told[text] = None
    return tuple(told)[:SHOWN]


def is_owners_word(change: Change) -> bool:
    """Whether what a change brought was active as the owner's own words, and not by an approval."""
    return (
        change.standing is ChangeState.ACTIVE and change.confirmed and change.kind is not ChangeKind.APPROVE
    )


async def _resolved(ledger: Ledger, change: Change) -> Entry | None:
    """Return what a change is about; of an approval, what was approved."""
    found = await ledger.entry(change.about) if change.about else None
    if found and found.change.kind is ChangeKind.APPROVE and found.change.about:
        return await ledger.entry(found.change.about)
    return found


async def _differences(
    ledger: Ledger, change: Change, about: Entry | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the lessons that a change took away, and the entries it brought. A rejection has done nothing;
    what it rejects counts the other way around."""
    if change.kind is ChangeKind.REJECT:
        steps = await load_steps(ledger, about.change) if about else ()
        steps = tuple(step.reverse for step in steps)
    else:
        steps = await load_steps(ledger, change)
    read = entries_in if places.is_journal(change.target) else lines_in
    gone = [each for step in steps for each in _missing(read(step.before), read(step.after))]
    kept = [each for step in steps for each in _missing(read(step.after), read(step.before))]
    if not places.is_journal(change.target):
        gone = without_bundled(change.target, gone)
        is_taken_back = change.kind in (ChangeKind.UNDO, ChangeKind.REJECT, ChangeKind.UNINSTALL)
        return (("\n".join(gone),) if gone and is_taken_back else ()), ()
    # What was only put in other words is still there.
    return tuple(each for each in gone if not any(resembles(each, new) for new in kept)), tuple(kept)


def lesson_of(target: Target, steps: Sequence[Step]) -> str:
    """Return what a change of a skill adds, as one text to compare."""
    texts = [step for step in steps if not step.path.startswith("@")]
    added = [line for step in texts for line in _missing(lines_in(step.after), lines_in(step.before))]
    return "\n".join(without_bundled(target, added))


def without_bundled(target: Target, lines: Sequence[str]) -> list[str]:
    """Leave out what comes with Hone: a copy of a skill adds only what it corrects."""
    files = bundled.files(places.name_of(target))
    known = {line for data in files.values() for line in lines_in(data)}
    return [line for line in lines if line not in known]


async def _brought(ledger: Ledger, change: Change) -> set[str]:
    steps = await load_steps(ledger, change)
    return {each for step in steps for each in _missing(entries_in(step.after), entries_in(step.before))}


def entries_in(data: bytes | None) -> tuple[str, ...]:
    return entries_of((data or b"").decode("utf-8", "replace"))


def lines_in(data: bytes | None) -> tuple[str, ...]:
    lines = (data or b"").decode("utf-8", "replace").split("\n")
    return tuple(line.strip() for line in lines if line.strip())


def _missing(before: Sequence[str], after: Sequence[str]) -> list[str]:
    there: Mapping[str, None] = dict.fromkeys(after)
    return [each for each in before if each not in there]
