"""No false alarm: a healthy database is never called damaged, whatever was written and deleted in it."""

from contextlib import closing
from pathlib import Path
from random import Random

import apsw
import pytest

from hone.stores.damage import Damage
from hone.stores.database import Database
from hone.stores.examine import examine
from tests.conftest import Figures, Tier
from tests.stores.homes import Household


async def alarms(path: Path, random: Random) -> list[Damage]:
    """What is said of a home that was lived in, both where the story was written and by another process."""
    database = Database.open(path)
    try:
        await Household(database, random).live(random.randint(1, 40))
        found = await database.read(examine)
    finally:
        await database.close()
    with closing(apsw.Connection(str(path))) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return [*found, *examine(connection)]


@pytest.mark.timeout(3_600)
async def test_no_healthy_home_is_called_damaged(tmp_path: Path, tier: Tier, figures: Figures) -> None:
    tried, wrong = 0, {}
    for draw in tier.draws(short=12, full=2_000):
        path = tmp_path / f"{draw.index}.db"
        found = await alarms(path, draw.random)
        tried += 1
        if found:
            wrong[draw.index] = found
        for each in tmp_path.glob(f"{path.name}*"):
            each.unlink()
    figures.tally(tried, got_in=len(wrong), note=f"{len(wrong)} false alarms", at=wrong)
    assert not wrong
