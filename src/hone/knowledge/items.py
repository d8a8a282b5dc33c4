"""Memory items in the ledger: what Hone stores under a key with a memory backend.

The ledger says what was stored, its source, and its label. The outbox tells the backend. So a review's items
are staged like its other changes, every item is in the log, and undo reverts one.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from hone.core.clock import Clock
from hone.core.errors import Corrupt, Refused
from hone.core.ledger import (
    Actor,
    Author,
    Change,
    ChangeKind,
    ChangeQuery,
    ChangeState,
    Entry,
    Ledger,
    Target,
)
from hone.core.messages import canonical
from hone.core.trust import Trust
from hone.core.value import replace
from hone.core.waiting import uninterrupted
from hone.knowledge import folding
from hone.knowledge.admission import judge_routine
from hone.knowledge.folding import Step
from hone.knowledge.keeper import Keeper
from hone.knowledge.verdicts import LearningMode, Verdict
from hone.stores.question import words

PATH = "@memory"
"""The only content of an item: value, label and metadata together, so that undo cannot mix two versions."""
FOUND = "the memory backend held this already"


class KeptMemory(Struct, frozen=True):
    """What the ledger holds under a key. `trust` is the label of the item."""

    value: str
    trust: Trust
    metadata: Mapping[str, str] = {}


class Items(Struct, frozen=True):
    """The items of one home. With `staged`, changes go there: they belong to a review."""

    keeper: Keeper
    clock: Clock
    staged: Ledger | None = None

    async def get(self, target: Target) -> KeptMemory | None:
        """Return what the ledger holds; None if it holds nothing now."""
        return await load(self.staged or self.keeper.ledger, target)

    async def is_staged(self, target: Target) -> bool:
        """Return whether this review has changed the item."""
        if self.staged is None:
            return False
        ledgers = (self.staged, self.keeper.ledger)
        own, base = [(await ledger.held_below(target)).get(target) for ledger in ledgers]
        return own != base

    async def keep(
        self,
        target: Target,
        memory: KeptMemory | None,
        author: Author,
        *,
        found: KeptMemory | None = None,
        confirmed: bool = False,
    ) -> Entry | None:
        """Record what to store under a key; None deletes it. `found` is what the backend holds: if the ledger
        does not know it, it is recorded first, so that undo can restore it. Return None if nothing changes.
        Raises Refused."""

        async def work() -> Entry | None:
            verdict = _judge(author, self.keeper.rules.modes, confirmed=confirmed)
            by = self.keeper.rules.sign(author)
            if memory is not None and author.actor is not Actor.OWNER and not confirmed:
                await self._heed(target, memory)
            await self._adopt(target, found, by)
            return await self._record(target, memory, by, verdict)

        return await uninterrupted(self.keeper.attempt(work))

    async def _heed(self, target: Target, memory: KeptMemory) -> None:
        """Raise Refused for what the owner has undone or rejected, whatever the order of its words."""
        wanted = set(words(memory.value))
        for entry in await self.keeper.ledger.entries(ChangeQuery(target=target)):
            if not entry.settled or await self.keeper.is_standing(entry):
                continue
            settled = (await self.keeper.ledger.entry(entry.settled)).change
            if settled.author.actor is not Actor.OWNER or settled.kind is ChangeKind.APPROVE:
                continue
            made = await folding.load_steps(self.keeper.ledger, entry.change)
            if any(step.after and set(words(decode(step.after).value)) == wanted for step in made):
                raise Refused(
                    f"The user has taken this back (change {settled.about}); nothing was stored. It can be "
                    "stored when the user says it again, in the user's own words."
                )

    async def _adopt(self, target: Target, found: KeptMemory | None, author: Author) -> None:
        """Record what somebody else stored there. Recording it at once takes nothing from a review."""
        ledger = self.keeper.ledger
        held = await load(ledger, target)
        if found is None or (held and held.value == found.value):
            return
        before = await folding.load(ledger, target)
        deltas, contents = folding.deltas(folding.steps(before, {PATH: encode(found)}))
        if deltas:
            by = Author(author.actor, author.session, reason=FOUND, trust_floor=found.trust)
            by = replace(by, platform=author.platform)
            await ledger.record([Change(target, ChangeKind.EDIT, deltas, by)], contents, self.clock.now())

    async def _record(
        self, target: Target, memory: KeptMemory | None, author: Author, verdict: Verdict
    ) -> Entry | None:
        ledger = self.staged or self.keeper.ledger
        before = await folding.load(ledger, target)
        held = decode(before[PATH]) if PATH in before else None
        if held is None if memory is None else _is_held(memory, held):
            return None
        after = {} if memory is None else {PATH: encode(memory)}
        kind = ChangeKind.REMOVE if memory is None else ChangeKind.REPLACE if held else ChangeKind.ADD
        deltas, contents = folding.deltas(folding.steps(before, after))
        change = Change(target, kind, deltas, replace(author, quotes=()), verdict.standing, verdict.confirmed)
        change = replace(change, cause=verdict.cause)
        [entry] = await ledger.record([change], contents, self.clock.now())
        return entry


async def load(ledger: Ledger, target: Target) -> KeptMemory | None:
    """Return the item that a ledger holds. This read does not fix the base of a staged ledger."""
    held = (await ledger.held_below(target)).get(target, {})
    files = await folding.load_held(ledger, held)
    return decode(files[PATH]) if PATH in files else None


def encode(memory: KeptMemory) -> bytes:
    fields = {"value": memory.value, "trust": memory.trust.name.lower(), "metadata": dict(memory.metadata)}
    return canonical(fields).encode()


def decode(data: bytes) -> KeptMemory:
    """Read an item. An unknown label counts as the lowest. Raises Corrupt."""
    try:
        fields: dict[str, Any] = msgspec.json.decode(data, type=dict[str, Any])
        trust = next((each for each in Trust if each.name.lower() == fields["trust"]), Trust.FOREIGN)
        return KeptMemory(str(fields["value"]), trust, msgspec.convert(fields["metadata"], dict[str, str]))
    except (msgspec.MsgspecError, KeyError) as error:
        raise Corrupt("A memory item in the ledger is damaged; store it again.") from error


def readable(step: Step) -> Step:
    """Return a step of an item as text that people can read, and any other step as it is."""
    if step.path != PATH:
        return step
    return Step("memory", *(None if data is None else _text(data) for data in (step.before, step.after)))


def _text(data: bytes) -> bytes:
    memory = decode(data)
    return f"{memory.value}\nlabel: {memory.trust.name.lower()}\n".encode()


def _is_held(memory: KeptMemory, held: KeptMemory | None) -> bool:
    """Tell whether this exact text is held, with a label as good. Author and time do not matter."""
    return held is not None and held.value == memory.value and held.trust >= memory.trust


def _judge(author: Author, modes: Mapping[Actor, LearningMode], *, confirmed: bool) -> Verdict:
    """Decide whether an item is stored or pending. Only the mode decides: an item is in no prompt, and one
    that rests on foreign text is never mentioned unasked. Raises Refused."""
    if author.actor is Actor.OWNER:
        return Verdict(ChangeState.ACTIVE, confirmed=True)
    verdict = judge_routine(author, modes.get(author.actor, LearningMode.AUTO))
    return replace(verdict, confirmed=confirmed and verdict.standing is ChangeState.ACTIVE)
