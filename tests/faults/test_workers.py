"""J2, E2: workers on one PostgreSQL are killed, stopped and cut off, the database restarts, and every review
is applied once. The fleet of `tests/faults/fleet.py` has real workers, a real server and a scripted model."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from random import Random

import pytest

from tests.faults.fleet import OWNERS, Faults, Fleet, launch, run
from tests.tier import Figures, Tier

EVERYTHING = 600.0
"""Seconds of trouble in the long tier."""


async def status(fleet: Fleet) -> str:
    """What `hone worker status` says on a machine without a worker."""
    home = fleet.folder / "home-bystander"
    home.mkdir(exist_ok=True)
    env = {"PATH": os.environ["PATH"], "HONE_HOME": str(home), "HONE_DATABASE": fleet.url}
    command = (sys.executable, "-m", "hone", "worker", "status")
    process = await asyncio.create_subprocess_exec(*command, env=env, stdout=PIPE)
    return (await process.communicate())[0].decode()


async def test_a_worker_that_is_killed_and_a_database_that_restarts_cost_nothing(figures: Figures) -> None:
    async with launch() as fleet:
        faults = Faults(fleet, Random(1))
        for name in ("one", "two"):
            await fleet.hire(name)
        for number in range(4):
            await fleet.queue(OWNERS[number % 2], f"s{number}")
        await fleet.until_begun(2)
        assert "Worker on " in await status(fleet)
        await faults.kill("one")
        await fleet.restart_database("immediate")
        await fleet.queue(OWNERS[0], "last")
        await fleet.until_done(120)
        found = await fleet.verdict()
    counts = [found[name] for name in ("reviews", "done", "once", "changes")]
    figures.tally(5, lost=5 - found["done"], got_in=found["twice"] + found["two at once"])
    assert counts == [5, 5, 5, 5], found
    assert (found["twice"], found["two at once"], found["tracebacks"]) == (0, 0, 0), found


async def test_ten_minutes_of_trouble_leave_every_review_applied_once(tier: Tier, figures: Figures) -> None:
    if not tier.long:
        pytest.skip("ten minutes belong to the long tier")
    found = await run(EVERYTHING, workers=4, rate=1.5, seed=tier.seed, stop=40.0)
    figures(f"{found}")
    figures.tally(found["reviews"], lost=found["reviews"] - found["once"], got_in=found["two at once"])
    assert found["done"] == found["once"] == found["changes"] == found["reviews"], found
    assert (found["twice"], found["two at once"], found["tracebacks"]) == (0, 0, 0), found
