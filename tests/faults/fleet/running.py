"""Run a fleet for some time, with clients, reviews that become due, and trouble."""

import asyncio
import os
import time
from random import Random
from typing import Any

from msgspec import Struct

from tests.faults.fleet.clients import Client, Record
from tests.faults.fleet.machines import OWNERS, Fleet, launch
from tests.faults.fleet.trouble import Faults
from tests.faults.fleet.verdict import examine, summarize

SETTLE = 240.0
"""Seconds until the last review must be done."""


class Plan(Struct, frozen=True):
    """`rate` is of reviews that become due without a server, a second; `stop` are the seconds that a process
    is stopped. Clients pause for `pause` seconds between two messages."""

    seconds: float = 60.0
    workers: int = 4
    servers: int = 3
    rate: float = 1.5
    stop: float = 40.0
    seed: int = 1
    clients: int = 6
    pause: float = 1.0


async def run(plan: Plan) -> dict[str, Any]:
    async with launch() as fleet:
        record = Record()
        faults = Faults(fleet, Random(plan.seed), record.talks)
        for number in range(plan.workers):
            await fleet.hire(str(number))
        for number in range(plan.servers):
            await fleet.serve(f"server{number}")
        ended = await _trouble(plan, fleet, record, faults)
        await fleet.until_done(SETTLE)
        return {
            "load of the machine": os.getloadavg()[1],
            **await examine(fleet, record),
            "ended by themselves": ended,
            "faults": dict(faults.counts),
            "takeovers": {
                "review": summarize(faults.takeovers),
                **{kind: summarize(record.find_takeovers(kind)) for kind in ("killed", "stopped")},
            },
        }


async def _trouble(plan: Plan, fleet: Fleet, record: Record, faults: Faults) -> int:
    """Return how many processes ended though nobody killed them. The last stops end before it returns."""
    end, ended = time.monotonic() + plan.seconds, 0
    async with asyncio.TaskGroup() as group:
        group.create_task(_feed(plan, fleet, end))
        for number in range(plan.clients if plan.servers else 0):
            client = Client(fleet, record, Random(f"{plan.seed} {number}"))
            group.create_task(client.run(end, plan.pause))
        await asyncio.sleep(4)
        while time.monotonic() < end:
            await faults.strike(stop=plan.stop)
            ended += await fleet.mend()
            await asyncio.sleep(faults.random.uniform(0.5, 3))
        await asyncio.gather(*faults.stops)
    return ended


async def _feed(plan: Plan, fleet: Fleet, end: float) -> None:
    number = 0
    while plan.rate and time.monotonic() < end:
        number += 1
        await fleet.queue(OWNERS[number % len(OWNERS)], f"s{number}")
        await asyncio.sleep(1 / plan.rate)
