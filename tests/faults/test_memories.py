"""G1, E2: what a memory backend has acknowledged survives a kill, and so does what it was yet to be told."""

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from hone.core.clock import SystemClock
from hone.features.backends.postgres import PostgresBackend
from tests import databases
from tests.backing import closing, emptied, honcho
from tests.conftest import Figures, Tier
from tests.doubles.honcho import HonchoDouble
from tests.faults.memory_worker import VALUE

postgres = databases.postgres
WORKER = [sys.executable, "-m", "tests.faults.memory_worker"]


async def killed(arguments: list[str], after: int) -> list[str]:
    """What a process had said when it was killed, some lines after it began to speak."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*WORKER, *arguments, stdout=pipe)
    assert process.stdout is not None
    said: list[str] = []
    while len(said) < after and (line := await process.stdout.readline()):
        said.append(line.decode().strip())
    if process.returncode is None:
        process.kill()
    rest = await process.stdout.read()
    await process.wait()
    return said + rest.decode().split("\n")[:-1]


@pytest.mark.parametrize("kind", ["postgres", "honcho"])
async def test_every_memo_that_was_acknowledged_before_a_kill_is_there_and_whole(
    kind: str, tmp_path: Path, tier: Tier, figures: Figures, request: pytest.FixtureRequest
) -> None:
    kills, random = tier.size(short=2, full=100), tier.random()
    acknowledged = lost = 0
    async with AsyncExitStack() as stack:
        match kind:
            case "honcho":
                double = await stack.enter_async_context(HonchoDouble())
                place, backend = double.url, await stack.enter_async_context(closing(honcho(double)))
            case _:
                place = request.getfixturevalue("postgres")
                await emptied(place)
                made = PostgresBackend(place, SystemClock(), is_cloud=False)
                backend = await stack.enter_async_context(closing(made))
        for _ in range(kills):
            for key in await killed([kind, place], random.randint(1, 12)):
                acknowledged += 1
                memo = await backend.retrieve("ann", key)
                lost += memo is None or memo.value != VALUE.format(key)
                lost += key not in [each.key for each in await backend.query("ann", key)]
        keys = list(await backend.list_keys("ann", 10_000))
        assert len(keys) == len(set(keys))
    figures(f"kill -9 during store, {kind}: {kills} kills, {acknowledged} acknowledged, {lost} lost")
    assert lost == 0
    assert acknowledged >= kills
