"""K2 in the lab: attribution against the truth, which lesson really changed what was made."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import Struct

from hone.app import Hone
from hone.core.clock import ManualClock
from hone.features.attribution.answers import find_answer
from hone.features.attribution.items import list_items
from hone.features.attribution.judging import judge, read_skills
from hone.features.attribution.values import AnsweredTurn, ItemKind, Method, PromptItem
from hone.features.attribution.verifying import AblationVerdict, Verifier
from hone.features.lab.dialect import HoneDialect
from hone.features.lab.learner import PROFILES, Learner, TaskTruth
from hone.features.lab.owner import WorldOwner
from hone.features.lab.provider import LearnerProvider
from hone.features.lab.pupil import open_pupil, scripted_settings
from hone.features.lab.world import World, build, find_lessons
from tests.conftest import Figures, Tier

FIRST = 100
"""The first seed: worlds before it were looked at while the measure was made."""


class PlayedAnswer(Struct, frozen=True):
    """The first answer of a visit, and what is known about it."""

    answer: AnsweredTurn
    truth: TaskTruth


class Matches(Struct):
    right: int = 0
    wrong: int = 0
    missed: int = 0

    def count(self, *, named: bool, true: bool) -> None:
        self.right += named and true
        self.wrong += named and not true
        self.missed += true and not named

    @property
    def precision(self) -> float:
        return self.right / max(1, self.right + self.wrong)

    @property
    def recall(self) -> float:
        return self.right / max(1, self.right + self.missed)

    def __str__(self) -> str:
        return f"precision {self.precision:.3f}, recall {self.recall:.3f} ({self.right + self.missed} true)"


@asynccontextmanager
async def played(world: World, learner: str, root: Path) -> AsyncIterator[tuple[Hone, list[PlayedAnswer]]]:
    """Play a world to its end; the learner still answers afterwards."""
    clock, script = ManualClock(), Learner(world, PROFILES[learner], HoneDialect())
    root.mkdir()
    async with (
        LearnerProvider(script, clock) as provider,
        open_pupil(root, world, scripted_settings(provider.url), clock) as pupil,
    ):
        owner = WorldOwner(world, pupil, root / "work")
        visits = [await owner.visit(each) for each in world.visits]
        visits += [await owner.visit(each, corrects=False) for each in world.exam]
        done = [each for each in visits if each.number in script.work]
        found = [await find_answer(pupil.hone.sessions, each.session, 1) for each in done]
        truths = [script.work[each.number] for each in done]
        yield pupil.hone, [PlayedAnswer(*each) for each in zip(found, truths, strict=True)]


def carried(world: World, answer: AnsweredTurn) -> dict[PromptItem, frozenset[object]]:
    """Return the items that may carry lessons, entries and skills that were read, each with its lessons."""
    skills = read_skills(answer)
    texts = {
        item: skills[item.name].text if item.kind is ItemKind.SKILL and item.name in skills else item.text
        for item in list_items(answer)
        if item.kind in (ItemKind.ENTRY, ItemKind.SKILL)
    }
    return {item: frozenset(find_lessons(world.lessons, text)) for item, text in texts.items()}


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("learner", ["honest", "careless"])
async def test_the_measure_finds_the_lessons_that_changed_what_was_made(
    learner: str, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    worlds = tier.size(short=1, full=30)
    matches, answers = {Method.RECORD: Matches(), Method.MEASURE: Matches()}, 0
    for seed in range(FIRST, FIRST + worlds):
        world = build(seed, 20)
        async with played(world, learner, tmp_path / str(seed)) as (_, some):
            for each in some:
                lessons = carried(world, each.answer)
                for judged in await judge(each.answer):
                    true = bool(lessons.get(judged.item, frozenset()) & each.truth.mattered)
                    matches[judged.by[0]].count(named=judged.counts, true=true)
            answers += len(some)
    for method, found in matches.items():
        figures(f"{learner}, {worlds} worlds, {answers} answers, by {method}: {found}")
        assert min(found.precision, found.recall) >= 0.8


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("learner", ["honest", "careless"])
async def test_an_ablation_finds_the_items_without_which_something_else_is_made(
    learner: str, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    """An item is needed if it alone carries a lesson that mattered."""
    worlds, last = tier.size(short=1, full=3), tier.size(short=1, full=100)
    matches, runs, answers = Matches(), 0, 0
    for seed in range(FIRST, FIRST + worlds):
        world = build(seed, 20)
        async with played(world, learner, tmp_path / str(seed)) as (hone, some):
            for each in [each for each in some if each.truth.mattered][-last:]:
                lessons = carried(world, each.answer)
                times = Counter(lesson for own in lessons.values() for lesson in own)
                items = [item for item, own in lessons.items() if own]
                found = await Verifier(hone, each.answer).verify(items)
                runs, answers = runs + found.runs, answers + 1
                for ablation in found.ablations:
                    alone = {lesson for lesson in lessons[ablation.item] if times[lesson] == 1}
                    named = ablation.verdict is AblationVerdict.NEEDED
                    matches.count(named=named, true=bool(alone & each.truth.mattered))
    figures(f"{learner}, {worlds} worlds, {answers} answers, by ablation in {runs:,} runs: {matches}")
    assert min(matches.precision, matches.recall) >= 0.95
