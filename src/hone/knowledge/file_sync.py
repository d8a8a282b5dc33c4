"""Publish the ledger's content as files, and merge the owner's edits into the ledger."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, nullcontext, suppress
from typing import TypeVar

from msgspec import Struct

from hone.core.clock import Clock
from hone.core.errors import Busy, Refused, StoreError
from hone.core.ledger import (
    MEMORY,
    START,
    USER,
    Actor,
    Author,
    Change,
    ChangeId,
    ChangeKind,
    Ledger,
    PublishedFile,
    Target,
    skill,
)
from hone.core.loading import import_object
from hone.core.messages import digest
from hone.core.regex import regex
from hone.core.skill import DOCUMENT
from hone.core.threads import run_by
from hone.core.value import replace
from hone.core.waiting import uninterrupted
from hone.files.tree import TICK, FileKind, FileTree, FoundFile, SavedFile, Seen, Sight
from hone.knowledge import folding, journal, places
from hone.knowledge.file_states import FileState, ReadState, compare, glance_state, is_same
from hone.knowledge.folding import Files, Loaded
from hone.knowledge.merge import OLDER, Save, Saved, by_entry
from hone.knowledge.skills import folder
from hone.knowledge.skills.facts import split_facts

T = TypeVar("T")
Take = Callable[[Ledger, Target, str, str, Save], Awaitable[Saved]]
OWNER = Author(Actor.OWNER)
JOURNAL = (places.place_of(MEMORY), places.place_of(USER))
PROSE = (".md", ".txt", ".rst")
_HOUSEKEEPING = regex(r"/\.|~$|(^|/)#[^/]*#$|(^|/)(4913|sed\w{6})$|___jb_(tmp|old)___$|\.sw[a-p]$")
"""What editors leave next to a file: backups, swap files, probes of the folder, half of a new version."""


class Laid(Struct, frozen=True):
    """A folder that the owner put among the skills: its state, and its files by path."""

    listing: Sequence[FoundFile]
    files: Mapping[str, tuple[bytes, PublishedFile]]


class FileSync:
    """`say` takes one plain sentence for the owner. `alone`: nobody else can know this ledger, so no locking
    is needed."""

    tries = 1
    """How often a change is tried: under the lock nobody else is faster."""

    def __init__(
        self, ledger: Ledger, disk: FileTree, clock: Clock, say: Callable[[str], None], *, alone: bool = False
    ) -> None:
        self.disk = disk
        self._alone = alone
        self._ledger = ledger
        self._clock = clock
        self._say = say
        self._turn = asyncio.Lock()
        self._busy: set[str] = set()
        self._late = LatePublisher(self._publish_late)
        self._glanced: Sight | None = None
        """How the journal looked when the lock was taken."""
        self._latest: ChangeId | None = None
        """The last change when the journal was last loaded."""
        self._bodies: dict[str, bytes] = {}
        """The contents of the journal as it was last loaded or recorded, by digest."""
        # One thread may wait for another process's lock while the other writes files.
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="hone-files")

    def close(self) -> None:
        self._threads.shutdown()

    async def aside(self, work: Callable[[], T]) -> T:
        """Run work that may block in a thread."""
        return await run_by(self._threads, work)

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[None]:
        """Exclude every other writer of this home, in this process and in others. Do not cancel it."""
        async with self._turn:
            with ExitStack() as held:
                try:
                    # Somebody rarely holds it, and taking it is quicker than waking a thread.
                    held.enter_context(nullcontext() if self._alone else self.disk.lock(wait=False))
                except Busy:
                    await self.aside(lambda: held.enter_context(self.disk.lock()))
                with suppress(StoreError):  # callers that want to know check again
                    self._glanced = self.disk.sight(JOURNAL, usable=True)
                try:
                    yield
                finally:
                    self._glanced = None

    async def lay_out(self, name: str, files: Files) -> str:
        """Return nothing: a skill's own folder exists already."""
        return ""

    async def folders(self, place: str, known: Collection[str]) -> set[str] | None:
        """Return the names of the folders directly below a place; None if there is no such place."""
        return await self.aside(lambda: self.disk.folders(place, known))

    async def find_touched(self, skills: Sequence[Target]) -> Sequence[Target]:
        """Return the targets whose documents differ from the published files, without reading them."""
        published = await self._ledger.published_files(skills)
        documents = {target: f"{places.folder_of(target)}/{DOCUMENT}" for target in skills}
        sight = await self.sight([*documents.values()])
        return [
            target
            for (target, place), seen in zip(documents.items(), sight.seen, strict=True)
            if not is_same(published.get((target, place)), seen)
        ]

    async def sight(self, paths: Sequence[str]) -> Sight:
        return await self.aside(lambda: self.disk.sight(paths))

    async def is_in_sync(self, target: Target, files: Files) -> bool:
        """Tell whether the files match the ledger."""
        seen = await self._survey(target, files)
        return all(each.state is FileState.FINE for each in seen)

    async def read(self, target: Target, files: Files) -> Files:
        """Return `files`, which the ledger holds, or the result of `sync`. Raises StoreError."""
        if await self.is_in_sync(target, files):
            return files
        async with self.lock():
            return await self.sync(target)

    async def sync(self, target: Target) -> Files:
        """Return what is held, the owner's edits included; the files then match. Call it under the lock.
        Raises StoreError if a file cannot be read or used; then nothing is changed."""
        files = await folding.load(self._ledger, target)
        seen = await self._survey(target, files)
        edited = [each for each in seen if each.state is FileState.EDITED]
        if edited:
            files = await self._edited(target, files, edited)
        for each in seen:
            if each.state is FileState.MISSING:
                self._say(f"{each.place} was missing and has been printed again.")
        if any(each.state is not FileState.FINE for each in seen):
            await self._write(target, files, {each.place: each for each in seen})
        return files

    async def load(self, targets: Sequence[Target], lag: float = 0) -> Loaded:
        """Return what parts of the journal hold, the owner's edits included. It works like `sync` with fewer
        reads of ledger and disk. Files older than the ledger are published within `lag` seconds."""
        view = await self._ledger.view(targets, frozenset(self._bodies), self._latest)
        bodies = {**self._bodies, **view.contents}
        files: dict[Target, Files] = {
            target: {path: bodies[name] for path, name in view.held[target].items()} for target in targets
        }
        self._bodies = {name: bodies[name] for each in view.held.values() for name in each.values()}
        seen = await self._glance([places.place_of(target) for target in targets])
        changed = False
        for target, look in zip(targets, seen, strict=True):
            published = {place: each for (of, place), each in view.published.items() if of == target}
            state = glance_state(target, view.held[target], published, look)
            if state is FileState.STALE and lag:
                self._late.add(target, lag)
            elif state is not FileState.FINE:
                files[target], changed = await self.sync(target), True
        since, self._latest = self._latest, view.latest
        return Loaded(files, None if changed else view.latest, since or START, view.kinds)

    async def _glance(self, spots: Sequence[str]) -> Seen:
        """Check places without opening them. The lock has already checked those of the whole home."""
        known = dict(zip(JOURNAL, self._glanced.seen, strict=True)) if self._glanced else {}
        if known.keys() >= set(spots):
            return tuple(known[spot] for spot in spots)
        return (await self.aside(lambda: self.disk.sight(spots, usable=True))).seen

    def publish_later(self, target: Target, contents: Mapping[str, bytes], lag: float) -> None:
        """Write what was just recorded within `lag` seconds, or when `settle` is called. `contents` are the
        new contents, by digest."""
        self._bodies |= contents
        self._late.add(target, lag)

    async def settle(self) -> None:
        """Write immediately what is still to be written."""
        await self._late.settle()

    async def _publish_late(self, targets: Sequence[Target]) -> None:
        try:
            async with self.lock():
                for target in targets:
                    await self.sync(target)
        except StoreError as error:
            self._say(f"It is recorded, but not printed yet: {error}")

    async def adopt(self, names: Sequence[str]) -> None:
        """Record skills whose folders the owner has added, all at once. Report the unusable ones, and leave
        those alone until somebody changes them."""
        known = await self._ledger.published_files([skill(name) for name in names])
        names = await self.aside(lambda: [name for name in names if not self._is_refused(name, known)])
        if not names:
            return
        async with self.lock():
            found = await self.aside(lambda: [(skill(name), self._laid(name)) for name in names])
            changes: list[Change] = []
            contents: dict[str, bytes] = {}
            published: dict[tuple[Target, str], PublishedFile | None] = {}
            for target, laid in found:
                if laid is None or await self._ledger.held(target):
                    continue
                files = {path: data for path, (data, _) in laid.files.items()}
                try:
                    deltas, named = folding.deltas(folding.steps({}, _accepted(target, {}, files)))
                except StoreError as error:
                    self._say(str(error))
                    published[_refusal(target)] = _print(laid.listing)
                    continue
                changes.append(Change(target, ChangeKind.EDIT, deltas, OWNER, confirmed=True))
                contents |= named
                folder = places.folder_of(target)
                published |= {(target, f"{folder}/{path}"): each for path, (_, each) in laid.files.items()}
                published[_refusal(target)] = None
            if changes:
                await self._ledger.record(changes, contents, self._clock.now())
            if published:
                await self._ledger.mark_published(published)

    def _is_refused(self, name: str, published: Mapping[tuple[Target, str], PublishedFile]) -> bool:
        """Tell whether an unusable folder looks unchanged. One that was changed a moment ago may still have
        changed."""
        known = published.get(_refusal(skill(name)))
        if known is None:
            return False
        settled = self.disk.sight(()).at - TICK
        try:
            listing = self.disk.listing(places.folder_of(skill(name)))
        except StoreError:
            return False
        return _print(listing) == known and known.modified < settled

    def _laid(self, name: str) -> Laid | None:
        """Return the files of a skill from disk. If they cannot be read, report that and return None."""
        folder = places.folder_of(skill(name))
        try:
            listing = self.disk.listing(folder)
            read = {
                path.removeprefix(f"{folder}/"): self.disk.read(path) for path in list_files(listing, folder)
            }
        except StoreError as error:
            self._say(str(error))
            return None
        return Laid(listing, {path: each for path, each in read.items() if each is not None})

    async def publish(self, target: Target, files: Files) -> None:
        """Write what was just recorded. Call it under the lock, after `sync`: the disk is as it was noted."""
        published = await self._ledger.published_files([target])
        known = {
            place: ReadState(place, "", FileState.FINE, each, each) for (_, place), each in published.items()
        }
        await self._write(target, files, known)

    async def _survey(self, target: Target, files: Files) -> list[ReadState]:
        holding = {path: digest(data) for path, data in files.items()}
        wanted = places.places(target, holding)
        noted = await self._ledger.published_files([target])
        published = {place: each for (_, place), each in noted.items()}
        found = await self.aside(lambda: self._found(target, holding, {*wanted, *published}))
        seen = []
        for place in sorted({*wanted, *published, *found}):
            path, before, there = places.path_at(target, place), published.get(place), found.get(place)
            # Nothing is recorded before the last file is noted: other old contents are the owner's doing.
            state = compare(wanted.get(place), before, there and there.file)
            if there is None:
                seen.append(ReadState(place, path, state, before, None))
                continue
            if there.busy and state is not FileState.FINE:
                state = FileState.BUSY
            seen.append(ReadState(place, path, state, before, there.file, there.data, there.read_at))
        return seen

    def _found(
        self, target: Target, holding: Mapping[str, str], known: set[str]
    ) -> dict[str, SavedFile | None]:
        return {place: self.disk.look(place) for place in {*known, *self._further(target, holding)}}

    def _further(self, target: Target, holding: Mapping[str, str]) -> Iterator[str]:
        """Yield where the owner may have added something new."""
        if places.is_journal(target):
            yield places.place_of(target)
        else:
            yield from self._lying(places.home_of(target, holding))

    def _lying(self, folder: str) -> list[str]:
        return list_files(self.disk.listing(folder), folder)

    async def _edited(self, target: Target, files: Files, edited: list[ReadState]) -> Files:
        taken = {each.path: await self._taken(target, each, files.get(each.path)) for each in edited}
        try:
            after = _accepted(target, files, _with(files, taken))
        except StoreError:
            # Two versions of a line can break a file that works with either of them.
            taken = {
                each.path: await self._taken(target, each, files.get(each.path), both=False)
                for each in edited
            }
            after = _accepted(target, files, _with(files, taken))
        made = folding.steps(files, after)
        if made:
            deltas, contents = folding.deltas(made)
            by = replace(OWNER, tool=OLDER) if any(each.older for each in taken.values()) else OWNER
            change = Change(target, ChangeKind.EDIT, deltas, by, confirmed=True)
            await self._ledger.record([change], contents, self._clock.now())
        for each in taken.values():
            for notice in each.notices:
                self._say(notice)
        return after

    async def _taken(
        self, target: Target, seen: ReadState, held: bytes | None, *, both: bool = True
    ) -> Saved:
        """Return the result of an edit by hand to a file that is known as `held`."""
        published, is_journal = seen.published, places.is_journal(target)
        try:
            saved, known = seen.data.decode(), (held or b"").decode()
        except UnicodeDecodeError as error:
            if not is_journal:
                return Saved(seen.data)
            raise StoreError(
                f"{seen.place} is not UTF-8 text (byte {error.start:,}) and was left as it is; nothing was "
                "changed. Save it as UTF-8."
            ) from error
        split = by_entry if is_journal else journal.lines
        # A script with two versions of a line would do something that nobody wrote.
        both = both and (is_journal or seen.path.endswith(PROSE))
        save = Save(seen.place, saved, known, split, await self._is_unread(seen), both)
        take: Take = import_object("hone.knowledge.bases:take_save")  # most starts find no edit
        return await take(self._ledger, target, seen.path, published.digest if published else "", save)

    async def _is_unread(self, seen: ReadState) -> bool:
        """Tell whether nobody has read the file between its publication and the edit."""
        found, published = seen.found, seen.published
        if not found or not published or found.inode != published.inode:
            return False
        try:
            return seen.read_at == published.modified and await self.aside(self.disk.notes_reading)
        except StoreError:
            return False

    async def _write(self, target: Target, files: Files, seen: Mapping[str, ReadState]) -> None:
        """Write what differs, and note the new state of each place."""
        wanted = places.places(target, {path: digest(data) for path, data in files.items()})
        contents = {digest(data): data for data in files.values()}

        noted = {place: each.published for place, each in seen.items()}
        busy = {place for place, each in seen.items() if each.state is FileState.BUSY}
        untidy: set[str] = set()  # not noted: the next check finds it moved, and tidies up

        def write() -> dict[str, PublishedFile | None]:
            lying: dict[str, PublishedFile | None] = {place: each.found for place, each in seen.items()}
            for place, content in wanted.items():
                now = lying.get(place)
                if place in busy:
                    continue
                if now and now.digest == content:
                    if now != noted.get(place):  # a killed process may have put it there
                        self.disk.tidy(place)
                    continue
                try:
                    lying[place] = self.disk.write(place, contents[content], now)
                    if self.disk.has_drafts(place):  # the old file could not be removed
                        untidy.add(place)
                except Busy:  # the next reader merges what an editor saves right now
                    busy.add(place)
            for place in lying.keys() - wanted.keys() - busy:
                try:
                    self.disk.remove(place, lying[place])
                    lying[place] = None
                except Busy:
                    busy.add(place)
            unnoted = busy | untidy
            return {place: noted.get(place) if place in unnoted else each for place, each in lying.items()}

        lying = await self.aside(write)
        for place in sorted(busy & wanted.keys() - self._busy):
            self._busy.add(place)
            self._say(
                f"{place} is open for writing in another program; what is new goes in when it is closed."
            )
        changed = {(target, place): each for place, each in lying.items() if each != noted.get(place)}
        if changed:
            await self._ledger.mark_published(changed)


