"""What every store of the curator's rounds promises, and that both of them say the same."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from hone.core.curation import UNNUMBERED, CuratorRun, CuratorRunId
from hone.core.errors import Conflict, Missing
from hone.core.ids import SessionId
from hone.core.ledger import MEMORY, Actor, Author, Change, ChangeKind, ChangeQuery, Delta
from hone.core.messages import digest, sound
from hone.core.value import replace
from hone.stores.home import Stores
from tests.contract.kinds import KINDS, kept
from tests.given import NOON

BODY = b"one"
ONE = digest(BODY)
CHANGE = Change(MEMORY, ChangeKind.EDIT, (Delta("MEMORY.md", None, ONE),), Author(Actor.CURATOR), group="g")
FIRST = CuratorRun(NOON, "a week has passed", SessionId("s"), "0" * 64, "", "## Done")


@pytest.fixture(params=KINDS)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    with kept(request.param, tmp_path) as stores:
        yield stores


async def test_a_round_is_recorded_with_what_it_changed(stores: Stores) -> None:
    made, [entry] = await stores.curator_runs.complete(FIRST, UNNUMBERED, [CHANGE], {ONE: BODY})
    assert made == replace(FIRST, id=CuratorRunId(1), changes=(entry.id,))
    assert await stores.curator_runs.runs() == (made,)
    assert await stores.ledger.entries(ChangeQuery(group="g")) == (entry,)
    assert await stores.ledger.entries(ChangeQuery(group="other")) == ()


async def test_rounds_come_newest_first_whatever_the_clock_says(stores: Stores) -> None:
    first, _ = await stores.curator_runs.complete(FIRST, UNNUMBERED, (), {})
    earlier = replace(FIRST, at=NOON - timedelta(days=900), error="no\ud800thing", report="\udfff")
    second, _ = await stores.curator_runs.complete(earlier, first.id, (), {})
    assert (second.error, second.report) == (sound("no\ud800thing"), sound("\udfff"))
    assert await stores.curator_runs.runs() == (second, first)
    assert await stores.curator_runs.runs(1) == (second,)


@pytest.mark.parametrize("after", [0, 2, -1])
async def test_of_two_rounds_that_began_alike_one_is_a_conflict_and_changes_nothing(
    stores: Stores, after: int
) -> None:
    first, _ = await stores.curator_runs.complete(FIRST, UNNUMBERED, (), {})
    with pytest.raises(Conflict, match="Another round"):
        await stores.curator_runs.complete(FIRST, CuratorRunId(after), [CHANGE], {ONE: BODY})
    assert await stores.curator_runs.runs() == (first,)
    assert await stores.ledger.entries() == ()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (replace(CHANGE, deltas=(Delta("MEMORY.md", None, ONE),)), Conflict),
        (replace(CHANGE, deltas=(Delta("MEMORY.md", None, "1" * 64),)), Missing),
    ],
    ids=["changed meanwhile", "no such content"],
)
async def test_a_change_that_cannot_be_recorded_leaves_no_round(
    stores: Stores, change: Change, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await stores.curator_runs.complete(FIRST, UNNUMBERED, [CHANGE, change], {ONE: BODY})
    assert await stores.curator_runs.runs() == ()
    assert await stores.ledger.entries() == ()
