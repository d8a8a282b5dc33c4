"""J1, as a user meets it: a home whose database is PostgreSQL talks, learns, searches, shows and undoes."""

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


async def test_a_conversation_is_kept_continued_reviewed_and_what_was_learned_is_undone(
    home: Path, database: str
) -> None:
    (home / "hone.toml").write_text(EAGER)
    async with FakeProvider(learner()) as stage:
        env = environment(home, stage) | {"HONE_DATABASE": database}
        ran = await hone("run", "--json", "-q", RULE, env=env)
        session = json.loads(ran.out)["session"]
        assert not (home / "hone.db").exists()
        [listed] = json.loads((await hone("sessions", "list", "--json", env=env)).out)
        assert (listed["session"], listed["messages"]) == (session, 2)
        done = await hone("worker", "--once", env=env)
        assert (done.code, done.err) == (0, "")
        assert done.out == f"review 1 of {session}: {LEARNED} · hone undo 1\n"
        assert (RULE in (await hone("memory", "show", env=env)).out, profile(home)) == (True, "")
        resumed = await hone("--resume", session, "run", "And now?", env=env)
        assert (resumed.code, resumed.out) == (0, "Yes.\n")
        assert RULE in json.dumps(json.loads(stage.bodies[-1])["messages"])
        fresh = await hone("run", "A new one.", env=env)
        assert (fresh.code, RULE in stage.bodies[-1].decode()) == (0, True), "the next prompt knows it"
        assert RULE in (await hone("log", env=env)).out
        assert "undone by change 2" in (await hone("undo", "1", env=env)).out
        assert RULE not in (await hone("memory", "show", env=env)).out
        found = await hone("sessions", "search", *RULE.split()[:2], env=env)
        assert (found.code, session in found.out) == (0, True), "search finds it"
        shown = await hone("sessions", "show", session, env=env)
        assert (shown.code, shown.out.count("Yes.")) == (0, 2)
        for command in (["sessions", "delete", "--yes", session], ["skills", "list"], ["curator", "status"]):
            ended = await hone(*command, env=env)
            assert ended.code == 0, ended.err
        assert (await hone("doctor", env=env)).out.count("sessions: ") == 1
        deep = await hone("doctor", "--deep", env=env)
        assert (deep.code, "✗" in deep.out, deep.err) == (0, False, "")
        assert len(json.loads((await hone("sessions", "list", "--json", env=env)).out)) == 1


async def test_two_homes_on_one_database_know_the_same_and_read_no_file_of_a_home(
    home: Path, database: str, tmp_path: Path
) -> None:
    """What lies in one of the homes is not read: hone push brings it in."""
    other, tea = tmp_path / "other", tmp_path / "tea.md"
    tea.write_text("---\nname: tea\ndescription: How to make tea.\n---\n\nBoil water.\n")
    envs = [environment(each) | {"HONE_DATABASE": database, "HONE_HOME": str(each)} for each in (home, other)]
    mine, theirs = envs
    made = await hone("skills", "new", "tea", "--from", str(tea), env=mine)
    assert (made.code, made.out) == (0, "tea is written (change 1): in the database\n")
    (other / "skills" / "tea").mkdir(parents=True)
    (other / "skills" / "tea" / "SKILL.md").write_text(tea.read_text().replace("Boil", "Spill"))
    for env in envs:
        assert "Boil water." in (await hone("skills", "show", "tea", env=env)).out
        checked = await hone("skills", "check", env=env)
        assert (checked.code, checked.out) == (0, "1 skill is fine.\n")
    editor = tmp_path / "editor.sh"
    editor.write_text("#!/bin/sh\nsed -i s/Boil/Pour/ $1\n")
    editor.chmod(0o700)
    edited = await hone("skills", "edit", "tea", env=theirs | {"EDITOR": str(editor)})
    assert (edited.code, edited.out) == (0, "tea: your edit is change 2. Undo it with: hone undo 2\n")
    assert "Pour water." in (await hone("skills", "show", "tea", env=mine)).out
    assert not (home / "skills").exists()


async def test_an_address_that_is_none_and_a_server_that_is_away_are_told_without_the_password(
    home: Path,
) -> None:
    env = environment(home)
    wrong = await hone("sessions", "list", env=env | {"HONE_DATABASE": "mysql://me:hunter2@here/x"})
    assert (wrong.code, "database must be an address such as postgresql://" in wrong.err) == (2, True)
    gone = "postgresql://me:hunter2@127.0.0.1:1/x"
    away = await hone("sessions", "list", env=env | {"HONE_DATABASE": gone})
    assert (away.code, "does not answer" in away.err, "hunter2" in away.err + wrong.err) == (1, True, False)
    for command in (["config"], ["config", "get", "database"]):
        shown = await hone(*command, env=env | {"HONE_DATABASE": gone})
        assert ("hunter2" in shown.out, "127.0.0.1" in shown.out) == (False, True), command


async def test_a_run_on_sqlite_loads_nothing_of_postgresql(home: Path) -> None:
    async with FakeProvider(learner()) as stage:
        env = environment(home, stage) | {"PYTHONPROFILEIMPORTTIME": "1"}
        ran = await hone("run", "hi", env=env)
    assert (ran.out, "psycopg" in ran.err, "hone.stores.sqlite" in ran.err) == ("Yes.\n", False, True)
