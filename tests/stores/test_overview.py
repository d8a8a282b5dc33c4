"""Sums and windows are those of the whole, and the index of histories is that of the sessions."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hone.core.errors import Corrupt, Missing
from hone.core.histories import HistoryNote, KnownHistory
from hone.core.ids import SessionId
from hone.core.ledger import Actor
from hone.core.model import Usage, total
from hone.core.overview import SpendingSum, SpentCall
from hone.core.ports import Spending
from hone.core.skill import SkillEvent
from hone.core.turn import Origin
from hone.stores.database import Database
from hone.stores.home import Stores, over
from tests.contract.kinds import kept
from tests.contract.test_sessions import NOW, begin, facts, said
from tests.stores.test_sqlite import raw

KEPT = ("sqlite", "postgres")
A, B = SessionId("a1"), SessionId("b2")
LEARNING = frozenset({Origin.REVIEW, Origin.CURATOR})
COSTS = st.none() | st.integers(0, 1_000).map(lambda quarters: quarters / 4)
CALLS = st.lists(
    st.tuples(
        st.integers(-200, 5_000), st.sampled_from(Origin), st.builds(Usage, *[st.integers(0, 999)] * 4, COSTS)
    ),
    max_size=12,
)


def opened(folder: Path) -> Stores:
    return over(folder, Database.open(folder / "hone.db"))


def summed(rows: list[Spending]) -> SpendingSum:
    whole = total(each.usage for each in rows)
    costs = [each.usage.cost for each in rows if each.usage.cost is not None]
    usage = Usage(whole.input, whole.cached, whole.written, whole.output, sum(costs))
    return SpendingSum(usage, len(rows), len(rows) - len(costs))


@pytest.mark.parametrize("kind", KEPT)
@settings(max_examples=settings().max_examples // 4)  # each one opens a database
@given(calls=CALLS, minutes=st.lists(st.integers(0, 5_000), min_size=2, max_size=5))
def test_sums_in_the_database_are_those_of_all_calls(
    kind: str, calls: list[tuple[int, Origin, Usage]], minutes: list[int]
) -> None:
    async def run(stores: Stores) -> None:
        await begin(stores.sessions, A)
        rows = [Spending(NOW + timedelta(minutes=at), "m", origin, usage) for at, origin, usage in calls]
        for each in rows:
            await stores.sessions.append(A, (), each)
        bounds = [NOW + timedelta(minutes=at) for at in sorted((*minutes, 0, 60, 1_440))]
        expected, numbers = [], []
        for since, until in pairwise(bounds):
            within = [each for each in rows if since <= each.at < until]
            chosen = [each for each in within if each.origin in LEARNING]
            expected.append((summed(chosen), summed([each for each in within if each not in chosen])))
            own = [
                place for place, each in enumerate(rows, 1) if each in within and each.origin is Origin.USER
            ]
            numbers.append((own[0], own[-1]) if own else None)
        assert list(await stores.overview.spans(bounds, LEARNING)) == expected
        assert shifted(await stores.overview.numbers(bounds, Origin.USER)) == shifted(numbers)
        assert await stores.overview.session_sum(A) == summed(rows)
        times = [each.at for each in rows]
        assert await stores.overview.extent() == ((min(times), max(times)) if times else None)

    with TemporaryDirectory() as folder, kept(kind, Path(folder)) as stores:
        asyncio.run(run(stores))


def shifted(numbers: Sequence[tuple[int, int] | None]) -> list[tuple[int, int] | None]:
    """Numbers of calls, counted from the first; where owners share a database, others have some, too."""
    first = min((low for low, _ in filter(None, numbers)), default=0)
    return [each and (each[0] - first, each[1] - first) for each in numbers]


@pytest.fixture(params=KEPT)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    with kept(request.param, tmp_path) as stores:
        yield stores


async def test_a_window_is_a_part_of_the_whole(stores: Stores) -> None:
    whole = await begin(stores.sessions, A, *(f"word {number}" for number in range(1, 12)))
    for first in (None, 1, 2, 7, 11, 12, 90):
        for limit in (1, 5, 50):
            found = await stores.overview.window(A, first, limit)
            begun = max(1, 12 - limit) if first is None else first
            assert (found.total, found.first) == (11, begun)
            assert facts(found.nodes) == facts(whole.nodes[begun - 1 : begun - 1 + limit])
    with pytest.raises(Missing):
        await stores.overview.window(B, 1, 5)


async def test_calls_name_their_prompt_and_folder(stores: Stores) -> None:
    """What a bill is made of: calls with their prompt, also of sessions that are gone, and uses of skills."""
    for name in (A, B):
        await begin(stores.sessions, name)
    rows = [
        (A, Spending(NOW, "m", Origin.USER, Usage(5, 1, 2, 3, 0.5))),
        (B, Spending(NOW + timedelta(hours=1), "n", Origin.REVIEW, Usage(7))),
        (A, Spending(NOW + timedelta(days=2), "m", Origin.USER, Usage(9))),
    ]
    for session, spent in rows:
        await stores.sessions.append(session, (), spent)
    stored = await stores.sessions.load(A)
    await stores.sessions.delete(B)
    found = await stores.overview.calls(NOW, NOW + timedelta(days=2))
    here = (stored.prefix.digest, stored.header.folder)
    assert list(found) == [SpentCall(*rows[0], *here), SpentCall(*rows[1])]
    assert list(await stores.overview.calls(NOW, NOW + timedelta(days=9), [Origin.REVIEW])) == [found[1]]
    digests = {each.prefix for each in found if each.prefix}
    assert await stores.overview.prompts({*digests, "no digest"}) == {stored.prefix.digest: stored.prefix}
    today = NOW.date()
    for day, session in ((today, A), (today - timedelta(days=3), B)):
        await stores.catalog.count("pack", SkillEvent.USE, Actor.AGENT, session, day)
    assert list(await stores.overview.skill_uses(today)) == [("pack", A)]


async def test_damage_in_a_window_is_noticed(tmp_path: Path) -> None:
    stores = opened(tmp_path)
    await begin(stores.sessions, A, *(f"word {number}" for number in range(1, 12)))
    await stores.close()
    with raw(tmp_path / "hone.db") as connection:
        connection.execute("UPDATE nodes SET trust = trust, parent = 2 WHERE depth = 5")
    stores = opened(tmp_path)
    assert len((await stores.overview.window(A, 6, 3)).nodes) == 3
    with pytest.raises(Corrupt):
        await stores.overview.window(A, 3, 5)
    await stores.close()


async def test_the_index_of_histories_follows_its_sessions(stores: Stores) -> None:
    index, sessions = stores.histories, stores.sessions
    one, two = await begin(sessions, A, "hi", "yes"), await begin(sessions, B, "hi", "yes")
    assert await index.unfilled(9) == ((B, "hi"), (A, "hi"))
    await index.fill(A, "not its head", [("wrong", 2)])
    await index.fill(A, one.head, [("h2", 2)])
    await index.fill(B, two.head, [("h2", 2)])
    assert (await index.unfilled(9), await index.find("wrong")) == ((), ())
    assert await index.find("h2") == (KnownHistory(B, 2, current=True), KnownHistory(A, 2, current=True))
    longer = said("more", "well", on=one)
    await sessions.append(A, longer.nodes[2:])
    assert await index.find("h2") == (KnownHistory(A, 2, current=False), KnownHistory(B, 2, current=True))
    stale = HistoryNote(B, "another head", "x", 4, "h4")
    assert await index.add([HistoryNote(A, one.head, longer.head, 4, "h4"), stale]) == (B,)
    assert await index.find("h4") == (KnownHistory(A, 4, current=True),)
    await sessions.delete(A)
    assert (await index.find("h4"), await index.find("h2")) == ((), (KnownHistory(B, 2, current=True),))
