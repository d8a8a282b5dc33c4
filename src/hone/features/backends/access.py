"""One user's access to a memory backend through the ledger: what is stored, and how far it is trusted."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Struct

from hone.core.backend import Backend, Deleted, MemoryItem
from hone.core.embedding import Meanings
from hone.core.errors import Refused, Unfit
from hone.core.ledger import NO_SESSION, Actor, Author, ChangeKind, ChangeState, Entry, Target, memory_item
from hone.core.screen import screen
from hone.core.tool import Outcome
from hone.core.tool_context import ToolContext
from hone.core.transcript import Source
from hone.core.trust import Trust, lowest
from hone.core.value import replace
from hone.features.backends.guarded import checked_value, named
from hone.features.backends.labels import TRUST, find_owners_words, is_withdrawn, label, origin, stored
from hone.features.backends.meaning import WIDER, rank_by_meaning
from hone.features.backends.mirror import FOLDER
from hone.features.backends.outbox_worker import DeliveryResult
from hone.knowledge.items import Items, KeptMemory
from hone.knowledge.metadata import metadata as described
from hone.knowledge.tools import ACTORS, answer

Deliver = Callable[[Entry], Awaitable[DeliveryResult]]
"""Sends the backend a change now, if possible. Raises Unfit for what the backend will never accept."""


class Access(Struct, frozen=True):
    """`source` is the conversation that a review reads; `items` stages its changes. `home` returns the
    backend's name for this home."""

    backend: Backend
    user_id: str
    items: Items
    deliver: Deliver
    home: Callable[[], Awaitable[str]]
    source: Source | None = None
    meanings: Meanings | None = None

    async def store(self, context: ToolContext, key: str, value: str, more: Mapping[str, str]) -> Outcome:
        key, value = spare(key), checked_value(value)
        found = screen("\n".join((key, value, *more, *more.values())))
        if found.secrets:
            raise Refused(
                f"This holds what looks like a secret ({', '.join(sorted(set(found.secrets)))}); nothing was "
                "stored. Store where it is kept instead."
            )
        author = self._author(context)
        evidence = () if found.flags else find_owners_words(key, value, self._read(context))
        # Odd text is stored, but never mentioned unasked.
        trust = Trust.FOREIGN if found.flags else Trust.AGENT if evidence else author.trust_floor
        there = await self._there(key)
        await self._protect(key, trust, there)
        memory = KeptMemory(value, trust, {**more, **described(author)})
        return await self._changed(key, memory, replace(author, evidence=evidence), there)

    async def delete(self, context: ToolContext, key: str) -> Outcome:
        return await self.remove(spare(key), self._author(context))

    async def retrieve(self, key: str) -> Outcome:
        found = await self._there(named(key))
        return await self._told([found] if found else [], f"There is nothing under {key!r}.")

    async def query(self, words: str, limit: int, *, dialectic: bool) -> Outcome:
        found = await self._query(words, limit, dialectic=dialectic)
        memories = [memory for each in found if (memory := await self._current(each))]
        return await self._told(memories, "Nothing fits these words.")

    async def _query(self, words: str, limit: int, *, dialectic: bool) -> Sequence[MemoryItem]:
        """Query the backend. A service's own answer keeps its order."""
        if self.meanings is None or dialectic:
            return await self.backend.query(self.user_id, words, limit, dialectic=dialectic)
        found = await self.backend.query(self.user_id, words, WIDER * limit)
        return (await rank_by_meaning(self.meanings, words, found))[:limit]

    async def keys(self) -> Outcome:
        """Return the keys. A key is text as well: here, keys made of foreign words are counted and not shown;
        those of another machine are all shown, and trusted only if this home stored every one of them."""
        keys = await self.backend.list_keys(self.user_id)
        if self.backend.is_cloud:
            own = [await self.items.get(self._target(key)) for key in keys]
            least = lowest(each.trust if each else Trust.FOREIGN for each in own)
            return Outcome("\n".join(keys) or "Nothing is stored.", trust=min(Trust.AGENT, least))
        memories = [memory for key in keys if (memory := await self.backend.retrieve(self.user_id, key))]
        trusted = [memory for memory in memories if stored(memory) > Trust.FOREIGN]
        foreign = len(memories) - len(trusted)
        more = [f"({foreign:,} more, stored from foreign words; query finds them)"] if foreign else []
        listed = "\n".join([*(memory.key for memory in trusted), *more]) or "Nothing is stored."
        return Outcome(listed, trust=min(Trust.AGENT, lowest(map(stored, trusted))))

    async def remove(self, key: str, author: Author) -> Outcome:
        """Delete the item under a key."""
        there = await self._there(key)
        if there is None and await self.items.get(self._target(key)) is None:
            return Outcome(f"There is nothing under {key!r}.", failed=True, trust=Trust.AGENT)
        await self._protect(key, author.trust_floor, there)
        return await self._changed(key, None, author, there)

    async def _changed(
        self, key: str, memory: KeptMemory | None, author: Author, there: MemoryItem | None
    ) -> Outcome:
        found = KeptMemory(there.value, await self._worth(there), there.metadata) if there else None
        target, confirmed = self._target(key), bool(author.evidence)
        entry = await self.items.keep(target, memory, author, found=found, confirmed=confirmed)
        if entry is None:
            return answer(f"This is already under {key!r}; nothing was changed.")
        if entry.change.standing is ChangeState.PENDING or self.items.staged:
            return answer(_waits(entry))
        done = await self.deliver(entry)
        return answer(_done(key, entry, done, again=bool(there)))

    async def _there(self, key: str) -> MemoryItem | None:
        """Return what is under a key as far as this conversation may know: the backend's item, or what a
        review or an undo has made of it before the backend has heard of that."""
        there = await self.backend.retrieve(self.user_id, key)
        if await self.items.is_staged(self._target(key)):
            now = self.items.clock.now()
            there = there or MemoryItem(key, "", self.user_id, now, now)
            return _as_kept(there, await self.items.get(self._target(key)))
        return await self._current(there) if there else None

    async def _current(self, memory: MemoryItem) -> MemoryItem | None:
        kept = await self.items.get(self._target(memory.key))
        return _as_kept(memory, kept) if is_withdrawn(memory, kept, await self.home()) else memory

    async def _told(self, memories: Sequence[MemoryItem], nothing: str) -> Outcome:
        if not memories:
            return answer(nothing)
        worth = [await self._worth(memory) for memory in memories]
        text = "\n\n".join(map(_shown, memories, worth))
        return Outcome(text, trust=lowest(worth))

    async def _worth(self, memory: MemoryItem) -> Trust:
        kept = await self.items.get(self._target(memory.key))
        return label(memory, kept, cloud=self.backend.is_cloud)

    def _target(self, key: str) -> Target:
        return memory_item(self.user_id, key)

    def _read(self, context: ToolContext) -> Source:
        return self.source or Source(context.header.id, context.transcript)

    def _author(self, context: ToolContext) -> Author:
        """Return the caller, and the lowest label of this conversation and of the one that it reads."""
        header = context.header
        read = self.source.transcript.trust if self.source else Trust.AGENT
        return Author(
            ACTORS.get(header.origin, Actor.AGENT),
            header.id,
            header.parent or NO_SESSION,
            context.call.name,
            context.call.id,
            trust_floor=min(Trust.AGENT, read, context.transcript.trust),
            platform=self.items.keeper.rules.platform,
        )

    async def _protect(self, key: str, trust: Trust, there: MemoryItem | None) -> None:
        """Refuse to replace other words with foreign ones."""
        kept = await self.items.get(self._target(key))
        if trust is Trust.FOREIGN and there and origin(there, kept) > Trust.FOREIGN:
            raise Refused(
                f"What is under {key!r} rests on better sources than this conversation; nothing was changed. "
                f"Store it under another key, or let the user take it away: hone backends rm {key}"
            )


