"""Work on an experiment: one process at a time, on any machine, in a folder that is deleted afterwards."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from hone.app import Hone
from hone.core.documents import EXPERIMENTS, GATE, DocumentKind
from hone.core.errors import Refused, StoreError
from hone.features.experiments.store import Studies
from hone.features.experiments.values import Study
from hone.files.atomic import make_folder
from hone.sandbox.caches import cleared

_MARK = "hone-experiment-"


def studies_of(hone: Hone) -> Studies:
    return Studies(hone.documents, hone.home)


def trials_of(hone: Hone) -> Studies:
    """Return the trials of lessons on held-out tasks."""
    return Studies(hone.documents, hone.home, GATE)


@asynccontextmanager
async def claimed(hone: Hone, name: str, kind: DocumentKind = EXPERIMENTS) -> AsyncIterator[None]:
    """Raise Refused if another process works on this experiment. The claim ends with the process."""
    async with hone.stores.claims.hold(f"{kind.name}-{name}") as mine:
        if not mine:
            raise Refused(f"Another process is at work on experiment {name}.")
        yield


@asynccontextmanager
async def working(hone: Hone, name: str, kind: DocumentKind = EXPERIMENTS) -> AsyncIterator[Path]:
    """Claim an experiment, and yield a folder to work in."""
    place = Studies(hone.documents, hone.home, kind).place(name)
    async with claimed(hone, name, kind):
        with scratch(place) as root:
            yield root


async def delete(hone: Hone, name: str) -> list[Study]:
    """Delete an experiment. Return its results. Raises Missing, or Refused while somebody works on it."""
    studies = studies_of(hone)
    studies.place(name)
    async with claimed(hone, name):
        return studies.delete(name)


@contextmanager
def scratch(place: Path) -> Iterator[Path]:
    """Yield a folder outside the home, and delete it at the end, together with one that a killed process
    left. A note in `place` says where it is. Raises StoreError."""
    note = place / ".scratch"
    if note.exists():
        _clear(Path(note.read_text("utf-8")))
    root = Path(tempfile.mkdtemp(prefix=_MARK)).resolve()
    try:
        make_folder(place)
        note.write_text(str(root), "utf-8")
    except OSError as error:
        _clear(root)
        raise StoreError(f"{note} cannot be written: {error.strerror}.") from error
    try:
        yield root
    finally:
        _clear(root)
        note.unlink(missing_ok=True)
        with suppress(OSError):  # it contains the experiment itself
            place.rmdir()


def _clear(root: Path) -> None:
    if root.name.startswith(_MARK) and root.is_dir() and not root.is_symlink():
        cleared(root)
