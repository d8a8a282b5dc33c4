"""Every place that stores text is a holding: erase and backup forget no table, file or folder of a home."""

from fnmatch import fnmatchcase
from pathlib import Path

import apsw
import psycopg

from hone.app import Hone
from hone.core.holding import Holding
from hone.holdings import all_holdings
from hone.stores.database import Database
from tests import databases
from tests.contract.kinds import shared_pool
from tests.golden import unpack

HOME = Path(__file__).parents[1] / "fixtures" / "home-beec753.tar.gz"
SHADOWS = ("_data", "_idx", "_content", "_docsize", "_config")
"""Tables in which FTS5 keeps an index."""


def holdings(tmp_path: Path) -> tuple[Holding, ...]:
    return all_holdings(Hone(home=tmp_path / "home").parts("holdings"))


async def test_every_table_has_one_holding(tmp_path: Path) -> None:
    named = [table for each in holdings(tmp_path) for table in each.tables]
    await Database.open(tmp_path / "hone.db").close()
    rows = apsw.Connection(str(tmp_path / "hone.db")).execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table'"
    )
    found = [name for (name,) in rows if not name.startswith("sqlite_") and not name.endswith(SHADOWS)]
    assert sorted(named) == sorted(found)


async def test_every_table_of_a_postgres_database_has_one_holding(tmp_path: Path) -> None:
    known = [name for each in holdings(tmp_path) for name in (*each.tables, *each.elsewhere)]
    shared_pool()  # makes the schema
    with psycopg.connect(databases.shared()) as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'hone'").fetchall()
    found = {name for (name,) in rows} - {"migrations"}
    assert found - set(known) == set(), "text that nobody erases, backs up or moves"
    assert len(known) == len(set(known))
    only = {name for each in holdings(tmp_path) for name in each.elsewhere}
    assert only <= found


def test_every_name_in_a_home_has_one_holding(tmp_path: Path) -> None:
    unpack(HOME, tmp_path / "old")
    names = {f"{path.name}/" if path.is_dir() else path.name for path in (tmp_path / "old").iterdir()}
    assert len(names) > 5
    for name in names:
        holders = [
            each.name for each in holdings(tmp_path) if any(fnmatchcase(name, place) for place in each.places)
        ]
        assert len(holders) == 1, (name, holders)


def test_no_two_holdings_share_a_name(tmp_path: Path) -> None:
    names = [each.name for each in holdings(tmp_path)]
    assert len(names) == len(set(names))
