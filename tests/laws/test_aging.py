"""E8, I3: the page counts stale skills as the curator does, without reading what they say."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from hone.core.errors import Refused
from hone.core.ledger import Actor
from hone.core.skill import SkillOrigin
from hone.features.curator.aging import count_stale, load_ages
from hone.features.curator.retention import Grade
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills.folder import Archive, Create, Pin, WriteFile
from hone.knowledge.verdicts import DEFAULTS, KeeperRules, LearningMode
from hone.stores.database import Database
from hone.stores.home import Stores, over
from tests.curating import NOON, Care, answering, caring, document, merge

NAMES = ("trip-planning", "night-trains", "slow-queries", "ferry-tables")
KINDS = ("agent", "agent", "agent", "pinned", "archived", "user")
MODES = st.sampled_from([LearningMode.AUTO, LearningMode.ASK])
GAPS = st.lists(st.sampled_from([1, 1, 1, 1, 2, 0, 6, 8, 40, -1, -60]), min_size=1, max_size=5)
"""Days between one use of Hone and the next, repeated: a clock may go back."""
USES = st.dictionaries(st.sampled_from(NAMES), st.lists(st.integers(0, 60), max_size=3))
EDITS = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(-5, 120)), max_size=4)


async def shelve(it: Care, kinds: Sequence[str]) -> None:
    for name, kind in zip(NAMES, kinds, strict=True):
        origin = SkillOrigin.USER if kind == "user" else SkillOrigin.AGENT
        await it.keeper.edit_skill(name, Create(document(name, "# Steps\nGo."), origin), OWNER)
        if kind == "pinned":
            await it.keeper.edit_skill(name, Pin(), OWNER)
        elif kind == "archived":
            await it.keeper.edit_skill(name, Archive(), OWNER)


async def age(
    it: Care, gaps: Sequence[int], uses: dict[str, list[int]], edits: list[tuple[str, int]]
) -> None:
    days = [NOON.date()]
    for number in range(60):
        days.append(days[-1] + timedelta(gaps[number % len(gaps)]))
    await it.live(days, uses)
    for name, day in sorted(edits, key=lambda each: each[1]):
        it.clock.advance((NOON + timedelta(days=day) - it.clock.now()).total_seconds())
        with suppress(Refused):  # it was put away, or says so already
            await it.keeper.edit_skill(name, WriteFile(f"references/{day}.md", b"x"), OWNER)


def cared(stores: Stores, home: Path, mode: LearningMode) -> Care:
    plan = merge("trip-planning", ["night-trains"], "# Steps\nGo, and go again.")
    rules = KeeperRules(DEFAULTS.limits, {Actor.CURATOR: mode}, merges=mode)
    return caring(
        home,
        answering(plan),
        rules,
        stores.ledger,
        stores.catalog,
        stores.sessions,
        stores.curator_runs,
    )


@settings(max_examples=settings().max_examples // 10)  # each one lives for two months
@given(st.lists(st.sampled_from(KINDS), min_size=4, max_size=4), MODES, GAPS, USES, EDITS)
@example(["agent"] * 4, LearningMode.AUTO, [1], {"night-trains": [50]}, [])
@example(["agent"] * 4, LearningMode.ASK, [1, 1, 1, 1, -3], {"night-trains": [50]}, [("slow-queries", 20)])
def test_ages_by_sums_are_those_by_reading_everything(
    kinds: list[str],
    mode: LearningMode,
    gaps: list[int],
    uses: dict[str, list[int]],
    edits: list[tuple[str, int]],
) -> None:
    async def run(home: Path) -> None:
        stores = over(home, Database.in_memory())
        it = cared(stores, home, mode)
        await shelve(it, kinds)
        await age(it, gaps, uses, edits)
        for _ in ("before a round", "after it"):
            expected = await it.curator.ages()
            assert tuple(await load_ages(it.library, stores.overview, it.sessions)) == expected
            stale = sum(each.grade is not Grade.ACTIVE for each in expected)
            assert await count_stale(it.library, stores.overview, it.sessions) == stale
            event(str(sorted(Counter(each.grade for each in expected).items())))
            await it.curator.work()
        await stores.close()

    with TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))
