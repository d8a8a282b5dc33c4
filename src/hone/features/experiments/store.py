"""Store experiments as documents of the owner: each task, and the finished runs of each lesson tried on it.

Each run is one line, stored before the next run starts. An incomplete line, left by a killed process of an
older Hone, is cut off.
"""

import json
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec

from hone.core.documents import EXPERIMENTS, NEW, DocumentKind, Documents, change
from hone.core.errors import Conflict, Corrupt, HoneError, Missing, Refused, StoreError
from hone.core.ids import SessionId
from hone.core.messages import canonical, digest
from hone.core.regex import regex
from hone.core.sealed import sealed, to_json
from hone.core.value import replace
from hone.core.visible import one_line
from hone.features.experiments.task_file import to_dict, undescribed
from hone.features.experiments.values import LessonKind, Run, Study, Task

TASK, SUFFIX = "task.json", ".jsonl"
LONGEST = 64
_SHAPE = regex(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def is_name(text: str) -> bool:
    return bool(_SHAPE.fullmatch(text)) and len(text) <= LONGEST


class Studies:
    """The documents of each experiment, or of each study at the gate, below its name."""

    def __init__(self, documents: Documents, home: Path, kind: DocumentKind = EXPERIMENTS) -> None:
        self._documents = documents
        self._home = home
        self._kind = kind

    def place(self, name: str) -> Path:
        """Return the folder of this machine for an experiment's notes. Raises Refused for an invalid name."""
        if not is_name(name):
            raise Refused(
                f"{one_line(name, 80)!r} cannot be the name of an experiment: it has 1 to {LONGEST} of a-z, "
                "0-9 and - between them."
            )
        return self._home / self._kind.folder / name

    def names(self) -> list[str]:
        found = {each.partition("/")[0] for each in self._documents.names(self._kind) if "/" in each}
        return sorted(filter(is_name, found))

    def documents(self, name: str) -> list[str]:
        """Return the names of all documents of an experiment."""
        return [each for each in self._documents.names(self._kind) if each.startswith(f"{name}/")]

    def contents(self, document: str) -> bytes:
        return self._documents.read(self._kind, document) or b""

    def add(self, task: Task) -> None:
        """Add an experiment. Raises Conflict if the name is taken."""
        self.place(task.name)
        try:
            self._documents.write(self._kind, f"{task.name}/{TASK}", sealed(to_dict(task)), NEW)
        except Conflict:
            raise Conflict(f"There is an experiment {task.name} already. Choose another name.") from None

    def task(self, name: str) -> Task:
        """Return a task. Raises Missing, or Corrupt for a document that was changed."""
        self.place(name)
        try:
            data = self._documents.read(self._kind, f"{name}/{TASK}")
            if data is None:
                raise Missing(f"There is no experiment {name}. See hone experiment list.")
            return undescribed(data, name)
        except Missing:
            raise
        except (StoreError, ValueError) as error:
            where = self._documents.describe(self._kind, f"{name}/{TASK}")
            raise Corrupt(
                f"{where} cannot be used: {str(error).rstrip('.')}. Put back what was there, or remove it "
                f"with hone experiment delete {name}."
            ) from error

    def is_from(self, name: str, sessions: Collection[SessionId]) -> bool:
        """Tell whether the task was recorded from one of these. An unusable one does not tell."""
        try:
            return self.task(name).session in sessions
        except StoreError:
            return False

    def delete(self, name: str) -> list[Study]:
        """Delete an experiment. Return its results. Raises Missing. Nobody may be working on it."""
        place, documents = self.place(name), self.documents(name)
        if not documents and not place.is_dir():
            raise Missing(f"There is no experiment {name}.")
        known = self.studies(name)
        # The task comes last: without it, the rest is a killed process's leftover.
        for document in sorted(documents, key=lambda each: each.endswith(TASK)):
            self._documents.delete(self._kind, document)
        try:
            shutil.rmtree(place, ignore_errors=not place.is_dir())
        except OSError as error:
            raise StoreError(f"{place} cannot be removed: {error.strerror}.") from error
        return known

    def studies(self, name: str) -> list[Study]:
        """Return the studies, latest start first. Unusable ones are skipped; `study` tells why."""
        self.place(name)
        found = []
        for document in self.documents(name):
            try:
                if document.endswith(SUFFIX):
                    found.append(self._read(document))
            except HoneError:
                continue
        return sorted(found, key=lambda each: each.begun, reverse=True)

    def study(self, new: Study) -> Study:
        """Return the study in its current state, or this new one. Another number of pairs applies from now
        on."""
        document, result = self._document(new), new

        def begin(data: bytes | None) -> bytes | None:
            nonlocal result
            if data is None:
                result = new
                return _head(new)
            result = self._decode(document, data)
            if result.pairs == new.pairs:
                return None
            result = replace(result, pairs=new.pairs)
            return _head(result) + b"".join(map(_line, result.runs))

        change(self._documents, self._kind, document, begin)
        return result

    def append(self, study: Study, run: Run) -> Study:
        """Add a run; durable when this returns. Raises Conflict if it is there already."""
        document = self._document(study)

        def add(data: bytes | None) -> bytes:
            known = self._decode(document, data or b"")
            if any(run.place == each.place for each in known.runs):
                raise Conflict(f"Pair {run.pair} has been run {run.arm} it already; nothing was stored.")
            whole = data or b""
            return whole[: whole.rfind(b"\n") + 1] + _line(run)

        change(self._documents, self._kind, document, add)
        return replace(study, runs=(*study.runs, run))

    def of(self, kind: LessonKind, name: str) -> list[Study]:
        """Return all studies of this lesson, in whatever wording, latest first."""
        found = [study for each in self.names() for study in self.studies(each)]
        same = [each for each in found if (each.lesson.kind, each.lesson.name) == (kind, name)]
        return sorted(same, key=lambda each: each.begun, reverse=True)

    def _document(self, study: Study) -> str:
        self.place(study.task)
        told = [study.lesson.kind, study.lesson.name, study.lesson.digest, study.model]
        return f"{study.task}/{digest(canonical(told).encode())[:16]}{SUFFIX}"

    def _read(self, document: str) -> Study:
        return self._decode(document, self.contents(document))

    def _decode(self, document: str, data: bytes) -> Study:
        try:
            head, *lines = data.split(b"\n")[:-1]
            study = msgspec.convert(json.loads(head), Study)
            return replace(study, runs=tuple(msgspec.json.decode(line, type=Run) for line in lines))
        except (ValueError, msgspec.DecodeError) as error:
            where = self._documents.describe(self._kind, document)
            raise Corrupt(f"{where} cannot be used: {error}. It is left as it is.") from error


def _line(value: Run | dict[str, Any]) -> bytes:
    told = msgspec.to_builtins(value)
    if not told.get("task"):  # a run of an experiment has the task of its study
        told.pop("task", None)
    return canonical(told).encode() + b"\n"


def _head(study: Study) -> bytes:
    head = to_json(study)
    del head["runs"]
    return _line(head)
