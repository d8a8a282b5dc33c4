"""Play one story from its first word to the final state."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from benchmarks.week.mind import VISIT, Mind, find_order
from benchmarks.week.nursery import Nursery
from benchmarks.week.provider import Exchange, Provider
from benchmarks.week.stories import Action, Lesson, Story, SurfaceName, Talk, fold, fold_lines, without
from benchmarks.week.surfaces import Desk, Surface, open_surface
from benchmarks.week.world import APART, SITE, Site, WorldClock

SETTINGS = f"""[permissions]
allow = ["web_fetch: {SITE}"]
"""
"""The owner has let Hone read this site before."""
LISTED = "200"


class Stage:
    """What all stories of one process share. Create it before any thread is started."""

    def __init__(self) -> None:
        self.clock = WorldClock()
        self.nursery = Nursery(self.clock)
        self.provider = Provider(self.clock)
        self.site = Site()

    def close(self) -> None:
        self.provider.close()
        self.site.close()
        self.nursery.close()


class Withdrawal(Struct, frozen=True):
    """A lesson that the owner withdrew after a conversation; it `counted` until then."""

    lesson: int
    after: int
    counted: bool


class Performance(Struct, frozen=True):
    """The result of a story. `prompts` holds the words of the first request of each conversation, and after
    the last one those of a visit; `active` what was known after each of them."""

    story: Story
    surface: SurfaceName
    prompts: tuple[str, ...]
    active: tuple[str, ...]
    exchanges: tuple[Exchange, ...]
    starts: tuple[int, ...]
    """How many exchanges preceded each of the prompts."""
    withdrawn: tuple["Withdrawal", ...]
    waiting: int
    """Changes that were pending at some time."""
    questions: int
    """Other questions to the owner."""


class Conditions(Struct, frozen=True):
    """How a story is played: the model's error rate, and whether the owner says `hone review` after each
    conversation."""

    rate: float
    seed: int = 1
    by_hand: bool = False


def play(stage: Stage, story: Story, surface: SurfaceName, under: Conditions) -> Performance:
    stage.clock.reset()
    stage.provider.play(Mind(story, under.rate, under.seed, stage.site.url))
    stage.site.pages.clear()
    for number, talk in enumerate(story.conversations):
        stage.site.pages[f"/{number}"] = talk.page
    with tempfile.TemporaryDirectory(prefix="hone-week-") as root:
        desk = Desk(stage.nursery, stage.provider, stage.clock, Path(root))
        (desk.home / "hone.toml").write_text(SETTINGS)
        (desk.folder / "README.md").write_text("# Things\n\nA folder with a few things in it.\n")
        if story.folder == "trusted":
            desk.hone("trust", "--yes", str(desk.folder))
        owner = Owner(story, desk, open_surface(surface, desk), by_hand=under.by_hand)
        try:
            owner.live()
        finally:
            owner.surface.close()
    return Performance(
        story,
        surface,
        tuple(owner.prompts),
        tuple(owner.active),
        tuple(stage.provider.exchanges),
        tuple(owner.starts),
        tuple(owner.withdrawn),
        len(owner.waited),
        desk.questions,
    )


class Owner:
    """Holds the conversations of a story and withdraws lessons."""

    def __init__(self, story: Story, desk: Desk, surface: Surface, *, by_hand: bool) -> None:
        self._story = story
        self._by_hand = by_hand
        self._desk = desk
        self.surface = surface
        self.prompts: list[str] = []
        self.starts: list[int] = []
        self.active: list[str] = []
        self.withdrawn: list[Withdrawal] = []
        self.waited: set[int] = set()

    def live(self) -> None:
        for number, talk in enumerate(self._story.conversations):
            self._converse(talk, str(number), by_hand=self._by_hand)
            actions = [action for action in self._story.actions if action.after == number]
            if actions and talk.end in ("kill", "hangup"):
                self._visit(f"between-{number}")  # the next process does what is left
                self.prompts.pop()
                self.starts.pop()
            for action in actions:
                self._act(action)
            self._note_active()
        self._visit("last")
        self._note_active()

    def _visit(self, name: str) -> None:
        provider = self._desk.provider
        provider.visiting = True
        self._converse(Talk((VISIT,), "exit"), name)
        provider.visiting = False

    def _converse(self, talk: Talk, name: str, *, by_hand: bool = False) -> None:
        desk = self._desk
        before = len(desk.provider.exchanges)
        self.surface.converse(talk, name)
        new = enumerate(desk.provider.exchanges[before:], before)
        start, first = next((at, each) for at, each in new if each.kind == "turn")
        self.starts.append(start)
        self.prompts.append(without(fold_lines(first.text), talk.turns))
        if by_hand:
            desk.hone("review")
        self._look_at_waiting()
        desk.clock.advance(APART)

    def _note_active(self) -> None:
        """Note what the journal and the skills say now."""
        _, journal = self._desk.hone("memory", "show", "--json")
        taught = any(lesson.target == "skill" for lesson in self._story.lessons)
        _, skills = self._desk.hone("skills", "list", "--json") if taught else (0, "[]")
        self.active.append(fold("\n".join(_strings(json.loads(journal) + json.loads(skills)))))

    def _look_at_waiting(self) -> None:
        _, out = self._desk.hone("pending", "--json")
        self.waited.update(int(each["id"]) for each in json.loads(out))

    def _act(self, action: Action) -> None:
        """Withdraw a lesson if it was learned, whatever its state: undo it if active, reject it if
        pending."""
        _, out = self._desk.hone("log", "--json", "--limit", LISTED)
        lesson = self._story.lessons[action.lesson]
        for change in json.loads(out):
            if _brings(change, lesson):
                counted = change["standing"] == "active"
                code, _ = self._desk.hone("undo" if counted else "reject", str(change["id"]))
                if not code:
                    self.withdrawn.append(Withdrawal(action.lesson, action.after, counted))
                    return


def _brings(change: dict[str, Any], lesson: Lesson) -> bool:
    added = fold("\n".join(line[1:] for line in change["diff"].splitlines() if line.startswith("+")))
    return any(fold(text) in added for text in (lesson.entry, lesson.paraphrase))


def _strings(value: Any) -> Iterator[str]:
    """Yield every text in decoded JSON."""
    if isinstance(value, str):
        yield value
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in children:
        yield from _strings(child)


def holds(text: str, lesson: Lesson) -> bool:
    """Tell whether a text says it: as noted, in other words, or in the owner's."""
    return any(fold(each) in text for each in lesson.wordings)


def find_orders(story: Story) -> list[str]:
    """Return what the pages of a story order the agent to do."""
    return [order for talk in story.conversations if (order := find_order(talk.page))]
