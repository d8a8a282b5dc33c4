"""Observe what commands change: files, dependencies, and what they give to Git."""

from collections.abc import Sequence
from pathlib import Path
from threading import RLock

from hone.core.errors import HoneError
from hone.core.events import Emit, Notice
from hone.core.tool_context import ToolContext
from hone.core.trust import Trust
from hone.files.watching import Changed, FolderWatch
from hone.runtime.provenance.areas import Areas, Incomparable
from hone.runtime.provenance.recording import (
    Base,
    decode,
    read,
    taint_file,
    taint_files,
    taint_names,
    taint_text,
)
from hone.runtime.provenance.records import Active, FindReach, Records
from hone.runtime.provenance.view import name
from hone.stores.tainted import TaintedText

UNRECORDED = (
    "What this command changed could not be recorded ({}). "
    "Until Hone ends, every file that has changed since it started counts as foreign."
)


_FAULTS = (HoneError, OSError, ValueError, LookupError, MemoryError, RecursionError)
_GITS_OWN = ("objects/", "refs/", "logs/", "index", "HEAD", "ORIG_HEAD", "packed-refs")


class CommandObserver:
    """Observes commands. It blocks while it reads and writes, so call it in a thread."""

    def __init__(self, records: Records, areas: Areas, reach: FindReach) -> None:
        self._records = records
        self._areas = areas
        self._reach = reach
        self._watches: dict[Path, FolderWatch] = {}
        self._lock = RLock()

    def close(self) -> None:
        for watch in self._watches.values():
            watch.close()
        self._watches.clear()

    def enter(self, active: Active, text: str, context: ToolContext) -> None:
        """Start observing a command. Raises StoreError, since nothing foreign may run without a record. A
        clean command needs none."""
        records = self._records
        try:
            records.recover()
            records.begin(active)
            if active.tainted:
                self._watch(active)
            if context.transcript.trust is Trust.FOREIGN:
                records.taint_session(active.session)
                records.add([taint_text(active.place, text, active.origin)])
            elif not active.tainted:
                active.in_area = True
                if self._areas.begin(active.place, active.session, self._reach(active.place)):
                    self._watch(active)
            if active.tainted or records.is_concerned(active.place):
                active.snapshot = records.commits.begin(active.place, active.id)
        except HoneError:
            if active.tainted:
                raise

    def leave(self, active: Active, emit: Emit) -> None:
        """Record what the command changed. A window that cannot be closed stays open, and what changes in it
        is foreign."""
        self._records.drop(active)
        if not active.id:
            return
        try:
            changed = active.watch.drain() if active.watch else Changed()
            self._records.add(self._texts(active, changed))
            self._records.end(active)
        except _FAULTS as error:
            emit(Notice(UNRECORDED.format(error)))
        finally:
            if active.watch:
                active.watch.close()
            if active.in_area:
                self._areas.end(active.place)

    def _texts(self, active: Active, changed: Changed) -> list[TaintedText]:
        """Return what a command has tainted."""
        paths = [active.place / each for each in (*changed.paths, *filter(_is_hidden, changed.inside))]
        copies = [] if active.tainted or not active.watch else self._copies(active, paths)
        origin = active.origin if active.tainted else None
        texts: list[TaintedText] = []
        if active.snapshot:
            texts += self._records.commits.end(active.snapshot, changed.inside, origin)
        elif self._records.is_concerned(active.place):  # by another process since then
            self._records.commits.adopt(active.place)
        if origin is None:
            return [*texts, *copies]
        self._taint_folders(active, changed)
        trusted = self._records.views.trusted
        files = taint_files(paths, _base(active), origin)
        texts += taint_names((active.place / each for each in changed.folders), origin)
        return [*texts, *(each for each in files if each.digest not in trusted)]

    def _taint_folders(self, active: Active, changed: Changed) -> None:
        """Taint dependencies that changed, and untrusted folders elsewhere that the command could write
        to."""
        wholes = {active.watch.whole(each) for each in changed.inside} if active.watch else set()
        found = [active.place / each for each in wholes if not each.endswith(".git")]
        outside = self._reach(active.place).write
        found += [each for each in outside if each.exists() and not self._records.folders.trusts(each)]
        if found:
            self._records.store.taint_folders([name(each) for each in found])

    def _copies(self, active: Active, paths: Sequence[Path]) -> list[TaintedText]:
        """Return files that a clean command copied from foreign areas. If that is unknown, the command is
        tainted."""
        contents = {path: data for path in paths if (data := read(path))}
        try:
            texts = {path: decode(data) for path, data in contents.items()}
            found = self._areas.find_copies(active.place, texts)
        except Incomparable:
            active.tainted = True
            return []
        base = _base(active)
        return [taint_file(path, contents[path], base(path), active.origin) for path in found]

    def _watch(self, active: Active) -> None:
        with self._lock:
            watch = self._watches.get(active.place)
            if watch is None:
                watch = self._watches[active.place] = FolderWatch(active.place)
            watch.drain()  # only its shares matter
            active.watch = watch.share()


def _is_hidden(path: str) -> bool:
    """Tell whether a file in a repository is neither an object nor one of Git's own work files."""
    start, _, inner = path.partition(".git/")
    return bool(inner) and (not start or start.endswith("/")) and not inner.startswith(_GITS_OWN)


def _base(active: Active) -> Base:
    """Return a function that looks up what was committed before the command."""
    snapshot = active.snapshot
    commit = snapshot.repository.commit(snapshot.refs.get("HEAD", "")) if snapshot else None

    def find(path: Path) -> bytes | None:
        if snapshot is None or commit is None or not path.is_relative_to(snapshot.repository.top):
            return None
        return snapshot.repository.find_file(commit.tree, str(path.relative_to(snapshot.repository.top)))

    return find