def list_files(listing: Sequence[FoundFile], folder: str) -> list[str]:
    """Return the files below a folder, without those that editors create while they save."""
    found = [each.path for each in listing if each.kind is FileKind.FILE]
    return [path for path in found if not _HOUSEKEEPING.search(path.removeprefix(folder))]


def _with(files: Files, taken: Mapping[str, Saved]) -> Files:
    return {**files, **{path: each.data for path, each in taken.items()}}


def _refusal(target: Target) -> tuple[Target, str]:
    """Return the key under which to note that a folder cannot be used."""
    return target, f"{places.folder_of(target)}/"


def _print(listing: Sequence[FoundFile]) -> PublishedFile:
    """Return a fingerprint to recognize a folder."""
    newest = max((each.glance.modified for each in listing), default=0)
    return PublishedFile(digest(repr(listing).encode()), 0, newest)


def _accepted(target: Target, before: Files, after: Files) -> Files:
    """Return the files as every edit's checks produce them. A skill that somebody broke is neither used nor
    overwritten."""
    if places.is_journal(target):
        path = places.path_of(target)
        old, new = (files.get(path, b"").decode() for files in (before, after))
        return {path: journal.apply(old, [journal.SetText(new)], None).encode()}
    try:
        return folder.apply(places.name_of(target), before, folder.ReplaceSkill(split_facts(after)[0]))
    except Refused as error:
        raise StoreError(
            f"{places.folder_of(target)} cannot be used as it is: {error} Nothing was changed; mend it."
        ) from error


class LatePublisher:
    """Publishes later: `publish` writes the files of some targets as the ledger has them by then. A process
    that is killed before leaves older files behind, and the next one publishes them."""

    def __init__(self, publish: Callable[[Sequence[Target]], Awaitable[None]]) -> None:
        self._publish = publish
        self._due: dict[Target, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, target: Target, lag: float) -> None:
        """Publish a target in this many seconds, together with whatever is added in the meantime."""
        self._due[target] = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(lag, self._start)

    async def settle(self) -> None:
        """Publish now what is due."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._tasks:
            await asyncio.wait(self._tasks)
        await uninterrupted(self._publish_due())

    def _start(self) -> None:
        self._timer = None
        task = asyncio.ensure_future(uninterrupted(self._publish_due()))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _publish_due(self) -> None:
        due, self._due = [*self._due], {}
        if due:
            await self._publish(due)
