"""Remember what the owner took back, so that no agent learns it again from the same words.

Everything is derived from the ledger: a change by the owner that undid, rejected, removed or replaced
something, and a later statement of the owner's that replaced an older one. If such a change is undone, it no
longer counts.
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
from hone.knowledge.folding import Loaded, Step
from hone.knowledge.journal import compare, find_missing, lines_in
from hone.knowledge.origins import Origins
from hone.knowledge.resemblance import is_same, resembles, shares_words
from hone.knowledge.skills import bundled

SHOWN = 20
"""The most withdrawn lessons to tell a review."""
_CHUNK = 200
"""How many changes to read the contents of at once."""
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
    """`gone` are the lessons that a change removed, `came` those that it added. `evidence` is what the
    lessons rested on; `newer` is what the statement that replaced them rests on. `owners`: the lessons had
    been active on the owner's own words. `answers`: the owner undid or rejected another change, and so wants
    what was added."""

    id: ChangeId
    target: Target
    at: datetime
    gone: tuple[str, ...]
    came: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    newer: tuple[Evidence, ...] = ()
    owners: bool = False
    answers: bool = False

    @property
    def lessons(self) -> tuple[str, ...]:
        """Return the lessons that were taken back. A lesson that was only reworded is still there."""
        return tuple(each for each in self.gone if not any(resembles(each, new) for new in self.came))

    def has(self, text: str) -> bool:
        """Tell whether a lesson resembles one that was taken back, or is one that another replaced."""
        if any(is_same(text, each) for each in self.gone):
            return not any(is_same(text, each) for each in self.came)
        return any(resembles(text, each) for each in self.gone) and any(
            resembles(text, each) for each in self.lessons
        )

    def binds(self, target: Target) -> bool:
        """Tell whether it applies to lessons of this target. What was taken back in one project may hold in
        another."""
        if not places.is_journal(self.target) or not places.is_journal(target):
            return places.is_journal(self.target) == places.is_journal(target)
        return self.target == target or not {self.target, target}.isdisjoint({MEMORY, USER})


class Withdrawals:
    """What was taken back, according to the ledger. Only changes since the last read are read."""

    def __init__(self, ledger: Ledger, origins: Origins) -> None:
        self._ledger = ledger
        self._origins = origins
        self._upto = START
        self._known: dict[ChangeId, Withdrawal] = {}

    async def all(self, latest: ChangeId | None = None) -> Sequence[Withdrawal]:
        """Return all withdrawals, oldest first. `latest` is the last change, if the caller knows it."""
        if latest is None:
            latest = await self._ledger.latest()
        if latest != self._upto:
            made = (await self._ledger.entries(ChangeQuery(kinds=_KINDS, after=self._upto)))[::-1]
            for start in range(0, len(made), _CHUNK):
                await self._note(made[start : start + _CHUNK])
            self._upto = latest
        return tuple(self._known.values())

    def pass_over(self, loaded: Loaded) -> None:
        """Skip changes since the last read if none of them can take something back."""
        if loaded.latest is None or loaded.kinds is None or not loaded.since <= self._upto <= loaded.latest:
            return
        if loaded.kinds.isdisjoint(_KINDS):
            self._upto = loaded.latest

    async def was_owners_word(self, withdrawal: Withdrawal, text: str) -> bool:
        """Tell whether an entry that the owner removed had been added in the owner's own words."""
        if withdrawal.evidence:
            return withdrawal.owners
        origin = await self._origins.find(withdrawal.target, text)
        return origin is not None and is_owners_word(origin.change)

    async def _note(self, made: Sequence[Entry]) -> None:
        known = [each for each in made if _counts(each.change)]
        about = {each.id: await _resolved(self._ledger, each.change) for each in known if each.change.about}
        changes = [each.change for each in (*known, *filter(None, about.values()))]
        deltas = [delta for change in changes for delta in change.deltas]
        contents = await self._ledger.contents(
            {name for delta in deltas for name in (delta.before, delta.after) if name}
        )
        for entry in known:
            if entry.change.kind is ChangeKind.UNDO and entry.change.about:
                self._known.pop(entry.change.about, None)
            if found := _withdrawal(entry, about.get(entry.id), contents):
                self._known[entry.id] = found


def _counts(change: Change) -> bool:
    """Tell whether a change can take something back: the owner made it, or it rests on the owner's words.
    Removing a copy for another agent says nothing about the lesson."""
    if places.is_copy(change.target):
        return False
    owners = change.author.actor is Actor.OWNER or change.confirmed
    return change.standing is ChangeState.ACTIVE and owners


def _withdrawal(entry: Entry, about: Entry | None, contents: Mapping[str, bytes]) -> Withdrawal | None:
    change, origin = entry.change, about.change if about else None
    gone, came = _differences(change, origin, contents)
    if not gone and not (came and change.about):
        return None
    return Withdrawal(
        entry.id,
        change.target,
        entry.at,
        gone,
        came,
        origin.author.evidence if origin else (),
        () if change.author.actor is Actor.OWNER else change.author.evidence,
        origin is not None and is_owners_word(origin),
        bool(change.about),
    )


