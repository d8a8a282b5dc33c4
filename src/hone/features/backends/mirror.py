"""Bring a memory backend up to date with the ledger, from the outbox and in order: items, and copies of
journal and skills.

Each delivery sends the current content, not the content at the time of the change. An entry that was undone
before its delivery is never sent; one that was sent and then undone is deleted. So it is safe to deliver a
change twice.
"""

from collections.abc import AsyncIterator, Mapping, Sequence

from msgspec import Struct

from hone.core.backend import Backend, Deleted, MemoryItem
from hone.core.errors import BackendError, Missing, Unfit
from hone.core.ledger import ChangeId, ChangeQuery, Entry, Ledger, Target
from hone.core.messages import digest
from hone.core.outbox import Outbox
from hone.core.skill import ARCHIVED, DOCUMENT
from hone.core.trust import lowest
from hone.features.backends.labels import STORED_BY, TRUST
from hone.knowledge import items, places
from hone.knowledge.journal import entries
from hone.knowledge.metadata import metadata

FOLDER = "mirror"
"""The prefix of all copies' keys; nothing else is written there."""
LONGEST = 20_000
"""The most characters of a copy; of a longer skill only the beginning is copied."""


class Copy(Struct, frozen=True):
    """What a key holds now; None: nothing any more."""

    key: str
    text: str | None
    scope: str


class Mirror(Struct, frozen=True):
    """Copies of one home. Only one runs at a time: the caller of `deliver` holds its claim."""

    ledger: Ledger
    outbox: Outbox
    backend: Backend
    user_id: str

    async def deliver(self) -> int:
        """Deliver all that waits, oldest first. Return how many changes that were. Put aside what the backend
        will never accept. Raises BackendError at the first one that it does not accept now, which keeps
        waiting."""
        done = 0
        while letters := await self.outbox.letters():
            for letter in letters:
                try:
                    await self._tell(await self.ledger.entry(letter.change))
                except Unfit as error:
                    await self.outbox.failed(letter.change, str(error), final=True)
                except BackendError as error:
                    await self.outbox.failed(letter.change, str(error))
                    raise
                else:
                    await self.outbox.delivered(letter.change)
                    done += 1
        return done

    async def deliver_one(self, id: ChangeId) -> Deleted | None:
        """Deliver one change now: an item that was just stored. The current state is sent, so other waiting
        changes do not matter. Raises BackendError, and Unfit for what will never be accepted."""
        entry = await self.ledger.entry(id)
        try:
            done = await self._tell_item(entry, await self.outbox.home())
        except BackendError as error:
            await self.outbox.failed(id, str(error), final=isinstance(error, Unfit))
            raise
        await self.outbox.delivered(id)
        return done

    async def _tell_item(self, entry: Entry, home: str) -> Deleted | None:
        """Replace this home's item with what the ledger holds. Leave alone what others have stored there
        since, and other users' items."""
        user, key = places.user_of(entry.change.target), places.name_of(entry.change.target)
        if user != self.user_id:
            return None
        known = await self.backend.retrieve(user, key)
        if known and not await self._is_ours(entry.change.target, known, home):
            return None
        kept = await items.load(self.ledger, entry.change.target)
        if kept is None:
            return await self.backend.delete(user, key) if known else None
        told = {STORED_BY: home, **kept.metadata, TRUST: kept.trust.name.lower()}
        if known is None or (known.value, dict(known.metadata)) != (kept.value, told):
            await self.backend.store(user, key, kept.value, told)
        return None

    async def _is_ours(self, target: Target, known: MemoryItem, home: str) -> bool:
        if known.metadata.get(STORED_BY) == home:
            return True
        changes = await self.ledger.entries(ChangeQuery(target=target))
        named = {
            each
            for entry in changes
            for delta in entry.change.deltas
            for each in (delta.before, delta.after)
            if each
        }
        contents = await self.ledger.contents(named)
        return any(items.decode(data).value == known.value for data in contents.values())

    async def _tell(self, entry: Entry) -> None:
        home = await self.outbox.home()
        if places.is_item(entry.change.target):
            await self._tell_item(entry, home)
            return
        async for copy in copies(self.ledger, entry, home):
            if copy.text is None:
                await self.backend.delete(self.user_id, copy.key)
                continue
            told = {**_told(entry, home), "scope": copy.scope}
            known = await self.backend.retrieve(self.user_id, copy.key)
            if known is None or known.metadata.get("change") != told["change"]:
                await self.backend.store(self.user_id, copy.key, copy.text, told)


def _told(entry: Entry, home: str) -> Mapping[str, str]:
    author = entry.change.author
    trust = lowest((author.trust_floor, *(each.trust for each in author.evidence)))
    return {**metadata(author), "change": str(entry.id), "home": home, "trust": trust.name.lower()}


async def copies(ledger: Ledger, entry: Entry, home: str) -> AsyncIterator[Copy]:
    """Yield the current state of everything that a change touched."""
    target = entry.change.target
    if not places.is_journal(target):
        yield await _skill(ledger, target, home)
        return
    name = places.name_of(target)
    # A folder's name is private.
    part = f"{name}-{digest(target.encode())[:12]}" if name == "project" else name
    now = await _entries(ledger, (await ledger.held(target)).get(places.path_of(target)))
    touched: dict[str, None] = {}
    for delta in entry.change.deltas:
        before, after = [await _entries(ledger, each) for each in (delta.before, delta.after)]
        touched.update(
            dict.fromkeys(each for each in (*before, *after) if (each in before) != (each in after))
        )
    for each in touched:
        key = f"{FOLDER}/{home}/{part}/{digest(each.encode())[:24]}"
        yield Copy(key, each[:LONGEST] if each in now else None, name)


async def _skill(ledger: Ledger, target: Target, home: str) -> Copy:
    name = places.name_of(target)
    held = await ledger.held(target)
    text = None if ARCHIVED in held else await _text(ledger, held.get(DOCUMENT))
    return Copy(f"{FOLDER}/{home}/skill/{name}", text[:LONGEST] if text else None, "skill")


async def _entries(ledger: Ledger, name: str | None) -> Sequence[str]:
    return entries(await _text(ledger, name) or "")


async def _text(ledger: Ledger, name: str | None) -> str | None:
    if name is None:
        return None
    try:
        return (await ledger.contents({name}))[name].decode("utf-8", "replace")
    except Missing:
        return None  # it was erased since
