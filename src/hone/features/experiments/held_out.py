"""Split the recorded tasks, and find the lessons that have to prove themselves on the held-out ones.

Two of three sessions are held out, by a digest of their id, so that the split is the same every time. The
others are for trying a lesson out while it is written. No lesson is tried on a session that it was learned
from, nor on a branch or fork of one.
"""

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from hone.app import Hone
from hone.core.errors import HoneError
from hone.core.ids import SessionId
from hone.core.ledger import (
    PROJECT,
    SKILL,
    Actor,
    ChangeId,
    ChangeQuery,
    ChangeState,
    Entry,
    Target,
    project,
)
from hone.core.messages import digest
from hone.features.experiments.store import Studies
from hone.features.experiments.subjects import Subject, change_of, find
from hone.features.experiments.values import Lesson, LessonKind, Task
from hone.features.experiments.working import studies_of
from hone.knowledge import places
from hone.knowledge.descriptions import is_doubtful
from hone.knowledge.journal import entries
from hone.knowledge.sections import find_new_entries
from hone.knowledge.skills.facts import facts

LEARNERS = frozenset({Actor.AGENT, Actor.REVIEW, Actor.CURATOR})
RECENT = 500
"""How many changes to search for unproven lessons, newest first."""
SHARE = 3
"""One session out of this many is not held out."""


class UnprovenLesson(Struct, frozen=True):
    """An unconfirmed lesson in effect, the change that made it, and the conversations that it was learned
    from."""

    subject: Subject
    change: ChangeId
    sessions: frozenset[SessionId]

    @property
    def target(self) -> Target:
        lesson = self.subject.lesson
        return Target(lesson.name if lesson.kind is LessonKind.ENTRY else f"{SKILL}{lesson.name}")


def is_held_out(session: SessionId) -> bool:
    return int(digest(f"held out: {session}".encode())[:8], 16) % SHARE != 0


def name_task(task: Task) -> str:
    """Name a task without any of its words."""
    return digest(f"{task.session}\0{task.request}\0{task.created.isoformat()}".encode())[:16]


async def find_candidates(hone: Hone, mode: str) -> list[UnprovenLesson]:
    """Return the lessons to prove, newest first: skills, and with `all` entries of the journal, too."""
    found: dict[Lesson, UnprovenLesson] = {}
    if mode == "off":
        return []
    for entry in await hone.ledger.entries(ChangeQuery(limit=RECENT)):
        change = entry.change
        if not is_doubtful(change) or entry.settled or change.author.actor not in LEARNERS:
            continue
        if change.target.startswith(SKILL):
            made = await _read_skill(hone, entry)
        elif mode == "all" and not places.is_outside(change.target):
            made = await _read_entries(hone, entry)
        else:
            made = []
        for each in made:
            found.setdefault(each.subject.lesson, each)
    return list(found.values())


async def _read_skill(hone: Hone, entry: Entry) -> list[UnprovenLesson]:
    name = entry.change.target.removeprefix(SKILL)
    try:
        if facts(await hone.library.files(name)).archived:
            return []
        subject = await find(hone, hone.folder, LessonKind.SKILL, name)
    except HoneError:
        return []
    if await change_of(hone.keeper, subject) != entry.id:
        return []
    history = await hone.ledger.entries(ChangeQuery(target=entry.change.target))
    return [UnprovenLesson(subject, entry.id, _sources(history))]


async def _read_entries(hone: Hone, entry: Entry) -> list[UnprovenLesson]:
    target = entry.change.target
    there = entries(await hone.keeper.text(target))
    new = sorted(text for text in await find_new_entries(hone.keeper, entry) if text in there)
    subjects = [Subject(Lesson(LessonKind.ENTRY, target, digest(text.encode())), text) for text in new]
    return [UnprovenLesson(each, entry.id, _sources([entry])) for each in subjects]


def _sources(history: Iterable[Entry]) -> frozenset[SessionId]:
    """Return where changes were made, and what they rest on. A pending change has taught nothing."""
    found: set[SessionId] = set()
    for entry in history:
        author = entry.change.author
        if entry.change.standing is ChangeState.ACTIVE:
            found |= {author.session, author.parent, *(each.session for each in author.evidence)}
    return frozenset(each for each in found if each)


class TaskPool:
    """The recorded tasks, and the trees of conversations that they come from."""

    def __init__(self, hone: Hone) -> None:
        self._hone = hone
        self._roots: dict[SessionId, SessionId] = {}
        self.tasks = list(_load(studies_of(hone)))

    @property
    def held_out(self) -> Sequence[Task]:
        return [task for task in self.tasks if is_held_out(task.session)]

    async def choose(self, candidate: UnprovenLesson, since: datetime | None = None) -> list[Task]:
        """Return the tasks to try a lesson on, in a separate order; with a moment, those recorded since."""
        own = {await self._root(each) for each in candidate.sessions}
        fit = [
            task
            for task in self.held_out
            if await self._root(task.session) not in own
            and _is_known_there(candidate.target, task)
            and (since is None or task.created > since)
        ]
        key = candidate.subject.lesson.digest
        return sorted(fit, key=lambda task: digest(f"{key}{name_task(task)}".encode()))

    async def _root(self, session: SessionId) -> SessionId:
        """Return the first conversation of its tree; itself if it was deleted."""
        if session not in self._roots:
            top = session
            with suppress(HoneError):
                while parent := (await self._hone.sessions.load(top)).header.parent:
                    top = parent
            self._roots[session] = top
        return self._roots[session]


def _load(studies: Studies) -> Iterable[Task]:
    """Load a task. A file that was edited by hand is skipped: what it checks is unknown."""
    for name in studies.names():
        with suppress(HoneError):
            yield studies.task(name)


def _is_known_there(target: Target, task: Task) -> bool:
    """Tell whether a lesson is in the prompt where the task comes from."""
    return not target.startswith(PROJECT) or target == project(task.folder)


def find_task(tasks: Collection[Task], name: str) -> Task | None:
    return next((task for task in tasks if name_task(task) == name), None)


def folder_of(task: Task) -> Path:
    return Path(task.folder)
