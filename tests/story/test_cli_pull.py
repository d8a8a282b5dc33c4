"""J1, C1: with a database elsewhere, a person edits journal and skills as files on any machine."""

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import pytest

from hone.cli.main import perform
from tests import databases
from tests.cli.driving import Ended, environment

TEA = "---\nname: tea\ndescription: How to make tea.\n---\n\nBoil water.\n\nSteep for 3 minutes.\n"


@pytest.fixture
def database() -> Iterator[str]:
    """A database of its own: all homes have the same owner so far."""
    with databases.new_database() as url:
        yield url


async def hone(*arguments: str, env: Mapping[str, str]) -> Ended:
    """Run a command in this process: a start of the interpreter for each would take most of the time."""

    def run() -> Ended:
        out, err = StringIO(), StringIO()
        with patch.dict(os.environ, env, clear=True), redirect_stdout(out), redirect_stderr(err):
            code = perform(arguments)
        return Ended(code, out.getvalue(), err.getvalue())

    return await asyncio.to_thread(run)


def machine(home: Path, database: str) -> dict[str, str]:
    return environment(home) | {"HONE_DATABASE": database, "HONE_HOME": str(home)}


async def known(env: Mapping[str, str], *words: str) -> str:
    return (await hone("memory", "show", *words, env=env)).out


async def test_what_is_edited_on_one_machine_and_learned_on_another_is_merged(
    home: Path, database: str, tmp_path: Path
) -> None:
    env, other = machine(home, database), machine(tmp_path / "other", database)
    checkout, skill = tmp_path / "files", tmp_path / "tea.md"
    skill.write_text(TEA)
    for words in (["Tea is at four.", "--to", "memory"], ["Speaks German.", "--to", "user"]):
        assert (await hone("memory", "add", *words, env=env)).code == 0
    assert (await hone("skills", "new", "tea", "--from", str(skill), env=env)).code == 0

    looked = await hone("pull", str(checkout), "--dry-run", env=env)
    assert (looked.code, "Would change 3 files" in looked.out, checkout.exists()) == (0, True, False)
    pulled = await hone("pull", str(checkout), env=env)
    assert (pulled.code, pulled.err) == (0, "")
    assert "Changed 3 files in" in pulled.out
    memory, document = checkout / "MEMORY.md", checkout / "skills" / "tea" / "SKILL.md"
    assert (memory.read_text(), document.read_text()) == ("- Tea is at four.\n", TEA)
    again = await hone("pull", str(checkout), env=env)
    assert (again.code, again.out) == (0, f"{checkout} is up to date (change 3).\n")

    # Edited here, learned there.
    memory.write_text(memory.read_text() + "- The kettle is blue.\n")
    document.write_text(TEA.replace("Boil water.", "Boil fresh water."))
    (document.parent / "references").mkdir()
    (document.parent / "references" / "leaves.md").write_text("Loose ones.\n")
    await hone("memory", "add", "The cups are white.", env=other)
    text = TEA.replace("3 minutes", "4 minutes")
    editor = tmp_path / "editor.sh"
    editor.write_text(f"#!/bin/sh\ncat > $1 <<'END'\n{text}END\n")
    editor.chmod(0o700)
    assert (await hone("skills", "edit", "tea", env=other | {"EDITOR": str(editor)})).code == 0

    before = {path: path.read_bytes() for path in checkout.rglob("*") if path.is_file()}
    tried = json.loads((await hone("push", str(checkout), "--dry-run", "--json", env=env)).out)
    assert [each["file"] for each in tried["files"]] == [
        "MEMORY.md",
        "skills/tea/SKILL.md",
        "skills/tea/references/leaves.md",
    ]
    assert {path: path.read_bytes() for path in checkout.rglob("*") if path.is_file()} == before
    assert "The kettle" not in await known(env)

    pushed = await hone("push", str(checkout), env=env)
    assert (pushed.code, pushed.err) == (0, "")
    assert "MEMORY.md: recorded as change 6" in pushed.out
    shown = await known(other)
    assert all(each in shown for each in ("Tea is at four.", "The kettle is blue.", "The cups are white."))
    merged = (await hone("skills", "show", "tea", "--file", "SKILL.md", env=other)).out
    assert ("Boil fresh water." in merged, "4 minutes" in merged) == (True, True)
    assert "The cups are white." in memory.read_text(), "the checkout has what was merged"
    assert (await hone("push", str(checkout), env=env)).out == f"There is nothing to push from {checkout}.\n"
    log = json.loads((await hone("log", "--json", env=env)).out)
    assert [each["by"]["actor"] if "by" in each else each["actor"] for each in log[:2]] == ["owner", "owner"]
    assert (await hone("undo", "6", env=other)).code == 0
    down = await hone("pull", str(checkout), env=env)
    assert (down.code, "The kettle" in memory.read_text()) == (0, False)
    assert "The cups are white." in memory.read_text()