def find_repeated(
    withdrawals: Sequence[Withdrawal], target: Target, text: str, author: Author, quoted: Quoted
) -> Withdrawal | None:
    """Return the withdrawn lesson that a new one resembles, unless the owner has said the new one since."""
    for each in reversed(withdrawals):
        if each.binds(target) and each.has(text):
            return None if any(quoted(text, [said.text]) for said in said_since(author, each)) else each
    return None


def find_repeated_skill(
    withdrawals: Sequence[Withdrawal], target: Target, text: str, author: Author
) -> Withdrawal | None:
    """Return the same for a skill. No quote covers one: the owner must have spoken of it since."""
    for each in reversed(withdrawals):
        if each.binds(target) and each.has(text):
            return None if any(shares_words(said.text, text) for said in said_since(author, each)) else each
    return None


def find_same_ground(withdrawals: Sequence[Withdrawal], target: Target, author: Author) -> Withdrawal | None:
    """Return the withdrawal that rests on the same messages as a new lesson."""
    ground = {(each.session, each.digest) for each in author.evidence}
    for each in reversed(withdrawals):
        old = {(one.session, one.digest) for one in each.evidence}
        if ground and ground <= old and each.binds(target):
            return each
    return None


def find_kept(withdrawals: Sequence[Withdrawal], target: Target, entry: str) -> Withdrawal | None:
    """Return the withdrawal by which the owner restored this very entry."""
    found = (
        each
        for each in reversed(withdrawals)
        if each.answers and each.target == target and entry in each.came
    )
    return next(found, None)


def said_since(author: Author, withdrawal: Withdrawal) -> list[Said]:
    """Return what the owner has said since: after the owner's own action, or after the statement that
    replaced the lesson."""
    return [each for each in author.said if is_later(each, withdrawal.newer, withdrawal.at)]


def is_later(said: Said, evidence: Sequence[Evidence], at: datetime) -> bool:
    """Tell whether it was said after the messages that something rests on. If they are in another
    conversation, the time counts at which it was recorded."""
    here = [each.message for each in evidence if each.session == said.session]
    return said.message >= max(here) if here else said.at > at


async def for_review(withdrawals: Withdrawals) -> Sequence[str]:
    """Return the withdrawn lessons to tell a review, newest first: those that had been active on the owner's
    own words. A model never sees what was rejected."""
    journal = [each for each in await withdrawals.all() if places.is_journal(each.target) and not each.newer]
    told: dict[str, None] = {}
    for each in reversed(journal[-SHOWN:]):
        for text in each.lessons:
            if each.owners or await withdrawals.was_owners_word(each, text):
                told[text] = None
    return tuple(told)[:SHOWN]


def is_owners_word(change: Change) -> bool:
    """Tell whether what a change added was active as the owner's own words, and not by an approval."""
    return (
        change.standing is ChangeState.ACTIVE and change.confirmed and change.kind is not ChangeKind.APPROVE
    )


async def _resolved(ledger: Ledger, change: Change) -> Entry | None:
    """Return what a change is about; for an approval, what was approved."""
    found = await ledger.entry(change.about) if change.about else None
    if found and found.change.kind is ChangeKind.APPROVE and found.change.about:
        return await ledger.entry(found.change.about)
    return found


def _differences(
    change: Change, about: Change | None, contents: Mapping[str, bytes]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the lessons that a change removed, and the entries it added. A rejection has changed nothing;
    what it rejects counts the other way around."""
    rejects = change.kind is ChangeKind.REJECT
    deltas = (about.deltas if about else ()) if rejects else change.deltas
    sides = [(contents.get(each.before or "", b""), contents.get(each.after or "", b"")) for each in deltas]
    pairs = [(after, before) if rejects else (before, after) for before, after in sides]
    if not places.is_journal(change.target):
        gone = [line for before, after in pairs for line in find_missing(lines_in(before), lines_in(after))]
        gone = without_bundled(change.target, gone)
        is_taken_back = rejects or change.kind in (ChangeKind.UNDO, ChangeKind.UNINSTALL)
        return (("\n".join(gone),) if gone and is_taken_back else ()), ()
    changed = [compare(before, after) for before, after in pairs]
    came, gone = ([entry for each in changed for entry in each[side]] for side in (0, 1))
    return tuple(gone), tuple(came)


def lesson_of(target: Target, steps: Sequence[Step]) -> str:
    """Return what a change of a skill adds, as one text to compare."""
    texts = [step for step in steps if not step.path.startswith("@")]
    added = [line for step in texts for line in find_missing(lines_in(step.after), lines_in(step.before))]
    return "\n".join(without_bundled(target, added))


def without_bundled(target: Target, lines: Sequence[str]) -> list[str]:
    """Leave out bundled text: a copy of a skill adds only what it corrects."""
    files = bundled.files(places.name_of(target))
    known = {line for data in files.values() for line in lines_in(data)}
    return [line for line in lines if line not in known]


def describe_withdrawn(found: Withdrawal) -> str:
    """The lesson that was taken back is not repeated to the model."""
    return (
        f"Not saved: the user took back a lesson like this on {name_day(found)}. Save it again only if the "
        "user says it again, and quote those words."
    )


def describe_same_ground(found: Withdrawal | None) -> str:
    return f"it rests only on messages whose lesson was taken back (change {found.id})" if found else ""


def name_day(found: Withdrawal) -> str:
    return found.at.astimezone().date().isoformat()
