"""E2: what every outbox promises: a letter for each change that took effect, from its transaction on."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.errors import Conflict
from hone.core.ledger import MEMORY, Change, ChangeId, ChangeKind
from hone.core.outbox import Outbox, OutboxItem, OutboxStatus
from hone.stores.database import MIGRATIONS, Database
from hone.stores.home import Stores
from hone.stores.outbox import SqliteOutbox
from tests.contract.kinds import KINDS, all_kinds, kept
from tests.contract.test_ledger import NOW, A, B, C, change, put, verdict, waits
from tests.tier import fewer


@pytest.fixture(params=KINDS)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    with kept(request.param, tmp_path) as stores:
        yield stores


async def ids(outbox: Outbox) -> Sequence[int]:
    return [letter.change for letter in await outbox.letters()]


async def test_what_is_refused_by_the_ledger_leaves_no_letter(stores: Stores) -> None:
    ledger, outbox = stores.ledger, stores.outbox
    await put(ledger, change(None, A))
    with pytest.raises(Conflict):
        await ledger.record([change(A, B), change(A, C)], {}, NOW)
    assert await ids(outbox) == [1]


async def test_what_waits_for_the_owner_has_no_letter_until_it_takes_effect(stores: Stores) -> None:
    ledger, outbox = stores.ledger, stores.outbox
    (waiting, other) = await put(ledger, waits(None, A), waits(None, B))
    assert await ids(outbox) == []
    await put(ledger, verdict(other))
    assert await ids(outbox) == []
    approved = verdict(waiting, *waiting.change.deltas, kind=ChangeKind.APPROVE)
    [entry] = await put(ledger, approved)
    assert await ids(outbox) == [entry.id]


async def test_letters_come_in_the_order_of_their_changes_until_they_are_delivered(stores: Stores) -> None:
    ledger, outbox = stores.ledger, stores.outbox
    await put(ledger, change(None, A), change(A, B))
    await put(ledger, change(B, C))
    assert await ids(outbox) == [1, 2, 3]
    await outbox.delivered(ChangeId(2))
    await outbox.delivered(ChangeId(2))
    await outbox.delivered(ChangeId(99))
    assert await ids(outbox) == [1, 3]
    assert await outbox.letters(1) == (OutboxItem(ChangeId(1)),)
    assert await outbox.post() == OutboxStatus(2, 0, "")


async def test_a_try_in_vain_is_counted_and_one_that_is_final_is_not_tried_again(stores: Stores) -> None:
    ledger, outbox = stores.ledger, stores.outbox
    await put(ledger, change(None, A), change(A, B))
    await outbox.failed(ChangeId(1), "down")
    await outbox.failed(ChangeId(1), "still \ud800 down")
    await outbox.failed(ChangeId(2), "never", final=True)
    await outbox.failed(ChangeId(9), "no such letter")
    assert await outbox.letters() == (OutboxItem(ChangeId(1), 2),)
    post = await outbox.post()
    assert (post.waiting, post.refused) == (1, 1)
    assert "down" in post.error
    await outbox.delivered(ChangeId(1))
    assert await outbox.post() == OutboxStatus(0, 1, "never")


async def test_another_place_has_heard_of_nothing_and_the_same_one_is_not_told_twice(stores: Stores) -> None:
    ledger, outbox = stores.ledger, stores.outbox
    await outbox.address("one")
    await put(ledger, change(None, A), waits(None, B))
    await put(ledger, change(A, B))
    await outbox.delivered(ChangeId(1))
    await outbox.failed(ChangeId(3), "never", final=True)
    await outbox.address("one")
    assert await ids(outbox) == []
    await outbox.address("two")
    assert await outbox.letters() == (OutboxItem(ChangeId(1)), OutboxItem(ChangeId(3)))
    assert await outbox.post() == OutboxStatus(2, 0, "")


async def test_a_home_keeps_its_name_and_no_two_have_the_same(stores: Stores, tmp_path: Path) -> None:
    outbox = stores.outbox
    name = await outbox.home()
    assert name == await outbox.home()
    other = Database.open(tmp_path / "other.db")
    try:
        assert name != await SqliteOutbox(other).home()
    finally:
        await other.close()


async def test_changes_from_before_the_outbox_wait_in_it(tmp_path: Path) -> None:
    """A database without this migration gets a letter for each change that has effect."""
    path = tmp_path / "hone.db"
    [place] = [number for number, script in enumerate(MIGRATIONS) if "outbox" in script.name]
    before = MIGRATIONS[:place]
    database = Database.open(path, scripts=before)
    await database.close()
    with apsw.Connection(str(path)) as connection:
        columns = (
            "id, at, target, deed, standing, confirmed, cause, sources, actor, session, parent, tool, call"
        )
        rest = "reason, ground, quotes"
        for standing, number in (("active", 1), ("pending", 2), ("active", 3)):
            row = (number, 0, "memory", "add", standing, 0, "", "[]", "owner", *[""] * 5, 3, "[]")
            holes = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO changes ({columns}, {rest}) VALUES ({holes})", row)
        connection.execute(
            "INSERT INTO deltas VALUES (1, 0, 'MEMORY.md', NULL, 'a'), (2, 0, 'MEMORY.md', NULL, 'b')"
        )
    connection.close()
    database = Database.open(path)
    try:
        assert await ids(SqliteOutbox(database)) == [1]
    finally:
        await database.close()


acts = st.lists(
    st.tuples(st.sampled_from(["add", "wait", "deliver", "fail", "refuse", "move"]), st.integers(1, 6)),
    max_size=12,
)


async def compare(kinds: Sequence[Stores], acts: Sequence[tuple[str, int]]) -> None:
    for number, (act, which) in enumerate(acts):
        first, *others = [await done(each, act, which, number) for each in kinds]
        assert others == [first] * len(others)


@fewer(40)
@given(acts)
def test_sqlite_and_the_reference_agree_over_any_history(acts: list[tuple[str, int]]) -> None:
    async def story() -> None:
        with TemporaryDirectory() as folder:
            async with all_kinds(Path(folder)) as kinds:
                await compare(kinds, acts)

    asyncio.run(story())


async def done(stores: Stores, act: str, which: int, number: int) -> object:
    ledger, outbox, id = stores.ledger, stores.outbox, ChangeId(which)
    match act:
        case "add":
            held = (await ledger.held(MEMORY)).get("MEMORY.md")
            made: Change = change(held, B if held == A else A)
            await put(ledger, made)
        case "wait":
            await put(ledger, waits(None, A))
        case "deliver":
            await outbox.delivered(id)
        case "fail":
            await outbox.failed(id, f"down {number}")
        case "refuse":
            await outbox.failed(id, f"never {number}", final=True)
        case "move":
            await outbox.address(f"place {which}")
    return await outbox.letters(), await outbox.post()
