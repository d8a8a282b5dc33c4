"""L3: what tools and commands changed is taken back byte for byte; nothing of the user's is touched."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings

from hone.core.errors import Refused
from hone.stores.postgres.database import PostgresDatabase
from hone.stores.postgres.machine_rows import PostgresMachineRows
from tests.conftest import Figures
from tests.contract.kinds import new_owner, shared_pool
from tests.features.histories import Op, Oracle, do, histories, survey
from tests.features.world import World

IS_LONG = settings().max_examples > 100
COUNT = 500 if IS_LONG else 30
"""Histories, with git and as many without."""


async def live(world: World, oracle: Oracle, history: Sequence[Op]) -> int:
    """Live through a history; returns how many rewinds were compared."""
    try:
        return await _live(world, oracle, history)
    finally:
        await world.service.close()


async def _live(world: World, oracle: Oracle, history: Sequence[Op]) -> int:
    await world.say()
    compared = 0
    for op in history:
        before = survey(world.folder)
        match op.who:
            case "turn":
                await world.say()
            case "tool":
                with suppress(OSError):
                    await world.write(op.deeds[0].path, op.deeds[0].content)
                oracle.note(world.turn, before, survey(world.folder), command=False)
            case "command":
                await world.command(op.deeds)
                oracle.note(world.turn, before, survey(world.folder), command=True)
            case "user":
                for deed in op.deeds:
                    do(world.folder, deed)
            case "commit" if oracle.ignores:
                world.commit()
            case "rewind":
                turn = max(1, world.turn - op.back)
                expected = oracle.rewind(turn, before)
                assert await world.rewind(turn) == expected
                compared += 1
            case "redo":
                redone = oracle.redo(before)
                if redone is None:
                    with pytest.raises(Refused):
                        await world.redo()
                else:
                    assert await world.redo() == redone
                compared += 1
    assert not world.events, world.events
    return compared


def test_a_rewind_does_the_same_with_rows_in_postgresql(figures: Figures) -> None:
    tried: list[int] = []

    @settings(max_examples=max(4, COUNT // 20), deadline=None)
    @given(histories)
    def history(ops: list[Op]) -> None:
        with TemporaryDirectory() as name:
            world = World(
                Path(name).resolve(), rows=partial(PostgresMachineRows, new_database(), "a machine")
            )
            tried.append(asyncio.run(live(world, Oracle(ignores=False), [*ops, Op("rewind", back=99)])))

    history()
    figures.tally(len(tried), note=f"{sum(tried):,} rewinds compared, with PostgreSQL")


def new_database() -> PostgresDatabase:
    return PostgresDatabase(shared_pool(), new_owner())


@pytest.mark.parametrize("git", [False, True])
def test_a_rewind_takes_back_what_tools_did_and_nothing_else(git: bool, figures: Figures) -> None:
    tried: list[int] = []

    @settings(max_examples=COUNT)
    @given(histories)
    def history(ops: list[Op]) -> None:
        with TemporaryDirectory() as name:
            world = World(Path(name).resolve(), git=git)
            tried.append(asyncio.run(live(world, Oracle(ignores=git), [*ops, Op("rewind", back=99)])))

    history()
    figures.tally(len(tried), note=f"{sum(tried):,} rewinds compared, {'with' if git else 'without'} git")
