"""The lab: a world that follows from its seed, a learner that does what its prompt tells it, and the check
that learning still works."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.app import Hone
from hone.features.lab.checking import POISON, find_faults
from hone.features.lab.figures import EXAM, sum_up
from hone.features.lab.learner import PROFILES
from hone.features.lab.play import LabArm, Played, play, play_all
from hone.features.lab.texts import LANGUAGES, load
from hone.features.lab.world import World, WorldLesson, WorldLessonKind, build, find_lessons, produce, truth
from hone.knowledge.wording import find_lessons as find_lessons_of
from hone.prompt.compose import find_noted
from tests.conftest import Figures, Tier

SEEDS = st.integers(0, 10_000)


def wanted(world: World, number: int) -> list[WorldLesson]:
    values = world.every[number].wanted
    return [each for each in world.lessons if values.get(each.rule) == each.value]


@given(SEEDS, st.integers(4, 40))
def test_a_world_follows_from_its_seed_and_can_be_mastered(seed: int, sessions: int) -> None:
    world = build(seed, sessions)
    assert world == build(seed, sessions)
    assert len(world.visits) == sessions
    assert [each.task for each in world.exam] == [each.name for each in load().tasks]
    for visit in world.every:
        if visit.task:
            assert find_faults(visit, [produce(visit, wanted(world, visit.number))]) == []
            assert all(words in {*visit.turns} for words in visit.corrections.values())


@given(SEEDS, st.data())
def test_a_lesson_mattered_if_and_only_if_its_absence_changes_the_work(
    seed: int, data: st.DataObject
) -> None:
    world = build(seed)
    visit = data.draw(st.sampled_from([each for each in world.every if each.task]))
    known = data.draw(st.lists(st.sampled_from(world.lessons), unique=True, max_size=12))
    mattered = truth(visit, known)
    made = produce(visit, known)
    for each in known:
        without = produce(visit, [other for other in known if other != each])
        assert (without != made) == (each in mattered)
    tasks = {load().rule(each.rule).task for each in mattered if each.kind is WorldLessonKind.RULE}
    assert tasks <= {visit.task}


@given(SEEDS)
def test_poison_in_the_prompt_spoils_every_task(seed: int) -> None:
    world = build(seed)
    poison = next(each for each in world.lessons if each.kind is WorldLessonKind.POISON)
    for visit in world.exam:
        known = [*wanted(world, visit.number), poison]
        assert find_faults(visit, [produce(visit, known)]) == [POISON]
        assert poison in truth(visit, known)


def test_every_language_is_spoken_and_no_wording_hides_in_another() -> None:
    spoken = {build(seed).language for seed in range(len(LANGUAGES))}
    assert spoken == set(LANGUAGES)
    for seed in range(len(LANGUAGES)):
        world = build(seed)
        for lesson in world.lessons:
            for words in lesson.wordings:
                assert find_lessons(world.lessons, f"- {words}") == [lesson]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, World, Played]:
    """One world through the real loop, and what it left."""
    root, world = tmp_path_factory.mktemp("lab"), build(1, 12)
    return root, world, asyncio.run(play(world, PROFILES["honest"], root))


def test_the_same_seed_gives_the_same_result(honest: tuple[Path, World, Played], tmp_path: Path) -> None:
    _, world, played = honest
    again = asyncio.run(play(world, PROFILES["honest"], tmp_path))
    assert [strip(each) for each in again.visits] == [strip(each) for each in played.visits]
    assert again.work == played.work


def strip(visited: object) -> tuple[object, ...]:
    """Everything but the session's random id, and tokens of paths."""
    names = ("number", "task", "success", "faults", "corrections", "calls", "learning_calls", "known")
    return tuple(getattr(visited, name) for name in names)


def test_the_truth_names_entries_that_stood_in_the_prompt(honest: tuple[Path, World, Played]) -> None:
    root, world, played = honest

    async def read() -> None:
        async with Hone(home=root / "home", folder=root / "work", learning="off") as hone:
            for visited in (*played.visits, *played.exam):
                stored = await hone.sessions.load(await hone.sessions.find(visited.session))
                rows = [row for part in find_noted(stored.prefix.system).values() for row in part]
                entries = [each for row in rows for each in find_lessons(world.lessons, row)]
                work = played.work.get(visited.number)
                journal = {each for each in work.mattered if each.target != "skill"} if work else set()
                assert journal <= set(entries)

    asyncio.run(read())
    mattered = [each for work in played.work.values() for each in work.mattered]
    assert len(mattered) >= 5
    assert any(each.target == "skill" for each in mattered), "a skill that was read changed the work"


def test_learning_works() -> None:
    """The check that fails when learning breaks: with it, tasks succeed after some sessions; without it, they
    do not."""
    sessions, seeds = 10, (2, 3)
    arms = [LabArm("honest", learns) for learns in (True, False)]
    played = play_all([(arm, seed, sessions) for arm in arms for seed in seeds], 1, lambda: None)
    learned, stayed = (
        sum_up(arm.name, played[at : at + 2], sessions) for arm, at in zip(arms, (0, 2), strict=True)
    )
    assert learned.figure(EXAM).mean >= 0.6
    assert stayed.figure(EXAM).mean <= 0.3
    assert learned.figure("corrections").mean < stayed.figure("corrections").mean
    assert learned.figure("poison learned").mean == 0
    assert stayed.figure("learning's share").mean == 0


def test_what_a_page_orders_is_tried_and_stays_out_of_every_prompt(
    tier: Tier, figures: Figures, tmp_path: Path
) -> None:
    """The learner that errs most saves what pages order: it waits for the owner, and no prompt has it."""
    tried = got_in = 0

    async def count_waiting(root: Path) -> int:
        async with Hone(home=root / "home", folder=root / "work", learning="off") as hone:
            waiting = await find_lessons_of(hone.ledger, await hone.ledger.pending())
            return sum(mark in each.text for each in waiting for mark in load().poison.marks)

    for seed in range(3, 3 + tier.size(short=1, full=30)):
        root = tmp_path / str(seed)
        root.mkdir()
        played = asyncio.run(play(build(seed, 12), PROFILES["hopeless"], root))
        tried += asyncio.run(count_waiting(root))
        got_in += sum(each.poisons for each in (*played.visits, *played.exam))
    figures.tally(tried, got_in=got_in)
    assert tried
    assert not got_in
