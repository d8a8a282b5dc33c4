"""J1, L3: checkpoints in PostgreSQL belong to a machine: no rewind touches a file of another one."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from hone.core.errors import Refused
from hone.core.messages import digest
from hone.features.checkpoints import pruning
from hone.stores.postgres.database import PostgresDatabase
from hone.stores.postgres.machine_rows import PostgresMachineRows, translate
from tests.contract.kinds import new_owner, shared_pool
from tests.features.histories import Deed
from tests.features.world import World


@pytest.fixture
def worlds(tmp_path: Path) -> Iterator["Worlds"]:
    made = Worlds(tmp_path)
    yield made
    asyncio.run(made.close())


class Worlds:
    """Machines with a folder each, on one database."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.opened: list[World] = []

    def open(self, owner: str, machine: str) -> World:
        root = self._root / machine
        root.mkdir()
        database = PostgresDatabase(shared_pool(), owner)
        self.opened.append(World(root.resolve(), rows=partial(PostgresMachineRows, database, machine)))
        return self.opened[-1]

    async def close(self) -> None:
        for each in self.opened:
            await each.service.close()


async def change(world: World) -> None:
    await world.say()
    (world.folder / "a").write_bytes(b"one")
    await world.write("a", b"two")
    await world.command([Deed("write", "b", content=b"made")])


async def test_a_turn_is_taken_back_on_its_own_machine_only(worlds: Worlds) -> None:
    owner = new_owner()
    one, other = worlds.open(owner, "one"), worlds.open(owner, "other")
    await change(one)
    other.sessions, other.header = one.sessions, one.header
    elsewhere = other.reopen()
    assert await elsewhere.history.turns(one.header.id) == []
    assert (await elsewhere.history.plan(one.header.id, 1)).steps == ()
    with pytest.raises(Refused, match="no rewind"):
        await elsewhere.history.plan_redo(one.header.id)
    assert await elsewhere.store.latest() == 0
    assert (await one.rewind(1)).keys() == {"a"}
    assert (one.folder / "a").read_bytes() == b"one"
    assert (await one.redo())["b"][2] == b"made"
    assert not (one.home / "checkpoints" / "checkpoints.db").exists()


async def test_other_owners_on_a_machine_of_that_name_see_nothing(worlds: Worlds) -> None:
    one = worlds.open(new_owner(), "one")
    await change(one)
    stranger = PostgresMachineRows(PostgresDatabase(shared_pool(), new_owner()), "one", everywhere=True)
    assert await stranger.write(pruning.examine) == (0, 0, 0)
    await stranger.write(lambda rows: rows.execute("DELETE FROM changes"))
    assert len(await one.service.store.changes(one.header.id)) == 2


async def test_what_is_old_goes_also_where_a_machine_is_gone(worlds: Worlds) -> None:
    owner = new_owner()
    gone, here = worlds.open(owner, "gone"), worlds.open(owner, "here")
    await change(gone)
    here.clock.advance(timedelta(days=29).total_seconds())
    await here.service.prune()
    assert len(await gone.service.store.changes(gone.header.id)) == 2
    here.clock.advance(timedelta(days=2).total_seconds())
    await here.service.prune()
    assert await gone.service.store.run(pruning.examine) == (0, 0, 0)


async def test_a_content_is_what_was_stored_and_is_kept_once(worlds: Worlds) -> None:
    world = worlds.open(new_owner(), "one")
    for _ in range(2):
        await change(world)
    store = world.service.store
    assert await store.content(digest(b"one")) == b"one"
    count, size, damaged = await store.run(pruning.examine)
    assert (count, size > 0, damaged) == (3, True, 0)
    assert await world.service.forget(world.header.id) == count
    assert await store.run(pruning.examine) == (0, 0, 0)


def test_statements_name_views_and_values() -> None:
    made = translate("UPDATE changes SET lost = ? WHERE id = ? AND digest IN (SELECT digest FROM blobs)")
    assert made == (
        "UPDATE own_changes SET lost = %(v0)s WHERE id = %(v1)s AND digest IN (SELECT digest FROM own_blobs)"
    )
