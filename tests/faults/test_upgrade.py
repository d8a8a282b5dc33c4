"""J3: servers and workers are replaced one by one, by newer code and by older, while people talk."""

import asyncio
from pathlib import Path

import pytest

from tests import databases
from tests.faults.upgrade import OLD, PATIENCE, Load, export, owned, prepare, roll
from tests.tier import Figures, Tier


async def test_a_rolling_upgrade_and_the_way_back_cost_no_client_anything(
    tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    code = export(OLD, tmp_path / "old")
    if code is None:
        pytest.skip(f"this checkout does not have the commit {OLD}")
    turns = tier.size(short=15, full=1_000)

    async def stage(load: Load) -> None:
        """Until so many turns were answered, by each of the servers some."""
        end = load.turns + turns
        async with asyncio.timeout(PATIENCE + turns):
            while load.turns < end:  # noqa: ASYNC110  clients are many
                await asyncio.sleep(0.02)

    async with owned(databases.shared()) as url, prepare(tmp_path, url, code, tier.seed) as rollout:
        found = await roll(rollout, stage, slots=("a", "b"), workers=("c",), clients=6)
    figures(f"{found}")
    figures.tally(found["turns"], lost=found["errors"] + found["not as acknowledged"], got_in=found["twice"])
    zero = ("errors", "refused", "not as acknowledged", "twice", "interrupted", "tracebacks")
    assert {name: found[name] for name in zero} == dict.fromkeys(zero, 0), found
    assert found["done"] == found["reviews"] > 0, found
    assert min(found["answered"].values()) >= turns, found
    assert set(found["exit codes"]) == {0}, found