def spare(key: str) -> str:
    """Return a key as it is stored. Raises Unfit for one that belongs to the copies."""
    if named(key).startswith(f"{FOLDER}/"):
        raise Unfit(f"{FOLDER}/ holds copies of journal and skills; change those with their own tools.")
    return named(key)


def _as_kept(memory: MemoryItem, kept: KeptMemory | None) -> MemoryItem | None:
    """Return a memory as the ledger has it; None if it is gone."""
    if kept is None:
        return None
    facts = {**kept.metadata, TRUST: kept.trust.name.lower()}
    return replace(memory, value=kept.value, metadata=facts)


def _waits(entry: Entry) -> str:
    if entry.change.standing is ChangeState.ACTIVE:
        return "Noted. It counts when this review ends."
    if not entry.id:
        return f"Noted. It will wait for the user: {entry.change.cause}."
    return f"Waits for the user's approval (change {entry.id}): {entry.change.cause}."


def _done(key: str, entry: Entry, done: DeliveryResult, *, again: bool) -> str:
    if done.late:
        return f"Recorded. The backend will be told of {key!r} later: {done.late}"
    if entry.change.kind is not ChangeKind.REMOVE:
        return f"Stored under {key!r}{' in the place of what was there' if again else ''}."
    if done.deleted is Deleted.HIDDEN:
        return f"Hidden: {key!r}. It is given to nobody any more, but the service still keeps it."
    return f"Deleted: {key!r}."


def _shown(memory: MemoryItem, worth: Trust) -> str:
    when = memory.updated_at.date().isoformat()
    return f"{memory.key} ({when}, label {worth.name.lower()})\n{memory.value}"
