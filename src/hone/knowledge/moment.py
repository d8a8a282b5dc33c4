"""What is known now, for the next prompt, and what has become known since, for one that is already fixed."""

from collections.abc import Sequence
from pathlib import Path

from hone.core.ids import SessionId
from hone.core.knowledge import News, Snapshot
from hone.core.ledger import MEMORY, SKILL, USER, ChangeId, Entry, Standing, Target, project
from hone.core.skill import ARCHIVED, DOCUMENT
from hone.knowledge import places
from hone.knowledge.library import Library
from hone.memory.journal import entries

TRIES = 5
"""How often what is known is read while others change it."""


async def snapshot(library: Library, folder: Path) -> Snapshot:
    """Parts of the journal that are switched off stay out. It is read again if something was changed
    meanwhile: what is not in it must not count as known."""
    for _ in range(TRIES):
        before = await library.keeper.ledger.latest()
        found = await _snapshot(library, folder, before)
        if await library.keeper.ledger.latest() == before:
            break
    return found


async def _snapshot(library: Library, folder: Path, upto: ChangeId) -> Snapshot:
    keeper = library.keeper
    said = {}
    for target in journals(folder):
        on = keeper.rules.limits[places.name_of(target)] > 0
        said[target] = entries(await keeper.text(target)) if on else ()
    memory, user, own = said.values()
    skills, total = await library.ranked(str(folder))
    return Snapshot(memory, user, own, tuple(skills), total, upto)


def journals(folder: Path) -> tuple[Target, Target, Target]:
    return MEMORY, USER, project(str(folder))


async def news(library: Library, folder: Path, known: ChangeId, session: SessionId) -> News:
    """What others have changed since: a session has its own changes in its history."""
    keeper = library.keeper
    for target in journals(folder):
        await keeper.text(target)
    await library.ranked(str(folder))
    made = await keeper.ledger.entries(after=known)
    active = [entry for entry in made if entry.change.standing is Standing.ACTIVE and entry.change.deltas]
    if not active:
        return News(known)
    theirs = {entry.change.target for entry in active if entry.change.author.session != session}
    added, removed = [], []
    for target in journals(folder):
        if target in theirs and keeper.rules.limits[places.name_of(target)] > 0:
            before, after = await _then(library, target, active), entries(await keeper.text(target))
            added += [(places.name_of(target), entry) for entry in after if entry not in before]
            removed += [(places.name_of(target), entry) for entry in before if entry not in after]
    changed = {places.name_of(each) for each in theirs if each.startswith(SKILL) and _is_text(each, active)}
    listed = {each.name: each for each in await library.listed()} if changed else {}
    skills = tuple(listed[name] for name in sorted(changed & listed.keys()))
    return News(made[0].id, tuple(added), tuple(removed), skills, tuple(sorted(changed - listed.keys())))


async def _then(library: Library, target: Target, active: Sequence[Entry]) -> Sequence[str]:
    """The entries before the first of these changes."""
    first = [entry for entry in active if entry.change.target == target][-1]
    before = first.change.deltas[0].before
    contents = await library.keeper.ledger.contents({before} if before else set())
    return entries(contents[before].decode() if before else "")


def _is_text(target: Target, active: Sequence[Entry]) -> bool:
    """Whether the document came, changed, went or was put away."""
    touched = {
        delta.path for entry in active if entry.change.target == target for delta in entry.change.deltas
    }
    return bool(touched & {DOCUMENT, ARCHIVED})
