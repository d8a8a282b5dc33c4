"""J1, C1: with a database elsewhere, journal and skills come from the ledger, the same on every machine."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from hone.app import Hone
from hone.core.ledger import MEMORY, USER, ChangeState
from hone.core.messages import ToolResult, assistant
from hone.core.skill import SkillOrigin
from hone.knowledge import journal
from hone.knowledge.journal import Add
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills.folder import Create, SetFiles
from hone.knowledge.skills.laid_out import LASTS, LaidOutSkills
from hone.models.scripted import Scripted, call, lines
from hone.settings import Settings
from hone.stores.postgres.database import Rows
from tests import databases
from tests.conftest import Figures, requires

TEA = "---\nname: tea\ndescription: How to make tea.\n---\n\nBoil water.\n"
TIDES = "---\nname: tides\ndescription: Read tide tables.\n---\n\nRun scripts/tides.sh.\n"
SCRIPT = b"#!/bin/sh\necho high tide\n"


@pytest.fixture
def database() -> Iterator[str]:
    """A database of its own: all homes have the same owner so far."""
    with databases.new_database() as url:
        yield url


def opened(home: Path, database: str, folder: Path, *replies: object) -> Hone:
    """A machine of its own: it has a home, and only the database is shared."""
    model = Scripted(lines(*(replies or ("Yes.",))))  # type: ignore[arg-type]
    return Hone(home=home, model=model, folder=folder, settings=Settings(database=database), learning="off")


async def prefix(hone: Hone) -> str:
    return (await hone.agent()).prefix.digest


async def test_any_machine_gives_the_same_prompt_whatever_lies_in_its_home(
    tmp_path: Path, database: str
) -> None:
    """Cold and warm, and after a change that was made on the other machine."""
    one, two, folder = tmp_path / "one", tmp_path / "two", tmp_path / "work"
    folder.mkdir()
    (two / "skills" / "lies").mkdir(parents=True)
    (two / "MEMORY.md").write_text("- Something that only this home says.\n")
    (two / "skills" / "lies" / "SKILL.md").write_text(TEA.replace("tea", "lies"))
    async with AsyncExitStack() as stack:
        here, there = [await stack.enter_async_context(opened(each, database, folder)) for each in (one, two)]
        seen = [await prefix(here)]
        assert await prefix(there) == seen[-1], "cold"
        for change in ("memory", "skill", "undo"):
            match change:
                case "memory":
                    await there.keeper.note([(MEMORY, Add("The build runs on Mondays."))], OWNER)
                case "skill":
                    await here.keeper.edit_skill("tea", Create(TEA, SkillOrigin.USER), OWNER)
                case _:
                    await there.keeper.undo(await there.ledger.latest())
            assert await prefix(here) == await prefix(there) != seen[-1], change
            seen.append(await prefix(here))
            assert await prefix(there) == seen[-1], "warm"
        fresh = await stack.enter_async_context(opened(tmp_path / "three", database, folder))
        assert await prefix(fresh) == seen[-1] == seen[1], "a machine that comes later"
    assert not (one / "MEMORY.md").exists()
    assert (two / "MEMORY.md").read_text() == "- Something that only this home says.\n"


async def test_changes_that_meet_on_two_machines_are_all_made(tmp_path: Path, database: str) -> None:
    """There is no lock that both share: one of two is always recorded, and the other made anew on top."""
    async with AsyncExitStack() as stack:
        homes = [
            await stack.enter_async_context(opened(tmp_path / name, database, tmp_path)) for name in "abc"
        ]

        async def work(hone: Hone, name: str) -> None:
            for number in range(8):
                await hone.keeper.note([(USER, Add(f"Note {name}{number} on a matter"))], OWNER)

        await asyncio.gather(*(work(hone, name) for hone, name in zip(homes, "abc", strict=True)))
        said = journal.entries(await homes[0].keeper.text(USER))
        assert sorted(said) == sorted(f"Note {n}{i} on a matter" for n in "abc" for i in range(8))
        made = await homes[1].ledger.entries()
        assert len(made) == 24
        assert all(each.change.standing is ChangeState.ACTIVE for each in made)


async def test_a_turn_takes_no_more_statements_with_many_skills(
    tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch, figures: Figures
) -> None:
    statements: list[str] = []
    execute = Rows.execute

    def counted(rows: Rows, query: str, **values: object) -> object:
        statements.append(query)
        return execute(rows, query, **values)

    monkeypatch.setattr(Rows, "execute", counted)
    counts: dict[int, list[int]] = {}
    async with opened(tmp_path / "home", database, tmp_path) as hone:
        for skills in (3, 160):
            for number in range(sum(name.startswith("way") for name in await names(hone)), skills):
                text = TEA.replace("name: tea", f"name: way-{number}").replace("tea", f"brew {number}")
                await hone.keeper.edit_skill(f"way-{number}", Create(text, SkillOrigin.USER), OWNER)
            session = await hone.session()
            await session.send("Tell me how the brewing of something works, please.")
            counts[skills] = []
            for _ in range(3):
                statements.clear()
                await session.send("And how do I brew another one?")
                counts[skills].append(len(statements))
                assert not any("SELECT name, archived FROM skills" in each for each in statements)
                assert not any("SELECT DISTINCT document" in each for each in statements)
    few, many = counts[3], counts[160]
    figures(f"statements of a turn on PostgreSQL: {few} with 3 skills, {many} with 160")
    assert len(set(many)) == 1
    # With more skills than fit the prompt, those that fit the words are looked up: once per word.
    assert many[0] <= few[0] + 12


async def names(hone: Hone) -> list[str]:
    return [each.name for each in await hone.library.listed()]


def test_what_is_laid_out_is_what_the_ledger_holds_whatever_lies_there(tmp_path: Path) -> None:
    files = {"SKILL.md": TIDES.encode(), "scripts/tides.sh": SCRIPT, "@origin": b"user"}
    laid = LaidOutSkills(tmp_path / "served")
    place = laid.lay_out("tides", files)
    script = place / "scripts" / "tides.sh"
    assert {str(each.relative_to(place)) for each in place.rglob("*") if each.is_file()} == {
        "SKILL.md",
        "scripts/tides.sh",
    }
    script.write_bytes(b"#!/bin/sh\necho evil\n")
    (place / "scripts" / "planted.sh").write_bytes(b"evil")
    assert laid.lay_out("tides", files) == place
    assert (script.read_bytes(), os.access(script, os.X_OK)) == (SCRIPT, True)
    assert not (place / "scripts" / "planted.sh").exists()
    newer = laid.lay_out("tides", {**files, "scripts/tides.sh": SCRIPT + b"echo low tide\n"})
    assert (newer != place, script.exists()) == (True, True), "a conversation may still use the old one"
    later = LaidOutSkills(tmp_path / "served", lambda: script.stat().st_mtime_ns + 2 * LASTS)
    assert later.lay_out("tides", {**files, "scripts/tides.sh": SCRIPT + b"echo low tide\n"}) == newer
    assert not place.exists()


@pytest.mark.rights
async def test_a_skills_script_runs_by_the_path_that_the_skill_names_and_cannot_be_changed(
    tmp_path: Path, database: str
) -> None:
    requires("bwrap")
    home, folder = tmp_path / "home", tmp_path / "work"
    folder.mkdir()
    files = {"SKILL.md": TIDES.encode(), "scripts/tides.sh": SCRIPT, "@origin": b"user"}
    place = LaidOutSkills(tmp_path / "elsewhere").lay_out("tides", files).relative_to(tmp_path / "elsewhere")
    script = home / "served" / "skills" / place / "scripts" / "tides.sh"
    replies = (
        assistant(call("skill_view", name="tides")),
        assistant(call("terminal", command=f"{script}; echo evil > {script}; ls {home}")),
        "done",
    )
    async with opened(home, database, folder, *replies) as hone:
        await hone.keeper.edit_skill("tides", SetFiles(files), OWNER)
        session = await hone.session()
        await session.send("When is high tide?")
        told, ran = [
            part.text
            for node in session.transcript.nodes
            for part in node.message.parts
            if isinstance(part, ToolResult)
        ]
    assert f"use its files in {script.parents[1]}/" in told
    assert ran.startswith("high tide\n")
    assert "Read-only file system" in ran
    assert script.read_bytes() == SCRIPT
