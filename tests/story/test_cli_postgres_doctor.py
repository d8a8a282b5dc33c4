"""J1: hone doctor on PostgreSQL finds nothing where all is well, and each thing that is not."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from hone.models.fake_provider import FakeProvider
from hone.stores.postgres.examine import advise, examine_database
from tests import databases
from tests.cli.driving import environment, hone
from tests.story.test_cli_reviews import EAGER, RULE, learner
from tests.tier import Tier

DAMAGE = {
    "UPDATE contents SET body = body || ' '": "A row of contents is not what was written",
    "UPDATE nodes SET content = 'x' WHERE depth = 2": "is not where it was written",
    "UPDATE sessions SET hash = 'x'": "is not what was written",
    "UPDATE holdings SET digest = 'x'": "What a change wrote is gone",
    "DELETE FROM holdings": "holds something else",
    "UPDATE owners SET changes = 0": "A number of changes could be given twice",
    "UPDATE changes SET quotes = '{'": "Changes cannot be read completely",
    "UPDATE spending SET input = -1": "What was spent",
    "UPDATE passages SET words = 'x:1'": "Search does not find everything",
}


@pytest.fixture
def database() -> Iterator[str]:
    with databases.new_database() as url:
        yield url


def change(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET search_path = hone")
        connection.execute(statement)


async def test_what_is_damaged_is_named_with_what_to_do_and_what_is_sound_is_not(
    home: Path, database: str, tier: Tier
) -> None:
    (home / "hone.toml").write_text(EAGER)
    async with FakeProvider(learner()) as stage:
        env = environment(home, stage) | {"HONE_DATABASE": database}
        await hone("run", "-q", RULE, env=env)
        await hone("worker", "--once", env=env)
        await hone("sessions", "search", "anything", env=env)
        change(database, "CREATE EXTENSION amcheck SCHEMA public")
        sound = await hone("doctor", "--deep", env=env)
        assert (sound.code, sound.err, "✗" in sound.out) == (0, "", False), sound.out
        assert "row security is in force for hone_app" in sound.out
        assert "every message, change and row is what was written" in sound.out
    name = urlsplit(database).path.lstrip("/")
    for draw in tier.draws(short=3, full=len(DAMAGE)):
        statement, finding = [*DAMAGE.items()][draw.index]
        with copied(name) as copy:
            change(copy, statement)
            found = await examine_database(copy)
            assert any(finding in str(each) for each in found), (statement, found)
            assert ("DELETE FROM" if "Search" in finding else "hone restore") in advise(found)


@contextmanager
def copied(name: str) -> Iterator[str]:
    """A copy of a database that nobody uses."""
    server, copy = databases.shared(), f"{name}_copy"
    change(server, f"CREATE DATABASE {copy} TEMPLATE {name}")
    yield server.replace("/postgres?", f"/{copy}?")
    change(server, f"DROP DATABASE {copy} WITH (FORCE)")


async def test_repair_is_for_files_and_says_so(home: Path, database: str) -> None:
    ended = await hone("doctor", "--repair", env=environment(home) | {"HONE_DATABASE": database})
    assert (ended.code, "hone doctor --deep" in ended.err) == (1, True)
