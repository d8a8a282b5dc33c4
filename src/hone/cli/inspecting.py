"""Inspect skills: their files in the home, and their earlier versions.

Inspecting a skill merges the owner's edits into the ledger first, and names files that cannot be used.
"""

import asyncio
from collections.abc import Sequence

from msgspec import Struct

from hone.core.errors import HoneError, Missing
from hone.core.ledger import SKILL, ChangeQuery, ChangeState, Entry, Held, Target, skill
from hone.core.messages import digest
from hone.core.skill import ARCHIVED, DOCUMENT, SkillOrigin
from hone.files.tree import TICK, FileKind, FileTree, FoundFile
from hone.knowledge import places
from hone.knowledge.folding import Files, fold, load_held
from hone.knowledge.keeper import Keeper
from hone.knowledge.library import Library
from hone.knowledge.skills import bundled
from hone.knowledge.skills.document import validate
from hone.knowledge.skills.facts import facts, is_copy
from hone.knowledge.skills.naming import check_name

MANY = 100_000


class Inspected(Struct, frozen=True):
    """`taken` are the changes made from the owner's manual edits."""

    name: str
    taken: Sequence[Entry] = ()
    problems: Sequence[str] = ()


async def inspect(keeper: Keeper, disk: FileTree | None, name: str) -> Inspected:
    """Inspect a skill. Without a `disk`, when a remote database serves skills, only what is known is
    checked."""
    target, before = skill(name), await keeper.ledger.latest()
    problems: list[str] = []
    try:
        check_name(name)
        async with keeper.lock():
            files = await keeper.sync(target)
            problems += await _strangers(disk, name, files) if disk else ()
        if not files:
            raise Missing(f"{places.folder_of(target)} has no {DOCUMENT}.")
        validate(name, files)
    except HoneError as error:
        problems.append(str(error))
    return Inspected(name, await keeper.ledger.entries(ChangeQuery(target=target, after=before)), problems)


async def inspect_all(keeper: Keeper, disk: FileTree | None) -> tuple[Sequence[Inspected], Sequence[str]]:
    """Inspect every skill, and name other things found among them. Files that are still as Hone published
    them are not read again."""
    if disk is None:
        held = await keeper.ledger.held_below(SKILL)
        return [await inspect(keeper, None, places.name_of(target)) for target in sorted(held)], ()
    every, problems = await names(keeper, disk)
    fine = await _find_untouched(keeper, disk)
    return [
        Inspected(name) if name in fine else await inspect(keeper, disk, name) for name in every
    ], problems


async def _find_untouched(keeper: Keeper, disk: FileTree) -> set[str]:
    """Return the valid skills whose folders hold exactly the published files."""
    held = await keeper.ledger.held_below(SKILL)
    published = await keeper.ledger.published_files(held)
    contents = await keeper.ledger.contents({each for digests in held.values() for each in digests.values()})
    settled = disk.sight(()).at - TICK
    try:
        lying = await asyncio.to_thread(disk.listing, places.SKILLS, most=MANY)
    except HoneError:
        return set()  # one by one, since each reports its own fault
    folders: dict[str, list[FoundFile]] = {}
    for each in lying:
        folders.setdefault(places.skill_folder(each.path), []).append(each)

    def is_untouched(target: Target, held: Held) -> bool:
        wanted = {
            place: (each.inode, each.modified, len(contents[name]))
            for place, name in places.places(target, held).items()
            if (each := published.get((target, place))) and each.digest == name and each.modified < settled
        }
        found = folders.get(places.home_of(target, held), ())
        same = all(each.kind is FileKind.FILE and wanted.get(each.path) == each.glance for each in found)
        files = {path: contents[name] for path, name in held.items()}
        return same and len(found) == len(places.places(target, held)) and _is_valid(target, files)

    return {places.name_of(target) for target, digests in held.items() if is_untouched(target, digests)}


def _is_valid(target: Target, files: Files) -> bool:
    try:
        validate(places.name_of(target), files)
    except HoneError:
        return False
    return True


async def _strangers(disk: FileTree, name: str, files: Files) -> list[str]:
    """Return what is in the folder and is not a file."""
    folder = places.home_of(skill(name), {path: digest(data) for path, data in files.items()})
    found = await asyncio.to_thread(disk.listing, folder)
    return [
        f"{each.path} is a {each.kind} and is not used." for each in found if each.kind is not FileKind.FILE
    ]


async def names(keeper: Keeper, disk: FileTree) -> tuple[Sequence[str], Sequence[str]]:
    """Return the names of all skills that are known or on disk, and other things found among them."""
    known_skills = await keeper.ledger.held_below(SKILL)
    known = {places.name_of(target): ARCHIVED in held for target, held in known_skills.items()}
    lying = await asyncio.to_thread(disk.listing, places.SKILLS, depth=1, most=MANY)
    stored = await asyncio.to_thread(disk.listing, places.ARCHIVE, depth=1, most=MANY)
    found, problems = set(known), []
    for each in lying:
        name = each.path.rpartition("/")[2]
        if each.path == places.ARCHIVE:
            continue
        if each.kind is not FileKind.FOLDER:
            problems.append(f"{each.path} is a {each.kind} and is not used; a skill is a folder.")
        elif known.get(name):
            problems.append(f"{each.path} is not used: that skill is archived. hone skills restore {name}")
        else:
            found.add(name)
    strays = [each.path for each in stored if not known.get(each.path.rpartition("/")[2])]
    problems += [f"{path} is not an archived skill and is not used." for path in strays]
    return sorted(found), problems


async def states(library: Library, name: str, change: int | None) -> tuple[Files, Files]:
    """Return what the skill held at first and holds now, or before and after one change."""
    ledger, target = library.keeper.ledger, skill(name)
    await library.keeper.files(target)
    made = [each for each in reversed(await ledger.entries(ChangeQuery(target=target))) if each.change.deltas]
    if not made:
        await library.files(name)
        raise Missing(f"{name} comes with Hone; there are no changes to it.")
    if change is not None and not any(each.id == change for each in made):
        ids = ", ".join(str(each.id) for each in made)
        raise Missing(f"Change {change} is not a change to {name}. Those are {ids}.")
    first: dict[str, str] | None = None
    held: dict[str, str] = {}
    for each in made:
        after = fold(held, each.change)  # for a pending change, too: what it would make of the skill
        if each.id == change:
            return await load_held(ledger, held), await load_held(ledger, after)
        if each.change.standing is ChangeState.ACTIVE:
            first = after if not held or first is None else first
            held = after
    now = await load_held(ledger, held)
    if now and is_copy(facts(now), SkillOrigin.BUNDLED):
        return bundled.files(name), now
    return await load_held(ledger, first or {}), now
