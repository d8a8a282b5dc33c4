"""Prints what the ledger says as files, and takes in what the owner wrote into them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Protocol, TypeVar

from hone.core.clock import Clock
from hone.core.errors import Refused, StoreError
from hone.core.ledger import Actor, Author, Change, ChangeKind, Ledger, PublishedFile, Target, skill
from hone.core.messages import digest
from hone.core.skill import DOCUMENT
from hone.core.value import dataclass
from hone.files.tree import FileKind, FileTree, Glance, Sight
from hone.knowledge import folding, journal, places
from hone.knowledge.folding import Files
from hone.knowledge.intake import FileFacts, FileState, look
from hone.knowledge.merge import by_entry, merge
from hone.knowledge.skills import folder
from hone.knowledge.skills.facts import parted

T = TypeVar("T")
OWNER = Author(Actor.OWNER)
Prints = Mapping[str, PublishedFile]
"""By place."""


@dataclass(frozen=True, slots=True)
class ReadState:
    """One place of a target, as it lies on the disk."""

    place: str
    path: str
    finding: FileState
    printed: PublishedFile | None
    found: PublishedFile | None
    data: bytes = b""


class Publisher(Protocol):
    """What keeps files in step with a ledger; `Press` says what each method does."""

    def locked(self) -> AbstractAsyncContextManager[None]: ...

    async def held(self, target: Target) -> Files: ...

    async def taken_in(self, target: Target) -> Files: ...

    async def publish(self, target: Target, files: Files) -> None: ...

    async def is_quiet(self, target: Target, files: Files) -> bool: ...

    async def folders(self, place: str, known: Collection[str]) -> set[str] | None: ...

    async def touched(self, skills: Sequence[Target]) -> Sequence[Target]: ...

    async def sight(self, paths: Sequence[str]) -> Sight: ...

    async def adopt(self, names: Sequence[str]) -> None: ...

    def close(self) -> None: ...


class FileSync:
    """`say` takes one plain sentence for the owner. `alone`: nobody else can know this ledger, and so nobody
    needs to be kept out."""

    def __init__(
        self, ledger: Ledger, disk: FileTree, clock: Clock, say: Callable[[str], None], *, alone: bool = False
    ) -> None:
        self.disk = disk
        self._alone = alone
        self._ledger = ledger
        self._clock = clock
        self._say = say
        self._turn = asyncio.Lock()
        # One thread may wait for another process's lock while the other one writes files.
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="hone-press")

    def close(self) -> None:
        self._threads.shutdown()

    async def aside(self, work: Callable[[], T]) -> T:
        """Does what may block in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        """Excludes every other writer of this home, in this process and in others. Not to be cancelled."""
        async with self._turn:
            lock = nullcontext() if self._alone else self.disk.lock()
            await self.aside(lock.__enter__)
            try:
                yield
            finally:
                lock.__exit__(None, None, None)

    async def held(self, target: Target) -> Files:
        return await folding.held(self._ledger, target)

    async def folders(self, place: str, known: Collection[str]) -> set[str] | None:
        """The names of the folders right below a place; None if there is no place to look at."""
        return await self.aside(lambda: self.disk.folders(place, known))

    async def touched(self, skills: Sequence[Target]) -> Sequence[Target]:
        """Those whose documents are no longer the files that were printed: a look at the disk, no reading."""
        prints = await self._ledger.prints(skills)
        documents = {target: f"{places.folder_of(target)}/{DOCUMENT}" for target in skills}

        def look_at() -> list[Target]:
            return [
                target
                for target, place in documents.items()
                if not _is_same(prints.get((target, place)), self.disk.glance(place))
            ]

        return await self.aside(look_at)

    async def sight(self, paths: Sequence[str]) -> Sight:
        return await self.aside(lambda: self.disk.sight(paths))

    async def is_quiet(self, target: Target, files: Files) -> bool:
        """Whether the files say what the ledger says."""
        seen = await self._survey(target, files)
        return all(each.finding is FileState.FINE for each in seen)

    async def taken_in(self, target: Target) -> Files:
        """What is held, the owner's edits included; the files then say the same. Under the lock. Raises
        StoreError if a file cannot be read or used; then nothing is changed."""
        files = await self.held(target)
        seen = await self._survey(target, files)
        edited = [each for each in seen if each.finding is FileState.EDITED]
        if edited:
            files = await self._edited(target, files, edited)
        for each in seen:
            if each.finding is FileState.MISSING:
                self._say(f"{each.place} was missing and has been printed again.")
        if any(each.finding is not FileState.FINE for each in seen):
            await self._print(target, files, {each.place: each for each in seen})
        return files

    async def adopt(self, names: Sequence[str]) -> None:
        """Takes in skills whose folders the owner has put there, all in one record. Under the lock. Those
        that cannot be used are told and left alone."""
        found = await self.aside(lambda: [(skill(name), self._laid(name)) for name in names])
        changes: list[Change] = []
        contents: dict[str, bytes] = {}
        prints: dict[tuple[Target, str], PublishedFile | None] = {}
        for target, laid in found:
            if laid is None or await self._ledger.holding(target):
                continue
            files = {path: data for path, (data, _) in laid.items()}
            try:
                deltas, named = folding.deltas(folding.steps({}, _accepted(target, {}, files)))
            except StoreError as error:
                self._say(str(error))
                continue
            changes.append(Change(target, ChangeKind.EDIT, deltas, OWNER, confirmed=True))
            contents |= named
            folder = places.folder_of(target)
            prints |= {(target, f"{folder}/{path}"): each for path, (_, each) in laid.items()}
        if changes:
            await self._ledger.record(changes, contents, self._clock.now())
            await self._ledger.printed(prints)

    def _laid(self, name: str) -> dict[str, tuple[bytes, PublishedFile]] | None:
        """The files of a skill, as they lie; None if they cannot be read, which is told."""
        folder = places.folder_of(skill(name))
        try:
            read = {path.removeprefix(f"{folder}/"): self.disk.read(path) for path in self._lying(folder)}
        except StoreError as error:
            self._say(str(error))
            return None
        return {path: each for path, each in read.items() if each is not None}

    async def publish(self, target: Target, files: Files) -> None:
        """Prints what was just recorded. Under the lock, after `taken_in`: the disk is as it was noted."""
        printed = await self._ledger.prints([target])
        known = {
            place: ReadState(place, "", FileState.FINE, each, each) for (_, place), each in printed.items()
        }
        await self._print(target, files, known)

    async def _survey(self, target: Target, files: Files) -> list[ReadState]:
        holding = {path: digest(data) for path, data in files.items()}
        wanted = places.places(target, holding)
        printed = {place: each for (_, place), each in (await self._ledger.prints([target])).items()}
        found = await self.aside(lambda: self._found(target, holding, {*wanted, *printed}))
        seen = []
        for place in sorted({*wanted, *printed, *found}):
            data, now = found.get(place) or (b"", None)
            path, before = places.path_at(target, place), printed.get(place)
            # Nothing is recorded before the last printout is noted: other old contents are the owner's doing.
            finding = look(FileFacts(wanted.get(place), before, now))
            seen.append(ReadState(place, path, finding, before, now, data))
        return seen

    def _found(
        self, target: Target, holding: Mapping[str, str], known: set[str]
    ) -> dict[str, tuple[bytes, PublishedFile] | None]:
        return {place: self.disk.read(place) for place in {*known, *self._further(target, holding)}}

    def _further(self, target: Target, holding: Mapping[str, str]) -> Iterator[str]:
        """Where the owner may have put something new."""
        if places.is_journal(target):
            yield places.place_of(target)
        else:
            yield from self._lying(places.home_of(target, holding))

    def _lying(self, folder: str) -> list[str]:
        """The files below it; what begins with a dot is somebody's housekeeping."""
        found = [each.path for each in self.disk.listing(folder) if each.kind is FileKind.FILE]
        return [path for path in found if "/." not in path.removeprefix(folder)]

    async def _edited(self, target: Target, files: Files, edited: list[ReadState]) -> Files:
        left = dict(files)
        for each in edited:
            left[each.path] = await self._merged(target, each, files.get(each.path))
        after = _accepted(target, files, left)
        made = folding.steps(files, after)
        if made:
            deltas, contents = folding.deltas(made)
            change = Change(target, ChangeKind.EDIT, deltas, OWNER, confirmed=True)
            await self._ledger.record([change], contents, self._clock.now())
        return after

    async def _merged(self, target: Target, seen: ReadState, held: bytes | None) -> bytes:
        base = b""
        if seen.printed:
            base = (await self._ledger.contents({seen.printed.digest}))[seen.printed.digest]
        try:
            before, ours, theirs = (each.decode() for each in (base, held or b"", seen.data))
        except UnicodeDecodeError as error:
            if not places.is_journal(target):
                return seen.data
            raise StoreError(
                f"{seen.place} is not UTF-8 text (byte {error.start:,}) and was left as it is; nothing was "
                "changed. Save it as UTF-8."
            ) from error
        merged = merge(before, ours, theirs, by_entry if places.is_journal(target) else journal.lines)
        if merged.clashes:
            self._say(
                f"{seen.place}: your edit took the place of what was changed meanwhile; hone log has both."
            )
        return merged.text.encode()

    async def _print(self, target: Target, files: Files, seen: Mapping[str, ReadState]) -> None:
        """Writes what differs, and notes what now lies where."""
        wanted = places.places(target, {path: digest(data) for path, data in files.items()})
        contents = {digest(data): data for data in files.values()}

        def write() -> dict[str, PublishedFile | None]:
            lying: dict[str, PublishedFile | None] = {place: each.found for place, each in seen.items()}
            for place, content in wanted.items():
                now = lying.get(place)
                if now is None or now.digest != content:
                    lying[place] = self.disk.write(place, contents[content])
            for place in lying.keys() - wanted.keys():
                self.disk.remove(place)
                lying[place] = None
            return lying

        lying = await self.aside(write)
        noted = {place: each.printed for place, each in seen.items()}
        changed = {(target, place): each for place, each in lying.items() if each != noted.get(place)}
        if changed:
            await self._ledger.printed(changed)


def _is_same(printed: PublishedFile | None, glance: Glance | None) -> bool:
    seen = glance and (glance.inode, glance.modified)
    return seen == (printed and (printed.inode, printed.modified))


def _accepted(target: Target, before: Files, after: Files) -> Files:
    """By the functions every edit goes through. A skill that somebody broke is not used, nor overwritten."""
    if places.is_journal(target):
        path = places.path_of(target)
        old, new = (files.get(path, b"").decode() for files in (before, after))
        return {path: journal.apply(old, [journal.SetText(new)], None).encode()}
    try:
        return folder.apply(places.name_of(target), before, folder.ReplaceSkill(parted(after)[0]))
    except Refused as error:
        raise StoreError(
            f"{places.folder_of(target)} cannot be used as it is: {error} Nothing was changed; mend it."
        ) from error
