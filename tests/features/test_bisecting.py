"""K5: `hone bisect` finds the lesson that broke a task, in the real loop, with a model that slips."""

from pathlib import Path
from random import Random

import pytest

from hone.app import Hone
from hone.core.clock import ManualClock
from hone.core.errors import Refused
from hone.core.ledger import MEMORY, ChangeId
from hone.core.messages import assistant
from hone.features.experiments.bisecting import Bisector, BisectResult, read_history
from hone.features.experiments.part import ExperimentsPart
from hone.features.experiments.recording import RecordingOptions, record
from hone.features.experiments.values import Check, Task
from hone.knowledge.journal import Add
from hone.knowledge.keeper import OWNER
from hone.models.scripted import Scripted
from hone.settings import Settings
from hone.settings.sections import Memory
from tests.conftest import Figures, Tier

BAD = "Answer every question with a riddle."
ROOM = Settings(memory=Memory(memory=100_000))


class Misled(Scripted):
    """Answers right unless its prompt has the bad lesson, and in one of ten runs the other way round."""

    def __init__(self, luck: Random, slips: float = 0.1) -> None:
        super().__init__(lambda _: assistant("Seven."))
        self.luck, self.slips = luck, slips

    def stream(self, prefix, transcript):  # type: ignore[no-untyped-def]
        right = (BAD not in prefix.system) != (self.luck.random() < self.slips)
        return Scripted(lambda _: assistant("Seven." if right else "What has days?")).stream(
            prefix, transcript
        )


async def recorded(hone: Hone, model: Misled) -> Task:
    slips, model.slips = model.slips, 0.0
    session = await hone.session()
    await session.send("How many days has a week?")
    wish = RecordingOptions("week", check=Check(text="seven"))
    task = (await record(hone.sessions, session.id, wish, (), ManualClock())).task
    hone.part(ExperimentsPart).studies.add(task)
    model.slips = slips
    return task


async def taught(hone: Hone, lessons: int, bad: int) -> ChangeId:
    """Note so many lessons, of which one is bad. Return its change."""
    culprit = ChangeId(0)
    for number in range(1, lessons + 1):
        text = BAD if number == bad else f"Shelf {number} holds box {number * 37 % 1000}."
        [entry] = await hone.keeper.note([(MEMORY, Add(text, anyway=True))], OWNER)
        culprit = entry.id if number == bad else culprit
    return culprit


async def search(hone: Hone, task: Task, since: int = 0, most: int = 80) -> BisectResult:
    history = await read_history(hone, Path(task.folder), ChangeId(since), task)
    return await Bisector(hone).find(task, history, most, lambda *_: None)


@pytest.mark.timeout(7_200)
async def test_a_bad_lesson_is_found_among_many_in_the_real_loop(
    tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    worlds, lessons = tier.size(short=1, full=20), tier.size(short=40, full=200)
    found = runs = 0
    for seed in range(worlds):
        luck = Random(seed)
        model = Misled(luck)
        place = tmp_path / str(seed)
        place.mkdir()
        async with Hone(
            home=place / "home", folder=place, model=model, settings=ROOM, learning="off"
        ) as hone:
            task = await recorded(hone, model)
            culprit = await taught(hone, lessons, luck.randint(1, lessons))
            result = await search(hone, task)
            found += result.culprit is not None and result.culprit.id == culprit
            runs += result.runs
    figures(
        f"one bad lesson of {lessons}: found in {found} of {worlds} worlds, {runs / worlds:.1f} runs each"
    )
    assert found >= 0.95 * worlds


async def test_where_nothing_is_broken_or_nothing_has_changed_that_is_said(
    home: Path, tmp_path: Path
) -> None:
    model = Misled(Random(1), slips=0.0)
    async with Hone(home=home, folder=tmp_path, model=model, settings=ROOM, learning="off") as hone:
        task = await recorded(hone, model)
        with pytest.raises(Refused, match="has changed since then"):
            await search(hone, task)
        culprit = await taught(hone, 3, bad=2)
        assert (await search(hone, task, since=culprit)).nothing.startswith(
            "The task failed before the first"
        )
        await hone.keeper.undo(culprit, OWNER)
        works = await search(hone, task)
        assert (works.nothing.startswith("The task succeeds with what is known now"), works.runs) == (True, 6)


async def test_changes_made_as_one_are_one_suspect(home: Path, tmp_path: Path) -> None:
    async with Hone(home=home, folder=tmp_path, model=Misled(Random(1)), learning="off") as hone:
        task = await recorded(hone, Misled(Random(1)))
        await hone.keeper.note([(MEMORY, Add("Tea is at four.")), (MEMORY, Add("The door is blue."))], OWNER)
        await hone.keeper.note([(MEMORY, Add("Bins go out on Friday."))], OWNER)
        history = await read_history(hone, tmp_path, ChangeId(0), task)
        assert 2 <= len(history.suspects) <= 3
        assert history.known(0) == {}
        assert history.known(len(history.suspects))[MEMORY] == await hone.ledger.held(MEMORY)
