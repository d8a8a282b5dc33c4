"""Pull what is known into a checkout, and push what was edited there.

Each target is handled separately. The next pull or push continues one that was cut off: what was written or
recorded counts as changed on both sides, and merges to itself.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from msgspec import Struct

from hone.core.errors import Busy, Conflict, Corrupt, HoneError, Missing, Refused, StoreError
from hone.core.ledger import (
    Actor,
    Author,
    ChangeKind,
    Entry,
    Held,
    Ledger,
    PublishedFile,
    Target,
    skill,
)
from hone.core.messages import digest
from hone.core.skill import ARCHIVED
from hone.core.waiting import repeat
from hone.features.checkouts.bases import Bases
from hone.features.checkouts.merging import MergedTarget, Sides, merge_target
from hone.features.checkouts.reading import read_folder
from hone.features.checkouts.values import (
    BaseFile,
    BaseVersion,
    FileAction,
    LocalFile,
    LocalFolder,
    SyncAction,
    SyncReport,
)
from hone.files.tree import FileTree
from hone.knowledge import folding, places
from hone.knowledge.folding import Files
from hone.knowledge.journal import SetText
from hone.knowledge.keeper import Keeper
from hone.knowledge.skills import bundled
from hone.knowledge.skills.facts import digest_files, split_facts
from hone.knowledge.skills.folder import EditFolder
from hone.knowledge.skills.naming import SHAPE

TRIES = 5
"""How often an edit is merged again because others were faster."""
AUTHOR = Author(Actor.OWNER, tool="hone push")
_Written = dict[tuple[Target, str], tuple[str, PublishedFile] | None]


class _State(Struct, frozen=True):
    """All sides at one moment. `archived` skills are in no checkout."""

    held: Mapping[Target, Held]
    archived: frozenset[Target]
    base: Mapping[str, BaseFile]
    local: LocalFolder

    @property
    def targets(self) -> list[Target]:
        every = {*self.held, *(each.target for each in self.base.values()), *self.local.files}
        return sorted(every - self.local.faulty, key=lambda each: (not places.is_journal(each), each))

    def is_same(self, target: Target) -> bool:
        """Tell whether all three sides are the same: then nothing has to be loaded."""
        known = dict(places.places(target, self.held.get(target, {})))
        local = {place: each.file.digest for place, each in self.local.files.get(target, {}).items()}
        return known == local and all(
            place in self.base and self.base[place].digest == name for place, name in known.items()
        )


class Checkout:
    """A folder with the journal and the skills as files. `keeper` records what is pushed."""

    def __init__(self, keeper: Keeper, tree: FileTree, bases: Bases) -> None:
        self._keeper = keeper
        self._ledger: Ledger = keeper.ledger
        self._tree = tree
        self._bases = bases

    async def pull(self, *, dry_run: bool = False) -> SyncReport:
        """Update the files, merged with what was edited. Nothing is recorded."""
        report = SyncReport(await self._ledger.latest())
        with self._locked(dry_run):
            state = await self._look()
            report.problems += state.local.problems
            written: _Written = {}
            try:
                for target in state.targets:
                    with _noting(report):
                        written |= await self._pull(state, target, report, dry_run=dry_run)
            finally:
                if not dry_run:
                    await self._bases.save(written)
        return report

    async def push(self, *, dry_run: bool = False) -> SyncReport:
        """Record what was edited as the owner's, merged with what is known now. A dry run checks everything,
        and neither records nor writes anything."""
        report = SyncReport(await self._ledger.latest())
        keeper = self._keeper.stage()[0] if dry_run else self._keeper
        with self._locked(dry_run):
            state = await self._look()
            report.problems += state.local.problems
            written: _Written = {}
            try:
                for target in state.targets:
                    with _noting(report, f"{_name(target)}: "):
                        written |= await self._push(keeper, state, target, report, dry_run=dry_run)
            finally:
                if written:
                    await self._bases.save(written)
        return report

    @contextmanager
    def _locked(self, dry_run: bool) -> Iterator[None]:
        """Allow one pull or push of a folder at a time."""
        if dry_run:
            yield
            return
        with self._tree.lock():
            yield

    async def _look(self) -> _State:
        every = {
            target: held
            for target, held in (await self._ledger.held_below("")).items()
            if not places.is_outside(target)
        }
        archived = frozenset(target for target, held in every.items() if ARCHIVED in held)
        held = {target: held for target, held in every.items() if target not in archived}
        lying = await asyncio.to_thread(lambda: self._tree.folders(places.SKILLS))
        local = {skill(name) for name in lying if SHAPE.fullmatch(name)}
        base = await self._bases.load({*every, *local})
        known = {place: each.target for place, each in base.items()}
        for target, digests in held.items():
            known |= dict.fromkeys(places.places(target, digests), target)
        found = await asyncio.to_thread(lambda: read_folder(self._tree, known))
        return _State(held, archived, base, found)

    async def _sides(self, state: _State, target: Target, held: Held) -> Sides:
        base = {place: each.digest for place, each in state.base.items() if each.target == target}
        contents = await _load_contents(self._ledger, {*base.values()})
        now = await folding.load_held(self._ledger, dict(places.places(target, held)))
        saved = {place: each.data for place, each in state.local.files.get(target, {}).items()}
        versions = {place: BaseVersion(name, contents.get(name)) for place, name in base.items()}
        return Sides(target, versions, now, saved)

    # Pull

    async def _pull(self, state: _State, target: Target, report: SyncReport, *, dry_run: bool) -> _Written:
        if state.is_same(target):
            return {}
        sides = await self._sides(state, target, state.held.get(target, {}))
        merged = merge_target(sides)
        report.notices += merged.notices
        report.edited += [place for place in sides.edited if merged.files.get(place) != sides.now.get(place)]
        for place in sides.missing:
            report.notices.append(f"{place} was missing and is written again.")
        return await self._write(state, sides, merged, sides.now, report, dry_run=dry_run)

    async def _write(
        self,
        state: _State,
        sides: Sides,
        merged: MergedTarget,
        base: Files,
        report: SyncReport,
        *,
        dry_run: bool,
    ) -> _Written:
        """Write the merged files to the checkout. Return the new base of each place."""
        lying = state.local.files.get(sides.target, {})
        written: _Written = {}
        for place in sorted({*sides.base, *sides.now, *sides.saved, *merged.files}):
            data, found = merged.files.get(place), lying.get(place)
            if data != (found.data if found else None):
                action = _name_action(data, found, sides.now.get(place))
                report.actions.append(FileAction(place, action))
            if dry_run:
                continue
            try:
                file = await asyncio.to_thread(self._put, place, data, found)
            except Busy as error:  # its base stays as it was
                report.problems.append(str(error))
                continue
            name = digest(base[place]) if place in base else None
            if name and file:
                if sides.base.get(place) != BaseVersion(name, base[place]) or file != (found and found.file):
                    written[sides.target, place] = name, file
            elif place in sides.base and file is None:  # an edited file keeps its base
                written[sides.target, place] = None
        return written

    def _put(self, place: str, data: bytes | None, found: LocalFile | None) -> PublishedFile | None:
        """Write a file. Raises Busy if somebody has saved it in the meantime."""
        over = found.file if found else None
        if data is None:
            if found:
                self._tree.remove(place, over)
            return None
        if found and found.data == data:
            return found.file
        return self._tree.write(place, data, over)

    # Push

    async def _push(
        self, keeper: Keeper, state: _State, target: Target, report: SyncReport, *, dry_run: bool
    ) -> _Written:
        if state.is_same(target):
            return {}
        sides = await self._sides(state, target, state.held.get(target, {}))
        if not sides.edited:
            report.waiting += sum(sides.saved.get(place) != data for place, data in sides.now.items())
            report.problems += map(_describe_missing, sides.missing)
            return {}
        if target in state.archived:
            raise Refused(f"It is archived. Take it out first: hone skills restore {places.name_of(target)}")
        report.problems += map(_describe_missing, sides.missing)
        recorded: list[tuple[Sides, MergedTarget, Entry | None]] = []

        async def attempt() -> None:
            now = await self._sides(state, target, _active(await keeper.ledger.held(target)))
            merged = merge_target(now)
            recorded[:] = [(now, merged, await _record(keeper, now, merged))]

        await repeat(attempt, TRIES)
        sides, merged, entry = recorded[0]
        report.notices += merged.notices
        if entry:
            report.actions += [
                FileAction(place, SyncAction.RECORDED, entry.id or None)
                for place in sorted({*sides.now, *merged.files})
                if sides.now.get(place) != merged.files.get(place)
            ]
        again = SyncReport(report.upto)
        written = await self._write(state, sides, merged, merged.files, again, dry_run=dry_run)
        report.problems += again.problems
        return written


async def _record(keeper: Keeper, sides: Sides, merged: MergedTarget) -> Entry | None:
    """Record the merge of a target. Return None if it is known already. Raises Conflict if the known side has
    changed since the merge."""
    target = sides.target
    if merged.files == sides.now:
        return None
    if places.is_journal(target):
        place = places.place_of(target)
        now, text = sides.now.get(place, b""), merged.files.get(place, b"")
        try:
            edit = SetText(text.decode(), digest(now))
        except UnicodeDecodeError as error:
            raise StoreError(f"It is not UTF-8 text (byte {error.start:,}). Save it as UTF-8.") from error
        return (await keeper.note([(target, edit)], AUTHOR, ChangeKind.EDIT))[0]
    name, files = places.name_of(target), _by_path(target, merged.files)
    if name in bundled.names() and not sides.now:
        raise Refused(f"A skill of this name comes with Hone. Rename yours, or use: hone skills edit {name}")
    return await keeper.edit_skill(name, EditFolder(files, digest_files(_by_path(target, sides.now))), AUTHOR)


def _by_path(target: Target, files: Files) -> Files:
    return split_facts({places.path_at(target, place): data for place, data in files.items()})[0]


@contextmanager
def _noting(report: SyncReport, what: str = "") -> Iterator[None]:
    """Note why a target failed, and continue with the others."""
    try:
        yield
    except HoneError as error:
        report.problems.append(f"{what}{error}")


def _active(held: Held) -> Held:
    if ARCHIVED in held:
        raise Conflict("It was archived meanwhile.")
    return held


async def _load_contents(ledger: Ledger, digests: set[str]) -> Mapping[str, bytes]:
    """Return the existing contents; one may have been erased."""
    if not digests:
        return {}
    try:
        return await ledger.contents(digests)
    except (Missing, Corrupt):
        found: dict[str, bytes] = {}
        for name in digests:
            try:
                found |= await ledger.contents({name})
            except (Missing, Corrupt):
                continue
        return found


def _name_action(data: bytes | None, found: LocalFile | None, now: bytes | None) -> SyncAction:
    if data is None:
        return SyncAction.REMOVED
    return SyncAction.MERGED if found and data != now else SyncAction.WRITTEN


def _name(target: Target) -> str:
    return places.place_of(target) if places.is_journal(target) else places.folder_of(target)


def _describe_missing(place: str) -> str:
    if place.startswith(f"{places.SKILLS}/"):
        name = place.split("/")[1]
        return (
            f"{place} is missing here, and stays in the database. To write it again: hone pull. To put the "
            f"skill away: hone skills archive {name}"
        )
    return (
        f"{place} is missing here, and its entries stay. To write it again: hone pull. To remove them all, "
        "push an empty file."
    )
