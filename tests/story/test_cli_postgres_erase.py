"""F5 on PostgreSQL: what is erased is in no row and in no file of a table, and chains stay sound."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from hone.models.fake_provider import FakeProvider
from tests import databases
from tests.cli.driving import environment, hone
from tests.story.test_cli_reviews import EAGER, learner

FACT = "Passport number Q4711-88"
OTHER = "The harbor master is Ines Quint."


@pytest.fixture
def database() -> Iterator[str]:
    with databases.new_database() as url:
        yield url


def holding(url: str, *words: str) -> list[str]:
    """The files of this database's tables and indexes that hold one of the words, once all is written."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        row = connection.execute("SELECT oid FROM pg_database WHERE datname = current_database()").fetchone()
        files = connection.execute(
            "SELECT relname::text, pg_relation_filepath(oid) FROM pg_class WHERE relkind IN ('r', 't', 'i')"
        ).fetchall()
    assert row
    data = Path(parse_qs(urlsplit(url).query)["host"][0]) / "data"
    known = {path: name for name, path in files if path}
    found = set()
    for path in (data / "base" / str(row[0])).iterdir():
        with suppress(FileNotFoundError):  # the server unlinks its caches and emptied files when it likes
            text = path.read_bytes()
            if any(word.encode() in text for word in words):
                found.add(str(known.get(str(path.relative_to(data)), path.name)))
    return sorted(found)


async def test_words_go_from_every_row_and_every_file_of_the_tables(home: Path, database: str) -> None:
    (home / "hone.toml").write_text(EAGER)
    async with FakeProvider(learner()) as stage:
        env = environment(home, stage) | {"HONE_DATABASE": database}
        ran = await hone("run", "--json", "-q", f"Note: {FACT}. {OTHER}", env=env)
        session = json.loads(ran.out)["session"]
        assert (await hone("memory", "add", FACT, env=env)).code == 0
        assert session in (await hone("sessions", "search", "passport", env=env)).out
        assert {"contents", "knowledge", "passages", "passages_words"} <= {
            *holding(database, "4711", "q4711")
        }
        listed = await hone("erase", "words", FACT, "--dry-run", env=env)
        assert "messages" in listed.out
        said = await hone("erase", "words", "passport  NUMBER q4711-88", "--yes", env=env)
        assert (said.code, said.err) == (0, "")
        assert "A search of every byte of this home and of all its rows finds nothing" in said.out
        assert holding(database, "Q4711", "q4711", "Passport", "passport") == []
        shown = await hone("sessions", "show", session, env=env)
        assert (OTHER in shown.out, "4711" in shown.out) == (True, False)
        assert session in (await hone("sessions", "search", "harbor", env=env)).out
        assert FACT not in (await hone("memory", "show", env=env)).out
        resumed = await hone("--resume", session, "run", "And now?", env=env)
        assert resumed.code == 0, "its chain is sound"
        assert "erased for good" in (await hone("log", env=env)).out


async def test_a_conversation_goes_as_a_whole_and_others_stay(home: Path, database: str) -> None:
    async with FakeProvider(learner()) as stage:
        env = environment(home, stage) | {"HONE_DATABASE": database}
        sessions = [
            json.loads((await hone("run", "--json", "-q", text, env=env)).out)["session"]
            for text in (f"{FACT}, which is in nothing else.", OTHER)
        ]
        erased = await hone("erase", "session", sessions[0], "--yes", env=env)
        assert (erased.code, erased.err) == (0, "")
        assert holding(database, "Q4711") == []
        [left] = json.loads((await hone("sessions", "list", "--json", env=env)).out)
        assert left["session"] == sessions[1]
