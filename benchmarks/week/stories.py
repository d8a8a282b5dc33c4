"""The stories: what an owner says in some conversations, and what should be known afterwards."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

FOLDER = Path(__file__).parent
BLIND, OWN = FOLDER / "blind.jsonl", FOLDER / "own.jsonl"
"""The authors: somebody who has not seen the code, and us. Nothing is tuned on the former."""

SurfaceName = Literal["chat", "run", "library", "serve"]
SURFACES: tuple[SurfaceName, ...] = ("chat", "run", "library", "serve")
ToolUse = Literal["ok", "fails_then_fixed", "malformed", "web_page"]
Ending = Literal["exit", "hangup", "kill", "idle", "interrupted"]


class Talk(Struct, frozen=True, forbid_unknown_fields=True):
    """One conversation. `tool` says by the turn's number what the agent does in it; `page` is what it reads
    on the web, perhaps with an order that the owner never gave."""

    turns: tuple[str, ...]
    end: Ending
    tool: Mapping[str, ToolUse] = {}
    page: str = ""


class Lesson(Struct, frozen=True, forbid_unknown_fields=True):
    """What the owner states: `quote` in the owner's words, `entry` as a fair note, `paraphrase` in others."""

    conversation: int
    turn: int
    quote: str
    entry: str
    paraphrase: str
    kind: str
    target: Literal["user", "memory", "project", "skill"]
    fate: Literal["kept", "replaced", "withdrawn"]
    replaces: int | None = None

    @property
    def wordings(self) -> tuple[str, str, str]:
        """Return the forms in which it can be known."""
        return self.entry, self.paraphrase, self.quote


class Action(Struct, frozen=True, forbid_unknown_fields=True):
    """The owner withdraws a lesson after a conversation."""

    after: int
    do: Literal["undo", "reject"]
    lesson: int


class Story(Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    language: str
    surface: SurfaceName
    folder: Literal["trusted", "untrusted"]
    conversations: tuple[Talk, ...]
    lessons: tuple[Lesson, ...] = ()
    actions: tuple[Action, ...] = ()
    junk: tuple[str, ...] = ()
    notes: str = ""

    @property
    def turns(self) -> Iterator[tuple[int, int, str]]:
        for number, talk in enumerate(self.conversations):
            for at, turn in enumerate(talk.turns):
                yield number, at, turn

    @property
    def stated(self) -> frozenset[tuple[int, int]]:
        """Return the turns that state a lesson."""
        return frozenset((each.conversation, each.turn) for each in self.lessons)


def load(path: Path) -> list[Story]:
    return [msgspec.json.decode(line, type=Story) for line in path.read_text("utf-8").splitlines() if line]


def fold(text: str) -> str:
    """Return the text in a form to compare: without case, and with single spaces."""
    return " ".join(text.casefold().split())


def fold_lines(text: str) -> str:
    """Do the same line by line, with a line end on either side."""
    return "\n".join(("", *map(fold, text.split("\n")), ""))


def without(text: str, turns: Iterable[str]) -> str:
    """Return a text of folded lines without these turns, which have their own lines."""
    for turn in sorted(map(fold_lines, turns), key=len, reverse=True):
        while turn in text:
            text = text.replace(turn, "\n")
    return fold(text)


def find_faults(stories: Sequence[Story]) -> Iterator[str]:
    """Yield the parts of a story that cannot be played."""
    for story in stories:
        for number, lesson in enumerate(story.lessons):
            turns = story.conversations[lesson.conversation].turns
            if lesson.quote not in turns[lesson.turn]:
                yield f"{story.id}: lesson {number} quotes what its turn does not say"
            if lesson.replaces is not None and not 0 <= lesson.replaces < number:
                yield f"{story.id}: lesson {number} replaces none before it"
        for talk in story.conversations:
            if any(int(turn) >= len(talk.turns) for turn in talk.tool):
                yield f"{story.id}: a tool is used in a turn that is not there"
            if ("web_page" in talk.tool.values()) != bool(talk.page):
                yield f"{story.id}: a page is read that is not there, or the other way round"
            if story.surface == "run" and len(talk.turns) != 1:
                yield f"{story.id}: a one-shot has one turn"
        if any(action.lesson >= len(story.lessons) for action in story.actions):
            yield f"{story.id}: an action is about no lesson"


def sample(stories: Sequence[Story], count: int) -> list[Story]:
    """Return some of the stories, spread evenly; all for 0."""
    if not count or count >= len(stories):
        return list(stories)
    return [stories[number * len(stories) // count] for number in range(count)]
