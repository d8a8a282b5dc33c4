"""Observe what tools and commands write, and record what is tainted.

A conversation that is foreign taints every file it changes; a command with network does so in any
conversation. A window is recorded before a command starts or a file is written: if the process dies before it
has recorded the rest, what has changed since then counts as tainted.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from threading import RLock

from hone.core.errors import HoneError
from hone.core.events import Emit, Notice
from hone.core.messages import digest
from hone.core.tool_context import ToolContext
from hone.core.trust import Trust
from hone.core.waiting import uninterrupted
from hone.files.watching import Changed, FolderWatch, file_time
from hone.runtime.provenance.areas import Areas, TooMuch
from hone.runtime.provenance.commits import Commits, RefSnapshot
from hone.runtime.provenance.labels import ProvenanceLabels
from hone.runtime.provenance.process import ProcessMark
from hone.runtime.provenance.recording import (
    Base,
    TaintOrigin,
    decode,
    read,
    taint_file,
    taint_files,
    taint_text,
)
from hone.runtime.provenance.sweep import Sweeper
from hone.runtime.provenance.view import TaintViews, is_overlapping, name
from hone.runtime.trust import Folders
from hone.stores.tainted import TaintedText, TaintStore, TrustedContent

UNRECORDED = (
    "What this command changed could not be recorded ({}). "
    "Until Hone ends, every file that has changed since it started counts as foreign."
)


@dataclass
class Active:
    """A command that runs, or a file that is being written."""

    place: Path
    session: str
    tainted: bool
    started: int
    id: int = 0
    watch: FolderWatch | None = None
    snapshot: RefSnapshot | None = None
    before: bytes | None = None
    was_foreign: bool = False

    @property
    def origin(self) -> TaintOrigin:
        return TaintOrigin(self.session, self.started)


_current: ContextVar[Active | None] = ContextVar("_current", default=None)
"""The command of the call that is being performed."""


class Provenance:
    """The observer and the labels of one home. Opens its database when it is first needed."""

    def __init__(self, home: Path, folders: Folders) -> None:
        self._folders = folders
        self._store = TaintStore(home)
        self._process = ProcessMark(home)
        self._views = TaintViews(self._store)
        self._commits = Commits(self._store, self._views, folders, self._is_busy)
        self._areas = Areas(folders, self._views)
        sweeper = Sweeper(self._store, self._views, folders)
        self._labels = ProvenanceLabels(folders, self._views, self._commits, sweeper, self._areas)
        self._lock = RLock()
        self._active: list[Active] = []
        self._writing: dict[tuple[str, Path], Active] = {}
        self._watches: dict[Path, FolderWatch] = {}
        self._recovered = False

    def close(self) -> None:
        for watch in self._watches.values():
            watch.close()
        self._watches.clear()
        self._areas.close()
        self._store.close()
        self._process.close()

    def of_file(self, path: Path, data: bytes) -> Trust:
        return self._labels.of_file(path, data) if self._is_recovered() else Trust.FOREIGN

    def of_folder(self, path: Path) -> Trust:
        return self._labels.of_folder(path)

    def of_output(self, folder: Path, text: str) -> Trust:
        window = _current.get()
        if (window and window.tainted) or not self._is_recovered():
            return Trust.FOREIGN
        return self._labels.of_output(folder, text)

    def _is_recovered(self) -> bool:
        """Look once for what a process left that was killed. Tell whether the database could be read."""
        try:
            if not self._recovered:
                self._recover()
            self._recovered = True
        except (HoneError, OSError):
            return False
        return True

    # Files that tools write

    async def before_write(self, path: Path, before: bytes | None, context: ToolContext) -> None:
        await uninterrupted(asyncio.to_thread(self._before_write, path, before, context))

    async def after_write(self, path: Path, data: bytes, context: ToolContext) -> None:
        await uninterrupted(asyncio.to_thread(self._after_write, path, data, context))

    def _before_write(self, path: Path, before: bytes | None, context: ToolContext) -> None:
        active = _activate(path, context, network=False)
        active.before = before
        if active.tainted:
            self._taint_session(active.session)
            self._begin(active)
            self._commits.settle(path, active.id)
        elif before is not None and self._is_concerned(path):
            active.was_foreign = self.of_file(path, before) is Trust.FOREIGN
        self._writing[active.session, path] = active

    def _after_write(self, path: Path, data: bytes, context: ToolContext) -> None:
        active = self._writing.pop((context.header.id, path), None) or _activate(path, context, network=False)
        if active.tainted or active.was_foreign:
            self._store.add([taint_file(path, data, active.before, active.origin)])
        elif self._is_concerned(path) and self.of_file(path, data) is Trust.FOREIGN:
            # A conversation that has seen nothing foreign wrote it: what it has in common is a coincidence.
            root = name(self._folders.root(path) or path)
            self._store.trust([TrustedContent(digest(data), name(path), "clean", root)])
        if active.id:
            self._store.end([active.id], time.time_ns())
            self._store.forget([active.id])
        self._views.changed()

    def _is_concerned(self, path: Path) -> bool:
        """Tell whether anything is tainted where a file lies."""
        root = self._folders.root(path)
        return root is not None and not (self._views.get(root).is_empty and not self._views.windows(path))

    # Commands

    @asynccontextmanager
    async def around_command(
        self, folder: Path, text: str, context: ToolContext, *, network: bool
    ) -> AsyncIterator[None]:
        active = _activate(folder, context, network=network)
        _current.set(active)
        try:
            await uninterrupted(asyncio.to_thread(self._enter, active, text, context))
            yield
        finally:
            await uninterrupted(asyncio.to_thread(self._leave, active, context.emit))

    def _enter(self, active: Active, text: str, context: ToolContext) -> None:
        try:
            self._recover()
            self._begin(active)
            if active.tainted:
                self._watch(active)
            if context.transcript.trust is Trust.FOREIGN:
                self._taint_session(active.session)
                self._store.add([taint_text(active.place, text, active.origin)])
            elif not active.tainted and self._areas.begin(active.place, active.session):
                self._watch(active)
            if active.tainted or self._is_concerned(active.place):
                active.snapshot = self._commits.begin(active.place, active.id)
        except HoneError:
            if active.tainted:
                raise  # without a record it must not run; what a clean command does needs none

    def _leave(self, active: Active, emit: Emit) -> None:
        with self._lock:
            self._active = [each for each in self._active if each is not active]
        if not active.id:
            return
        try:
            changed = active.watch.drain() if active.watch else Changed()
            texts = self._texts(active, changed)
            if texts:
                self._store.add(texts)
            self._store.end([active.id], time.time_ns())
        except (HoneError, OSError) as error:
            emit(Notice(UNRECORDED.format(error)))
        finally:
            self._views.changed()
            if active.watch:
                active.watch.close()
            if not active.tainted:
                self._areas.end(active.place)

    def _texts(self, active: Active, changed: Changed) -> list[TaintedText]:
        """Return what a command has tainted."""
        paths = [active.place / each for each in changed.paths]
        origin = active.origin if active.tainted else None
        texts: list[TaintedText] = []
        if active.snapshot:
            texts += self._commits.end(active.snapshot, changed.inside, origin)
        elif self._is_concerned(active.place):  # by another process, in the meantime
            self._commits.adopt(active.place)
        if origin is None:
            return [*texts, *self._copies(active, paths)]
        wholes = {active.watch.whole(each) for each in changed.inside} if active.watch else set()
        dependencies = [each for each in wholes if not each.endswith(".git")]
        if dependencies:
            self._store.taint_folders([name(active.place / each) for each in dependencies])
        files = taint_files(paths, _base(active), origin)
        trusted = self._views.trusted
        return [*texts, *(each for each in files if each.digest not in trusted)]

    def _copies(self, active: Active, paths: list[Path]) -> Iterator[TaintedText]:
        """Yield files that a clean command made from files that are foreign as a whole."""
        for path in paths:
            data = read(path)
            try:
                found = bool(data) and bool(self._areas.find(active.place, decode(data or b"")))
            except TooMuch:
                found = True
            if found and data:
                yield taint_file(path, data, _base(active)(path), active.origin)

    def _begin(self, active: Active) -> None:
        active.id = self._store.begin(
            name(active.place), self._process.id, active.session, active.started, tainted=active.tainted
        )
        with self._lock:
            self._active.append(active)
        self._views.changed()

    def _taint_session(self, session: str) -> None:
        """What still runs in the background of a conversation that has become foreign may be told of it."""
        with self._lock:
            clean = [each for each in self._active if each.session == session and not each.tainted]
            for each in clean:
                each.tainted = True
        if clean:
            self._store.taint([each.id for each in clean])
            self._views.changed()

    def _watch(self, active: Active) -> None:
        with self._lock:
            watch = self._watches.get(active.place)
            if watch is None:
                watch = self._watches[active.place] = FolderWatch(active.place)
            watch.drain()  # only its shares are of interest
            active.watch = watch.share()

    def _is_busy(self, folder: Path, own: int) -> bool:
        """Tell whether a command other than one's own runs in or around a folder, in any process."""
        return any(
            not each.ended
            and each.id != own
            and is_overlapping(each.place, name(folder))
            and self._process.is_alive(each.process)
            for each in self._store.windows()
        )

    def _recover(self) -> None:
        """End the windows of processes that died. What changed in them until now is found by time."""
        open_ones = [each for each in self._store.windows() if not each.ended] if self._store.exists else []
        dead = [each for each in open_ones if not self._process.is_alive(each.process)]
        for each in dead:
            self._commits.adopt(Path(each.place))
            self._process.sweep(each.process)
        if dead:
            self._store.end([each.id for each in dead], time.time_ns())
            self._views.changed()


def _activate(place: Path, context: ToolContext, *, network: bool) -> Active:
    tainted = network or context.transcript.trust is Trust.FOREIGN
    return Active(place, context.header.id, tainted, file_time())


def _base(active: Active) -> Base:
    """Return how to look up what was committed before the command."""
    snapshot = active.snapshot
    commit = snapshot.repository.commit(snapshot.refs.get("HEAD", "")) if snapshot else None

    def find(path: Path) -> bytes | None:
        if snapshot is None or commit is None or not path.is_relative_to(snapshot.repository.top):
            return None
        return snapshot.repository.find_file(commit.tree, str(path.relative_to(snapshot.repository.top)))

    return find
