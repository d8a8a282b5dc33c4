"""J1, as a user meets it: `hone move` brings a home to PostgreSQL and back, and says what to do next."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hone.models.fake_provider import FakeProvider
from tests import databases
from tests.cli.driving import environment, hone
from tests.story.test_cli_reviews import EAGER, LEARNED, RULE, learner, profile


@pytest.fixture
def database() -> Iterator[str]:
    """A database of its own: all homes have the same owner so far."""
    with databases.new_database() as url:
        yield url


async def test_a_home_moves_continues_there_learns_there_and_comes_back_with_all_of_it(
    home: Path, database: str
) -> None:
    (home / "hone.toml").write_text(EAGER)
    async with FakeProvider(learner()) as stage:
        env = environment(home, stage)
        session = json.loads((await hone("run", "--json", "-q", RULE, env=env)).out)["session"]

        looked = await hone("move", "--to", database, "--dry-run", env=env)
        assert (looked.code, looked.err) == (0, "")
        assert "1 conversation with 2 messages" in looked.out
        assert "settings: each home has its own" in looked.out
        assert looked.out.endswith("Nothing was changed.\n")

        moved = await hone("move", "--to", database, env=env)
        assert (moved.code, moved.err) == (0, "")
        assert "Both ends hold the same rows: SHA-256 " in moved.out
        assert "Next: hone config set database postgresql://" in moved.out
        refused = await hone("run", "Are you there?", env=env)
        assert (refused.code, "moved to postgresql://" in refused.err) == (1, True), (
            "nothing is forked silently"
        )

        assert (await hone("config", "set", "database", database, env=env)).code == 0
        done = await hone("worker", "--once", env=env)
        assert done.out == f"review 1 of {session}: {LEARNED} · hone undo 1\n", "the queued review came along"
        resumed = await hone("--resume", session, "run", "And now?", env=env)
        assert (resumed.code, resumed.out) == (0, "Yes.\n")
        log = (await hone("log", "--json", env=env)).out

        back = await hone("move", "--to", "sqlite", "--yes", env=env)
        assert (back.code, "Removed database from" in back.out) == (0, True), back.err
        assert "database" not in (home / "hone.toml").read_text()
        assert (await hone("log", "--json", env=env)).out == log
        assert profile(home) == f"- {RULE}\n"
        [listed] = json.loads((await hone("sessions", "list", "--json", env=env)).out)
        assert (listed["session"], listed["messages"]) == (session, 4)
        found = await hone("sessions", "search", "now", env=env)
        assert (found.code, "And now?" in found.out) == (0, True), "it is searchable at once"
        assert (await hone("doctor", "--deep", env=env)).code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--to", "mysql://me:hunter2@here/x"], "Name a database such as postgresql://"),
        (["--to", "postgresql://me:hunter2@127.0.0.1:1/x"], "does not answer"),
        (["--to", "sqlite"], "in SQLite already"),
        (["--to", "postgresql://me:hunter2@127.0.0.1:1/x", "--dry-run"], "does not answer"),
    ],
    ids=["another database", "nobody there", "is there already", "a dry run to nobody"],
)
async def test_what_cannot_be_moved_is_refused_in_a_sentence(
    home: Path, arguments: list[str], said: str
) -> None:
    async with FakeProvider(learner()) as stage:
        env = environment(home, stage)
        await hone("run", "hi", env=env)
    ended = await hone("move", *arguments, env=env)
    assert (ended.code != 0, said in ended.err, "hunter2" in ended.err, "Traceback" in ended.err) == (
        True,
        True,
        False,
        False,
    )
    assert (await hone("sessions", "list", env=env)).code == 0, "the home is as before"


async def test_a_home_without_data_a_database_without_rights_and_one_in_use_are_told(
    home: Path, database: str
) -> None:
    env = environment(home)
    nothing = await hone("move", "--to", database, env=env)
    assert (nothing.code, "nothing to move" in nothing.err) == (1, True)
    async with FakeProvider(learner()) as stage:
        env = environment(home, stage)
        await hone("run", "hi", env=env)
        role = f"{database.rpartition('/')[2].partition('?')[0]}_guest"
        databases.execute(database, f"CREATE ROLE {role} LOGIN")
        try:
            guest = await hone("move", "--to", database.replace("postgres:@", f"{role}:@"), env=env)
        finally:
            databases.execute(database, f"DROP ROLE {role}")
        assert (guest.code, "may not work in" in guest.err, "GRANT CREATE" in guest.err) == (1, True, True)
        await hone("run", "hello", env=env | {"HONE_DATABASE": database})
        taken = await hone("move", "--to", database, env=env)
    assert (taken.code, "conversations or lessons already" in taken.err) == (1, True)
