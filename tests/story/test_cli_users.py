"""J3: an administrator manages users with commands, and sees numbers and events."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import databases
from tests.cli.driving import environment, hone


@pytest.fixture
def database() -> Iterator[str]:
    with databases.new_database() as url:
        yield url


async def test_one_home_is_one_person_and_says_how_a_team_is_set_up(home: Path) -> None:
    refused = await hone("users", "add", "alice", env=environment(home))
    assert (refused.code, refused.out) == (1, "")
    assert "docs/deploy.md" in refused.err
    assert "hone move --to postgresql://" in refused.err


async def test_an_administrator_adds_limits_disables_and_erases_a_user(home: Path, database: str) -> None:
    env = environment(home) | {"HONE_DATABASE": database}
    added = await hone("users", "add", "alice", "--cost-per-day", "5", env=env)
    key = added.out.strip()
    assert added.code == 0, added.err
    assert key.startswith("hone-user-")
    assert "alice" in (await hone("users", "add", "alice", env=env)).err
    for name in ("local", "team", "Alice", "../x"):
        assert (await hone("users", "add", name, env=env)).code == 1
    listed = await hone("users", "list", env=env)
    assert "$5/day" in listed.out
    [row] = json.loads((await hone("users", "usage", "--json", env=env)).out)
    assert (row["user"], row["requests"], row["cost"]) == ("alice", 0, 0.0)
    early = await hone("users", "erase", "alice", "--yes", env=env)
    assert (early.code, "hone users disable alice" in early.err) == (1, True)
    assert (await hone("users", "disable", "alice", env=env)).code == 0
    assert (await hone("users", "erase", "alice", "--yes", env=env)).code == 0
    audit = json.loads((await hone("users", "audit", "--json", env=env)).out)
    events = [each["event"] for each in audit][::-1]
    assert events == ["user added", "key made", "user disabled", "user erased"]
    assert key not in json.dumps(audit)
