"""J2, E2: workers and servers on one PostgreSQL are killed, stopped and cut off, the database restarts, every
message is there, and every review is applied once. The fleet of `tests/faults/fleet` has real workers and
servers, a real database and a scripted model."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from random import Random

import httpx2
import pytest

from tests.faults.fleet.clients import Client, Record
from tests.faults.fleet.machines import OWNERS, Fleet, launch
from tests.faults.fleet.running import Plan, run
from tests.faults.fleet.trouble import Faults
from tests.faults.fleet.verdict import examine, find_violations
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
        found = await examine(fleet, Record())
    figures.tally(5, lost=5 - found["done"], got_in=found["twice"] + found["two at once"])
    assert [found[name] for name in ("reviews", "done", "once")] == [5, 5, 5], found
    assert (found["twice"], found["two at once"], found["tracebacks"]) == (0, 0, 0), found


async def test_the_conversation_of_a_server_that_hangs_goes_on_at_another_and_nothing_is_lost_or_twice(
    figures: Figures,
) -> None:
    async with launch() as fleet, httpx2.AsyncClient(timeout=60) as http:
        record = Record()
        client = Client(fleet, record, Random(1))
        hung, other = await fleet.serve("one"), await fleet.serve("two")
        fleet.provider.latency = 5.0  # the answer comes while nobody reads it
        await client.send(http, hung, "m1")
        await fleet.until_asked(1)
        hung.signal(signal.SIGSTOP)
        fleet.provider.latency = 0.0
        async with asyncio.timeout(60):
            await client.until_sent(http, other, "m2")  # the database waits for ten seconds
            assert record.busy > 0
            await client.until_answered(http, other)
            hung.signal(signal.SIGCONT)
            await client.until_sent(http, hung, "m3")  # its turn notices, and ends
            await client.until_answered(http, hung)
        await fleet.until_done(120)
        found = await examine(fleet, record)
    figures.tally(3, lost=found["messages lost"], got_in=found["messages twice"] + found["twice"])
    assert found["messages acknowledged"] == 3, found
    assert find_violations(found) == [], found


async def test_ten_minutes_of_trouble_leave_every_message_there_and_every_review_applied_once(
    tier: Tier, figures: Figures
) -> None:
    if not tier.long:
        pytest.skip("ten minutes belong to the long tier")
    found = await run(Plan(EVERYTHING, seed=tier.seed))
    figures(f"{found}")
    lost = found["reviews"] - found["done"] + found["not applied"] + found["messages lost"]
    twice = found["twice"] + found["two at once"] + found["messages twice"]
    figures.tally(found["reviews"] + found["messages acknowledged"], lost=lost, got_in=twice)
    assert find_violations(found) == [], found