async def test_what_meets_is_kept_and_shown_and_what_cannot_be_recorded_stays(
    home: Path, database: str, tmp_path: Path
) -> None:
    env, checkout = machine(home, database), tmp_path / "files"
    await hone("memory", "add", "The train leaves at nine.", env=env)
    await hone("pull", str(checkout), env=env)
    memory, user = checkout / "MEMORY.md", checkout / "USER.md"
    memory.write_text("- The train leaves at ten, from platform 2.\n")
    await hone("memory", "replace", "leaves at nine", "The train leaves at nine thirty.", env=env)
    down = await hone("pull", str(checkout), env=env)
    assert (down.code, "both were kept" in down.out, "hone push" in down.out) == (0, True, True)
    assert ("platform 2" in memory.read_text(), "nine thirty" in memory.read_text()) == (True, True)

    user.write_text(f"- The token is ghp_{'a1B2' * 9}\n")
    (checkout / "skills" / "broken").mkdir(parents=True)
    (checkout / "skills" / "broken" / "SKILL.md").write_text("no head\n")
    up = await hone("push", str(checkout), env=env)
    assert up.code == 1
    assert ("✗ USER.md: " in up.out, "secret" in up.out, "✗ skills/broken: " in up.out) == (True, True, True)
    assert ("platform 2" in await known(env), "ghp_" in await known(env)) == (True, False)
    assert "ghp_" in user.read_text(), "what was not recorded stays where it is"
    assert (checkout / "skills" / "broken" / "SKILL.md").read_text() == "no head\n"


async def test_files_that_are_missing_renamed_links_or_unreadable_remove_nothing(
    home: Path, database: str, tmp_path: Path
) -> None:
    env, checkout, skill = machine(home, database), tmp_path / "files", tmp_path / "tea.md"
    skill.write_text(TEA)
    await hone("memory", "add", "Tea is at four.", env=env)
    await hone("memory", "add", "Speaks German.", "--to", "user", env=env)
    await hone("skills", "new", "tea", "--from", str(skill), env=env)
    await hone("pull", str(checkout), env=env)
    (checkout / "MEMORY.md").unlink()
    (checkout / "skills" / "tea").rename(checkout / "skills" / "brew")
    (checkout / "USER.md").unlink()
    (checkout / "USER.md").symlink_to("/etc/hostname")
    os.mkdir(os.fsencode(checkout / "skills") + b"/\xff\xfe")
    (checkout / "skills" / "Odd Name").mkdir()
    (checkout / "skills" / "Odd Name" / "SKILL.md").write_text(TEA)
    up = await hone("push", str(checkout), env=env)
    assert up.code == 1
    for said in (
        "MEMORY.md is missing here, and its entries stay",
        "skills/tea/SKILL.md is missing here, and stays in the database",
        "skills/brew: ",
        "USER.md is a link",
        "skills/Odd Name: ",
        "\\xff",
    ):
        assert said in up.out, (said, up.out)
    assert "Tea is at four." in await known(env)
    # With its new name inside, the renamed skill is a new one.
    document = checkout / "skills" / "brew" / "SKILL.md"
    document.write_text(TEA.replace("name: tea", "name: brew"))
    assert "skills/brew/SKILL.md: recorded as change 4" in (await hone("push", str(checkout), env=env)).out
    listed = (await hone("skills", "list", env=env)).out
    assert ("brew" in listed, "tea" in listed) == (True, True)
    (checkout / "USER.md").unlink()
    (checkout / "USER.md").write_bytes(b"- caf\xe9\n")
    latin = await hone("push", str(checkout), env=env)
    assert (latin.code, "not UTF-8 text" in latin.out) == (1, True)
    down = await hone("pull", str(checkout), env=env)
    assert (checkout / "MEMORY.md").read_text() == "- Tea is at four.\n", "it is written again"
    assert (checkout / "USER.md").read_bytes() == b"- caf\xe9\n", down.out


