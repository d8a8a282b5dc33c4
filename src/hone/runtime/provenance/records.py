"""The state that a home's observers and labels share: its records, and what is running."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from threading import RLock

from msgspec import Struct

from hone.core.tool_context import ToolContext
from hone.core.trust import Trust
from hone.core.value import replace
from hone.files.watching import FolderWatch, file_time
from hone.runtime.provenance.commits import Commits, RefSnapshot
from hone.runtime.provenance.process import ProcessMark
from hone.runtime.provenance.recording import TaintOrigin
from hone.runtime.provenance.view import TaintViews, is_overlapping, name
from hone.runtime.trust import Folders
from hone.stores.tainted import TaintedText, TaintStore


class Reach(Struct, frozen=True):
    """Where commands can also read and write, outside their working folder."""

    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()


FindReach = Callable[[Path], Reach]


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
    in_area: bool = False

    @property
    def origin(self) -> TaintOrigin:
        return TaintOrigin(self.session, self.started)


class Records:
    """The records of a home. The database opens when it is first needed."""

    def __init__(self, home: Path, folders: Folders) -> None:
        self.folders = folders
        self.store = TaintStore(home)
        self.views = TaintViews(self.store)
        self.commits = Commits(self.store, self.views, folders, self._is_busy)
        self._process = ProcessMark(home)
        self._active: list[Active] = []
        self._lock = RLock()

    def close(self) -> None:
        self.store.close()
        self._process.close()

    def begin(self, active: Active) -> None:
        """Record that a command starts or a file is written. Raises StoreError."""
        active.id = self.store.begin(
            name(active.place), self._process.id, active.session, active.started, tainted=active.tainted
        )
        with self._lock:
            self._active.append(active)
        self.views.changed()

    def end(self, active: Active) -> None:
        """Record that everything about it has been recorded. Raises StoreError."""
        self.store.end([active.id], time.time_ns())
        self.views.changed()

    def forget(self, active: Active) -> None:
        """Forget a window: everything that a tool wrote is recorded, so no search is needed later. Raises
        StoreError."""
        self.store.forget([each for each in self.store.windows() if each.id == active.id])
        self.drop(active)

    def add(self, texts: Iterable[TaintedText]) -> None:
        """Record tainted texts, without fingerprints that are already known. Raises StoreError."""
        found = [replace(each, units=self._unknown(each)) for each in texts]
        if found:
            self.store.add(found)
            self.views.changed()

    def _unknown(self, text: TaintedText) -> frozenset[int]:
        root = self.folders.root(Path(text.path))
        return self.views.get(root).fingerprints.unknown(text.units) if root and text.units else text.units

    def drop(self, active: Active) -> None:
        with self._lock:
            self._active = [each for each in self._active if each is not active]

    def taint_session(self, session: str) -> None:
        """Taint the background commands of a conversation that has become foreign: it may have told them
        something."""
        with self._lock:
            clean = [each for each in self._active if each.session == session and not each.tainted]
            for each in clean:
                each.tainted = True
        if clean:
            self.store.taint([each.id for each in clean])
            self.views.changed()

    def is_concerned(self, path: Path) -> bool:
        """Tell whether anything around a path is tainted."""
        root = self.folders.root(path)
        return root is not None and not (self.views.get(root).is_empty and not self.views.windows(path))

    def recover(self) -> None:
        """End the windows of dead processes. What has changed in them until now is found by time."""
        open_ones = [each for each in self.store.windows() if not each.ended] if self.store.exists else []
        dead = [each for each in open_ones if not self._process.is_alive(each.process)]
        for each in dead:
            self.commits.adopt(Path(each.place))
            self._process.sweep(each.process)
        if dead:
            self.store.end([each.id for each in dead], time.time_ns())
            self.views.changed()

    def _is_busy(self, folder: Path, own: int) -> bool:
        """Tell whether another command runs in or around a folder, in any process."""
        return any(
            not each.ended
            and each.id != own
            and is_overlapping(each.place, name(folder))
            and self._process.is_alive(each.process)
            for each in self.store.windows()
        )


def activate(place: Path, context: ToolContext, *, network: bool = False) -> Active:
    tainted = network or context.transcript.trust is Trust.FOREIGN
    return Active(place, context.header.id, tainted, file_time())
