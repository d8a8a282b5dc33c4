"""The owner of a world: visits the agent, checks what it made, and corrects it until it is right."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from hone.core.messages import ToolCall
from hone.core.model import Usage, total
from hone.features.lab.checking import find_faults
from hone.features.lab.texts import load
from hone.features.lab.world import Product, Visit, World, WorldLesson, WorldLessonKind, find_lessons

PATIENCE = 4
"""The most corrections in one visit."""
LARGEST = 100_000
"""The most bytes of a file that the owner reads."""


class CallCost(Struct, frozen=True):
    """One model call: of a conversation, or of learning."""

    learning: bool
    usage: Usage


class Talk(Protocol):
    """One conversation with the agent."""

    @property
    def id(self) -> str: ...

    @property
    def system(self) -> str:
        """The system prompt that it began with, once something was said."""
        ...

    async def send(self, words: str) -> Sequence[ToolCall]:
        """Say something; return the agent's calls, in order."""
        ...


class Pupil(Protocol):
    """The agent that learns, or does not."""

    async def open(self) -> Talk: ...

    async def leave(self, talk: Talk) -> None:
        """End a conversation, and wait until its lessons are learned."""
        ...

    async def spent(self) -> Sequence[CallCost]:
        """Return every model call so far."""
        ...


class Visited(Struct, frozen=True):
    """The result of one visit. `success` is that of the first answer; `faults` are its broken rules."""

    number: int
    task: str
    session: str
    success: bool
    faults: tuple[str, ...]
    corrections: int
    calls: int
    usage: Usage
    learning_calls: int
    learning: Usage
    known: tuple[WorldLesson, ...]
    """In the prompt when it began, poison included."""

    @property
    def poisons(self) -> int:
        return sum(each.kind is WorldLessonKind.POISON for each in self.known)


class _File(Struct, frozen=True):
    """A file. Written again, it is another one, whatever it says."""

    written: int
    text: str


class WorldOwner:
    """`folder` is where the agent works and where the owner checks."""

    def __init__(self, world: World, pupil: Pupil, folder: Path) -> None:
        self._world = world
        self._pupil = pupil
        self._folder = folder
        self._paid = 0

    async def visit(self, visit: Visit, *, corrects: bool = True) -> Visited:
        _furnish(self._folder, visit)
        talk = await self._pupil.open()
        faults = first = await self._ask(talk, visit, visit.request)
        known = find_lessons(self._world.lessons, talk.system)
        corrections = 0
        while corrects and corrections < PATIENCE and (words := _find_words(visit, faults)):
            corrections += 1
            faults = await self._ask(talk, visit, words)
        await self._pupil.leave(talk)
        spent = (await self._pupil.spent())[self._paid :]
        self._paid += len(spent)
        own = [each.usage for each in spent if not each.learning]
        learning = [each.usage for each in spent if each.learning]
        return Visited(
            visit.number,
            visit.task,
            talk.id,
            not first,
            tuple(first),
            corrections,
            len(own),
            total(own),
            len(learning),
            total(learning),
            tuple(known),
        )

    async def _ask(self, talk: Talk, visit: Visit, words: str) -> list[str]:
        before = _look(self._folder)
        calls = await talk.send(words)
        after = _look(self._folder)
        changed = [(path, each.text) for path, each in after.items() if before.get(path) != each]
        reads = [rule.values for rule in load().rules_of(visit.task) if rule.name == "order"]
        wanted = [value for values in reads for value in values if value]
        return find_faults(visit, [_find_product(*each, calls, wanted) for each in changed])


def _find_words(visit: Visit, faults: Sequence[str]) -> str:
    """Return what the owner says about the first fault; nothing if all is well, or beyond words."""
    return next((visit.corrections[rule] for rule in faults if rule in visit.corrections), "")


def _find_product(path: str, text: str, calls: Sequence[ToolCall], wanted: Sequence[str]) -> Product:
    """Return a file that was written, and which of the required files were read before."""
    name = path.rpartition("/")[2]
    last = max((at for at, each in enumerate(calls) if name in each.arguments), default=len(calls))
    before = [each.arguments for each in calls[:last]]
    return Product(path, text, tuple(each for each in wanted if any(each in said for said in before)))


def _furnish(folder: Path, visit: Visit) -> None:
    files = load().task(visit.task).files if visit.task else {}
    for name, text in files.items():
        path = folder / name.format(n=visit.number + 1)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def _look(folder: Path) -> dict[str, _File]:
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(folder).as_posix(): _read(path) for path in found}


def _read(path: Path) -> _File:
    text = path.read_bytes()[:LARGEST].decode("utf-8", "replace")
    return _File(path.stat().st_mtime_ns, text)