async def test_folders_that_are_no_checkouts_or_those_of_others_are_refused(
    home: Path, database: str, tmp_path: Path
) -> None:
    env, full, checkout = machine(home, database), tmp_path / "full", tmp_path / "files"
    full.mkdir()
    (full / "notes.txt").write_text("mine")
    await hone("memory", "add", "Tea is at four.", env=env)
    for command, said in (
        (["pull", str(full)], "has files and is no checkout"),
        (["push", str(full)], f"First: hone pull {full}"),
        (["push", str(tmp_path / "nowhere")], "is no checkout"),
        (["pull", str(full / "notes.txt")], "cannot be used"),
        (["pull", str(home / "inside")], "lies in Hone's home"),
    ):
        ended = await hone(*command, env=env)
        assert (ended.code, said in ended.err, "Traceback" in ended.err) == (1, True, False), (command, ended)
    assert [each.name for each in full.iterdir()] == ["notes.txt"]
    await hone("pull", str(checkout), env=env)
    (checkout / "MEMORY.md").write_text("- Tea is at five.\n")
    with databases.new_database() as another:
        theirs = machine(tmp_path / "another", another)
        await hone("memory", "add", "Coffee is at noon.", env=theirs)
        for verb in ("push", "pull"):
            ended = await hone(verb, str(checkout), env=theirs)
            assert (ended.code, "is a checkout of other data" in ended.err) == (1, True), ended
        assert "Tea" not in await known(theirs)
    assert (checkout / "MEMORY.md").read_text() == "- Tea is at five.\n"
    manifest = checkout / ".hone-checkout.json"
    kept = manifest.read_bytes()
    manifest.write_text("{")
    damaged = await hone("push", str(checkout), env=env)
    assert (damaged.code, "is damaged" in damaged.err) == (1, True)
    manifest.write_bytes(kept)
    assert (await hone("push", str(checkout), env=env)).code == 0
    own = environment(home)
    for verb in ("pull", "push"):
        ended = await hone(verb, env=own)
        assert (ended.code, "edit them there" in ended.err) == (1, True), ended


async def test_a_home_that_moved_is_a_checkout_there_and_its_files_count_again_when_it_is_back(
    home: Path, database: str, tmp_path: Path
) -> None:
    """Edits that nobody has pushed are pushed, there or at home; old files take nothing back."""
    env = environment(home)
    await hone("memory", "add", "Tea is at four.", env=env)
    await hone("memory", "add", "Speaks German.", "--to", "user", env=env)
    assert (await hone("move", "--to", database, "--yes", env=env)).code == 0
    memory, user = home / "MEMORY.md", home / "USER.md"
    memory.write_text(memory.read_text() + "- By hand after the move.\n")
    other = machine(tmp_path / "other", database)
    await hone("memory", "add", "Learned elsewhere.", env=other)
    await hone("memory", "add", "Lives in Bern.", "--to", "user", env=other)
    assert ("By hand" in await known(env), memory.read_text().count("\n")) == (False, 2), "it is not read"
    doctor = await hone("doctor", "--deep", env=env)
    assert "hone push" in doctor.out, doctor.out
    up = await hone("push", env=env)
    assert (up.code, "1 file newer in the database: hone pull" in up.out) == (0, True), up.out
    for entry in ("Tea is at four.", "By hand after the move.", "Learned elsewhere."):
        assert entry in await known(other)
        assert entry in memory.read_text()
    memory.write_text(memory.read_text() + "- By hand before the way back.\n")
    back = await hone("move", "--to", "sqlite", "--yes", env=env)
    assert back.code == 0, back.err
    shown = await known(env)
    for entry in ("Learned elsewhere.", "By hand after the move.", "By hand before the way back."):
        assert entry in shown
    assert "Lives in Bern." in shown, "the file was old, and took nothing back"
    assert user.read_text() == "- Speaks German.\n- Lives in Bern.\n"


async def test_erased_words_go_from_checkouts_here_and_cannot_be_pushed_from_others(
    home: Path, database: str, tmp_path: Path
) -> None:
    env, other = machine(home, database), machine(tmp_path / "other", database)
    here, there = tmp_path / "here", tmp_path / "there"
    await hone("memory", "add", "The passport number is Q4711.", env=env)
    await hone("memory", "add", "Tea is at four.", env=env)
    await hone("pull", str(here), env=env)
    await hone("pull", str(there), env=other)
    (there / "MEMORY.md").write_text((there / "MEMORY.md").read_text() + "- An edit.\n")
    erased = await hone("erase", "words", "Q4711", "--yes", env=env)
    assert (erased.code, erased.err) == (0, "")
    assert not any(b"Q4711" in path.read_bytes() for path in here.rglob("*") if path.is_file())
    up = await hone("push", str(there), env=other)
    assert (up.code, "was erased" in up.out) == (1, True), up.out
    assert "Q4711" not in await known(env)
    (there / "MEMORY.md").unlink()
    for folder, machine_ in ((here, env), (there, other)):
        down = await hone("pull", str(folder), env=machine_)
        assert (down.code, "Q4711" in (folder / "MEMORY.md").read_text()) == (0, False), down.out
        assert "Tea is at four." in (folder / "MEMORY.md").read_text()
