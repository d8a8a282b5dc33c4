"""G1, G3: `hone backends` as a user sees it, and the service that is found by its key."""

import asyncio
import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from hone import Hone
from hone.core.ledger import USER
from hone.features.backends.part import MemoryPart
from hone.knowledge import journal
from hone.knowledge.keeper import OWNER
from hone.models.scripted import Scripted, rounds
from hone.settings import Settings
from hone.settings.sections import Memory
from tests import databases
from tests.doubles.honcho import KEY, HonchoDouble

postgres = databases.postgres


async def hone(*arguments: str) -> tuple[str, str]:
    command = [sys.executable, "-m", "hone", "backends", *arguments]
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


async def test_without_a_setting_nothing_is_kept_and_nobody_is_called(home: Path) -> None:
    listed, _ = await hone("list", "--json")
    rows = {row["name"]: row for row in json.loads(listed)}
    assert list(rows) == ["null", "sqlite", "postgres", "honcho"]
    assert [name for name, row in rows.items() if row["used"]] == ["null"]
    assert [row["available"] for row in rows.values()] == [True, True, False, False]
    assert "memory.url" in rows["postgres"]["why_not"]
    assert "HONCHO_API_KEY" in rows["honcho"]["why_not"]
    told, _ = await hone("info")
    assert told.startswith("backend: null (nothing is set)\n")
    assert not (home / "memories.db").exists()


async def test_what_is_set_is_told_with_what_waits(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Hone(home=home, model=Scripted(rounds("Yes."))) as agent:
        await agent.library.keeper.note([(USER, journal.Add("I like tea."))], OWNER)
    monkeypatch.setenv("HONE_MEMORY_BACKEND", "sqlite")
    told, _ = await hone("info", "--json")
    found = json.loads(told)
    assert (found["backend"], found["because"], found["waiting"]) == ("sqlite", "it is set", 1)
    plain, _ = await hone("info")
    assert "1 wait, 0 were refused" in plain


async def test_the_owner_sees_and_takes_away_what_is_stored(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HONE_MEMORY_BACKEND", "sqlite")
    async with Hone(home=home, model=Scripted(rounds("Yes."))) as agent:
        backing = agent.part(MemoryPart).backing
        await backing.make("sqlite").store(backing.user_id, "deploy/host", "heron", {"trust": "agent"})
    assert await hone("keys") == ("deploy/host\n", "")
    told, _ = await hone("show", "deploy/host")
    assert told.startswith("heron\n\nstored: ")
    assert "trust: agent" in told
    assert await hone("rm", "deploy/host") == ("Deleted: 'deploy/host'.\nTo bring it back: hone undo 2\n", "")
    assert await hone("keys") == ("", "")
    async with Hone(home=home, model=Scripted(rounds("Yes."))) as agent:
        await agent.keeper.undo((await agent.ledger.entries())[0].id)
        await agent.part(MemoryPart).worker.drain()
    again, _ = await hone("show", "deploy/host")
    assert again.startswith("heron\n\nstored: ")
    assert "trust: agent" in again


async def test_all_that_answer_are_measured_scored_and_drawn_and_the_local_one_is_recommended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, postgres: str
) -> None:
    """The double is on this machine; it is far from it as far as its address tells."""
    drawn = tmp_path / "scores.svg"
    async with HonchoDouble() as double:
        monkeypatch.setenv("HONCHO_API_KEY", KEY)
        monkeypatch.setenv("HONCHO_URL", double.url)
        monkeypatch.setenv("HONE_MEMORY_BACKEND", "postgres")
        monkeypatch.setenv("HONE_MEMORY_URL", postgres)
        told, _ = await hone("evaluate", "--json", "--svg", str(drawn))
    found = json.loads(told)
    rows = {row["name"]: row for row in found["backends"]}
    assert rows["null"]["label"] is None
    assert found["recommended"] != "null"
    for name in ("sqlite", "postgres", "honcho"):
        assert rows[name]["points"]["function"] == 40, name
        assert rows[name]["survives_kill"], name
        assert rows[name]["recall"] >= 0.75
        assert set(rows[name]["milliseconds"]["query"]) == {"p50", "p95"}
    assert rows["honcho"]["calls"]["retrieve"] == 1
    assert rows["sqlite"]["calls"]["query"] == 0
    assert "honcho" in [each.text for each in ET.parse(drawn).iter("{http://www.w3.org/2000/svg}text")]


async def test_a_key_in_the_environment_brings_honcho_in_once_told_and_a_setting_keeps_it_out(
    monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    async with HonchoDouble() as double:
        monkeypatch.setenv("HONCHO_API_KEY", KEY)
        monkeypatch.setenv("HONCHO_URL", double.url)
        async with Hone(home=home, model=Scripted(rounds("Yes."))) as agent:
            for _ in range(2):
                session = await agent.session()
            assert "memory_backend" in session.agent.toolbox
            [said] = [each for each in agent.notices if "Honcho" in each]
            assert "HONCHO_API_KEY is set" in said
        asked = len(double.seen)
        for name in ("null", "sqlite"):
            settings = Settings(memory=Memory(backend=name))
            async with Hone(home=home, settings=settings, model=Scripted(rounds("Yes."))) as agent:
                await agent.session()
                choice = agent.part(MemoryPart).backing.choice
                assert choice is not None
                assert choice.name == name
                assert agent.notices == []
        assert len(double.seen) == asked
        double.key = "another"
        async with Hone(home=home, model=Scripted(rounds("Yes."))) as agent:
            assert "memory_backend" not in (await agent.session()).agent.toolbox


async def test_a_password_in_an_address_is_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HONE_MEMORY_BACKEND", "postgres")
    monkeypatch.setenv("HONE_MEMORY_URL", "postgresql://me:hunter2@127.0.0.1:1/db")
    out, error = await hone("list")
    assert "127.0.0.1" in out
    assert "hunter2" not in out + error
    command = [sys.executable, "-m", "hone", "config"]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60)
    assert "hunter2" not in done.stdout + done.stderr
    assert "postgresql://me:" in done.stdout
