"""The snapshot of what is known for the next prompt, and the news since then for a prompt already fixed."""

import asyncio
from collections.abc import Sequence
from datetime import date
from functools import partial
from pathlib import Path

from msgspec import Struct

from hone.core.ids import SessionId
from hone.core.knowledge import News, Snapshot
from hone.core.ledger import MEMORY, SKILL, USER, ChangeId, ChangeQuery, ChangeState, Entry, Target, project
from hone.core.skill import ARCHIVED, DOCUMENT
from hone.core.visible import path_to_text
from hone.core.waiting import SingleFlight
from hone.files.tree import TICK, Seen, Sight
from hone.knowledge import places
from hone.knowledge.journal import entries
from hone.knowledge.library import Library
from hone.knowledge.validity import valid

TRIES = 5
"""How often to read what is known while others change it."""


class Held(Struct, frozen=True):
    """What was known in a folder, and how its places looked then."""

    snapshot: Snapshot
    day: date
    places: tuple[str, ...]
    seen: Seen


class SnapshotCache:
    """What is known in each folder. It is read again when a change was recorded or a file was changed, and
    only once for all conversations that ask at the same time."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._held: dict[Path, Held] = {}
        self._asked: dict[Path, SingleFlight[Snapshot]] = {}

    async def snapshot(self, folder: Path) -> Snapshot:
        """Return what is known. Parts of the journal that are switched off are left out."""
        asked = self._asked.setdefault(folder, SingleFlight(partial(self._current, folder)))
        return await asked.ask()

    async def news(self, folder: Path, known: ChangeId, session: SessionId) -> News:
        """Return what others have changed since. A session has its own changes in its history."""
        upto = (await self.snapshot(folder)).upto
        return News(known) if upto == known else await news(self._library, folder, known, session)

    async def _current(self, folder: Path) -> Snapshot:
        held = self._held.get(folder)
        if held is not None and held.day == self._library.today:
            latest, sight = await self._seen(held.places)
            if latest == held.snapshot.upto and sight.seen == held.seen:
                return held.snapshot
        return await self._read(folder)

    async def _read(self, folder: Path) -> Snapshot:
        """Read what is known, again if something has changed in the meantime: a change that it lacks must not
        count as known."""
        for _ in range(TRIES):
            day = self._library.today
            journal = tuple(places.place_of(target) for target in journals(folder))
            before, earlier = await self._seen(journal)
            found, ranking = await self._snapshot(folder, before)
            latest, sight = await self._seen((*journal, *ranking))
            if latest == before:
                break
        untouched = earlier.seen == sight.seen[: len(journal)]
        if untouched and sight.touched < earlier.at - TICK:
            self._held[folder] = Held(found, day, (*journal, *ranking), sight.seen)
        return found

    async def _seen(self, paths: tuple[str, ...]) -> tuple[ChangeId, Sight]:
        keeper = self._library.keeper
        if keeper.file_sync is None:
            return await keeper.ledger.latest(), Sight((None,) * len(paths), 0, 0)
        return await asyncio.gather(keeper.ledger.latest(), keeper.file_sync.sight(paths))

    async def _snapshot(self, folder: Path, upto: ChangeId) -> tuple[Snapshot, tuple[str, ...]]:
        keeper = self._library.keeper
        said = {}
        for target in journals(folder):
            on = keeper.rules.limits[places.name_of(target)] > 0
            said[target] = valid(entries(await keeper.text(target)), self._library.today) if on else ()
        memory, user, own = said.values()
        ranking = await self._library.ranked(path_to_text(folder))
        return Snapshot(memory, user, own, ranking.skills, ranking.total, upto), ranking.places


def journals(folder: Path) -> tuple[Target, Target, Target]:
    return MEMORY, USER, project(path_to_text(folder))


async def news(library: Library, folder: Path, known: ChangeId, session: SessionId) -> News:
    """Return the ledger's news after this change, except for this session's own."""
    keeper = library.keeper
    made = await keeper.ledger.entries(ChangeQuery(after=known))
    active = [entry for entry in made if entry.change.standing is ChangeState.ACTIVE and entry.change.deltas]
    if not active:
        return News(known)
    theirs = {entry.change.target for entry in active if entry.change.author.session != session}
    added, removed = [], []
    for target in journals(folder):
        if target in theirs and keeper.rules.limits[places.name_of(target)] > 0:
            then, now = await _then(library, target, active), entries(await keeper.text(target))
            before, after = (valid(each, library.today) for each in (then, now))
            added += [(places.name_of(target), entry) for entry in after if entry not in before]
            removed += [(places.name_of(target), entry) for entry in before if entry not in after]
    changed = {places.name_of(each) for each in theirs if each.startswith(SKILL) and _is_text(each, active)}
    listed = {each.name: each for each in await library.find_active(changed)} if changed else {}
    skills = tuple(listed[name] for name in sorted(changed & listed.keys()))
    return News(made[0].id, tuple(added), tuple(removed), skills, tuple(sorted(changed - listed.keys())))


async def _then(library: Library, target: Target, active: Sequence[Entry]) -> Sequence[str]:
    """Return the entries before the first of these changes."""
    first = [entry for entry in active if entry.change.target == target][-1]
    before = first.change.deltas[0].before
    contents = await library.keeper.ledger.contents({before} if before else set())
    return entries(contents[before].decode() if before else "")


def _is_text(target: Target, active: Sequence[Entry]) -> bool:
    """Tell whether a document was added, changed, removed or archived."""
    touched = {
        delta.path for entry in active if entry.change.target == target for delta in entry.change.deltas
    }
    return bool(touched & {DOCUMENT, ARCHIVED})
