"""The values of experiments: tasks, checks, lessons, runs and studies."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from hone.core.ids import SessionId
from hone.core.messages import decode
from hone.core.sealed import TrustWord
from hone.core.transcript import Transcript

HELD_OUT = "held-out"
"""Stands for a task: a study on the held-out ones, in turn."""
PAIRS = 20
"""The default for the most pairs of runs; fewer may decide."""
EARLY = 30
"""The turns of a run in which errors count as early. A turn is one reply of the model."""


class Check(Struct, frozen=True):
    """What must hold after a run, all of it. `script` must end with exit code 0, `text` must be in the
    answer, each of `files` must exist with these words in it (none: any)."""

    script: str = ""
    text: str = ""
    files: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.script or self.text or self.files)


class TaskMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """`message` is its canonical text."""

    message: str
    trust: TrustWord
    at: datetime


class Task(Struct, frozen=True, forbid_unknown_fields=True):
    """What is run repeatedly: files in a folder, a conversation that may have begun, a request, and the
    owner's check. `folder` is where it comes from."""

    name: str
    session: SessionId
    created: datetime
    folder: str
    request: str
    check: Check
    files: dict[str, str] = {}
    begun: tuple[TaskMessage, ...] = ()

    def transcript(self) -> Transcript:
        """Return what was said before the request. Raises KeyError for a message that cannot be read."""
        said = Transcript("")
        for each in self.begun:
            said = said.then(decode(each.message.encode()), each.trust, each.at)
        return said


class LessonKind(StrEnum):
    """What is measured."""

    SKILL = "skill"
    ENTRY = "entry"
    TEMPLATE = "template"


class Lesson(Struct, frozen=True):
    """`name` is that of the skill or the template, or the part of the journal an entry is in; `digest` is
    that of its content: another content is another lesson."""

    kind: LessonKind
    name: str
    digest: str

    def __str__(self) -> str:
        return f"an entry of {self.name}" if self.kind is LessonKind.ENTRY else f"{self.kind} {self.name}"


class EffectVerdict(StrEnum):
    HELPS = "helps"
    HARMS = "harms"
    UNDECIDED = "undecided"


class Arm(StrEnum):
    WITH = "with"
    WITHOUT = "without"


class Run(Struct, frozen=True):
    """The result of one run. `first` is the turn with the first call that succeeded, `first_seconds` when its
    result was there; None if none did. `cost` is in US dollars, None if no price is known. `task` names a
    held-out task without its words."""

    pair: int
    arm: Arm
    success: bool
    turns: int
    errors: int
    early: int
    first: int | None
    first_seconds: float | None
    tools: int
    tokens: int
    seconds: float
    cost: float | None = None
    task: str = ""

    @property
    def place(self) -> tuple[int, Arm]:
        return self.pair, self.arm


class Study(Struct, frozen=True):
    """One lesson on one task with one model, and the runs that are done."""

    task: str
    lesson: Lesson
    model: str
    begun: datetime
    pairs: int = PAIRS
    runs: tuple[Run, ...] = ()

    @property
    def paired(self) -> tuple[tuple[Run, Run], ...]:
        """Return the runs with and without the lesson, of each complete pair."""
        found = {run.place: run for run in self.runs}
        numbers = sorted({run.pair for run in self.runs})
        both = ((found.get((each, Arm.WITH)), found.get((each, Arm.WITHOUT))) for each in numbers)
        return tuple((one, other) for one, other in both if one and other)

    @property
    def whole(self) -> bool:
        return len(self.paired) >= self.pairs


def order(pair: int) -> tuple[Arm, Arm]:
    """Return which run goes first: it alternates, so that changes over time affect both alike."""
    return (Arm.WITH, Arm.WITHOUT) if pair % 2 else (Arm.WITHOUT, Arm.WITH)
