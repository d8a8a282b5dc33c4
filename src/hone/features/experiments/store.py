"""Store experiments as files in the home: each task, and the finished runs of each lesson tried on it.

Each run is one line, written to disk before the next run starts. An incomplete line, left by a killed
process, is cut off.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from hone.core.errors import Conflict, Corrupt, HoneError, Missing, Refused, StoreError
from hone.core.ids import SessionId
from hone.core.messages import canonical, digest
from hone.core.regex import regex
from hone.core.sealed import sealed, to_json
from hone.core.value import replace
from hone.core.visible import one_line
from hone.features.experiments.task_file import to_dict, undescribed
from hone.features.experiments.values import LessonKind, Run, Study, Task
from hone.files.atomic import append_durably, make_folder, write
from hone.files.locks import acquire, release
from hone.sandbox.clearing import cleared

FOLDER, TASK = "experiments", "task.json"
GATE = "gate"
"""The folder of studies on held-out tasks."""
LONGEST = 64
_SHAPE = regex(r"[a-z0-9]+(?:-[a-z0-9]+)*")


class Studies:
    """One folder for each experiment, for the owner only."""

    def __init__(self, home: Path, folder: str = FOLDER) -> None:
        self.folder = home / folder

    def place(self, name: str) -> Path:
        """Raises Refused for what is no name."""
        if not _SHAPE.fullmatch(name) or len(name) > LONGEST:
            raise Refused(
                f"{one_line(name, 80)!r} cannot be the name of an experiment: it has 1 to {LONGEST} of a-z, "
                "0-9 and - between them."
            )
        return self.folder / name

    def names(self) -> list[str]:
        try:
            return sorted(each for each in os.listdir(self.folder) if _SHAPE.fullmatch(each))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"{self.folder} cannot be read: {error.strerror}.") from error

    def add(self, task: Task) -> None:
        """Raises Conflict if there is one of that name."""
        folder = self.place(task.name)
        with _writing(folder):
            if (folder / TASK).exists():
                raise Conflict(f"There is an experiment {task.name} already. Choose another name.")
            write(folder / TASK, sealed(to_dict(task)))

    def task(self, name: str) -> Task:
        """Raises Missing, or Corrupt for a file that is not as it was written."""
        path = self.place(name) / TASK
        try:
            return undescribed(path.read_bytes(), name)
        except (FileNotFoundError, NotADirectoryError):
            raise Missing(f"There is no experiment {name}. See hone experiment list.") from None
        except (OSError, ValueError) as error:
            raise Corrupt(
                f"{path} cannot be used: {error}. Put back what was there, or remove it with "
                f"hone experiment delete {name}."
            ) from error

    def is_from(self, name: str, sessions: Collection[SessionId]) -> bool:
        """Whether the task was recorded from one of these. Of a file that cannot be used nobody knows."""
        try:
            return self.task(name).session in sessions
        except StoreError:
            return False

    def delete(self, name: str) -> list[Study]:
        """Gives what had been found out. Raises Missing, or Refused while it is at work."""
        folder = self.place(name)
        if not folder.is_dir():
            raise Missing(f"There is no experiment {name}.")
        with self.busy(name), _writing(folder):
            known = self.studies(name)
            shutil.rmtree(folder)
        return known

    def studies(self, name: str) -> list[Study]:
        """The one begun last comes first. Files that cannot be used are left out; `study` tells why."""
        found = []
        for path in self.place(name).glob("*.jsonl"):
            try:
                found.append(_read(path))
            except HoneError:
                continue
        return sorted(found, key=lambda each: each.begun, reverse=True)

    def study(self, new: Study) -> Study:
        """As it stands, or this new one, begun. Another number of pairs holds from now on."""
        path = self._path(new)
        if not path.exists():
            with _writing(path.parent):
                write(path, _head(new))
            return new
        known = _read(path)
        if known.pairs == new.pairs:
            return known
        with _writing(path.parent):
            changed = replace(known, pairs=new.pairs)
            write(path, _head(changed) + b"".join(map(_line, known.runs)))
        return changed

    def append(self, study: Study, run: Run) -> Study:
        """Durable when it returns. Raises Conflict if that run is there already."""
        path = self._path(study)
        if any(run.place == each.place for each in _read(path).runs):
            raise Conflict(f"Pair {run.pair} has been run {run.arm} it already; nothing was stored.")
        with _writing(path.parent):
            append_durably(path, _line(run))
        return replace(study, runs=(*study.runs, run))

    def of(self, kind: LessonKind, name: str) -> list[Study]:
        """All that was tried with this lesson, in whatever words it had, the latest first."""
        found = [study for each in self.names() for study in self.studies(each)]
        same = [each for each in found if (each.lesson.kind, each.lesson.name) == (kind, name)]
        return sorted(same, key=lambda each: each.begun, reverse=True)

    @contextmanager
    def busy(self, name: str) -> Iterator[None]:
        """Only one process at a time works on an experiment; its lock goes with it."""
        path = self.place(name) / ".lock"
        try:
            handle = acquire(path, wait=False)
        except BlockingIOError:
            raise Refused(f"Another process is at work on experiment {name}.") from None
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror}.") from error
        try:
            yield
        finally:
            release(handle)

    @contextmanager
    def scratch(self, name: str) -> Iterator[Path]:
        """A folder outside of the home, gone at the end, together with one that a killed process left."""
        note = self.place(name) / ".scratch"
        if note.exists():
            _clear(Path(note.read_text("utf-8")))
        root = Path(tempfile.mkdtemp(prefix=_MARK)).resolve()
        note.write_text(str(root), "utf-8")
        try:
            yield root
        finally:
            _clear(root)
            note.unlink(missing_ok=True)

    def _path(self, study: Study) -> Path:
        told = [study.lesson.kind, study.lesson.name, study.lesson.digest, study.model]
        return self.place(study.task) / f"{digest(canonical(told).encode())[:16]}.jsonl"


_MARK = "hone-experiment-"


def _clear(root: Path) -> None:
    if root.name.startswith(_MARK) and root.is_dir() and not root.is_symlink():
        cleared(root)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        make_folder(folder.parent)
        yield
    except OSError as error:
        raise StoreError(f"{folder} cannot be written: {error.strerror}.") from error


def _line(value: Run | dict[str, Any]) -> bytes:
    told = msgspec.to_builtins(value)
    if not told.get("task"):  # a run of an experiment has the task of its study
        told.pop("task", None)
    return canonical(told).encode() + b"\n"


def _head(study: Study) -> bytes:
    head = to_json(study)
    del head["runs"]
    return _line(head)


def _read(path: Path) -> Study:
    try:
        head, *lines = path.read_bytes().split(b"\n")[:-1]
        study = msgspec.convert(json.loads(head), Study)
        return replace(study, runs=tuple(msgspec.json.decode(line, type=Run) for line in lines))
    except (OSError, ValueError, msgspec.DecodeError) as error:
        raise Corrupt(f"{path} cannot be used: {error}. It is left as it is.") from error
