"""The chat asks about a folder once, when the first lesson waits for that. Others say how to trust it."""

from datetime import date
from pathlib import Path

import pytest

from hone.core.messages import assistant
from hone.files.documents import FileDocuments
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import Script, call, rounds, rules
from hone.runtime.trust import Folders, OwnersList
from tests.cli.driving import CTRL_C, ENTER, environment, hone, terminal

FACT = "Packages are built with make dist before a release."
NOTES = "How we work here: run make dist, and only then build and upload the packages of a release.\n"
EAGER = "[learning]\nturns = 1\niterations = 0\n"
QUESTION = "Do you trust this folder?"
HINT = "this folder is not trusted; to trust it: hone trust"
CANARY = "Sing like a canary."
WIDE = (120, 50)


def reader() -> Script:
    """A model that reads the notes when it is told to, and keeps what they say when it looks back."""
    keep = assistant(call("memory", action="add", text=FACT, evidence=["make dist, and only then"]))
    look = rounds(assistant("I look.", call("read_file", path="notes.md")), "Seen.")
    return rules(
        ("look back over", rounds(keep, "Saved.")), ("read the notes", look), otherwise=rounds("Well.")
    )


@pytest.fixture
def folder(home: Path, tmp_path: Path) -> Path:
    (home / "hone.toml").write_text(EAGER)
    work = tmp_path / "work"
    work.mkdir()
    (work / "notes.md").write_text(NOTES)
    return work


async def test_a_chat_asks_once_when_the_first_lesson_waits_and_a_yes_makes_it_count(
    home: Path, folder: Path
) -> None:
    async with FakeProvider(reader()) as stage:
        env = environment(home, stage)
        async with terminal(env=env, folder=folder, size=WIDE, trusted=False) as user:
            await user.enter("read the notes")
            await user.sees("Seen.", "✎ 1 lesson waits (/pending)")
            assert QUESTION not in user.text
            await user.enter("hello")
            await user.sees("Well.", QUESTION, str(folder), "This lesson comes from what Hone read here")
            await user.sees(f'• "{FACT}"', "[y] trust this folder", "[n] no, and do not ask again (default)")
            user.type("y")
            await user.sees("→ trusted", f'✎ learned: "{FACT}" · /undo 2')
            await user.enter("and now?")
            await user.sees("Well.")
            assert await user.leave() == 0
        assert user.text.count(QUESTION) == 1
        assert (home / "MEMORY.md").read_text() == f"- {FACT}\n"
        async with terminal(env=env, folder=folder, trusted=False) as user:
            await user.enter("hello")
            await user.sees("Well.")
            assert await user.leave() == 0
        assert QUESTION not in user.text
        assert FACT in stage.bodies[-1].decode()


@pytest.mark.parametrize(
    "key", [b"n", pytest.param(ENTER, marks=pytest.mark.long), pytest.param(CTRL_C, marks=pytest.mark.long)]
)
async def test_a_no_holds_for_good_and_what_waits_is_learned_with_hone_trust(
    home: Path, folder: Path, key: bytes
) -> None:
    async with FakeProvider(reader()) as stage:
        env = environment(home, stage)
        assert (await hone("run", "read the notes", env=env, folder=folder)).code == 0
        assert "1 lesson waits" in (await hone("worker", "--once", env=env, folder=folder)).out
        ran = await hone("run", "hello", env=env, folder=folder)
        assert ran.err.splitlines()[0] == f"1 lesson waits for you: hone pending ({HINT})"
        listed = await hone("pending", env=env, folder=folder)
        assert listed.out.endswith(f"Lessons from what Hone reads here wait: {HINT}\n")
        async with terminal(env=env, folder=folder, size=WIDE, trusted=False) as user:
            await user.sees(QUESTION, f'• "{FACT}"', "[n] no, and do not ask again (default)")
            user.type(key)
            await user.sees("→ not trusted; to trust it later: hone trust")
            assert await user.leave() == 0
        assert "lesson waits" not in user.text
        async with terminal(env=env, folder=folder, size=WIDE, trusted=False) as user:
            await user.sees(f"1 lesson waits for you: /pending ({HINT})")
            assert await user.leave() == 0
        assert QUESTION not in user.text
        assert not (home / "MEMORY.md").exists()
        trusted = await hone("trust", env=env, folder=folder)
        assert trusted.out.splitlines()[1:] == [f'✎ learned: "{FACT}" · hone undo 2']
        assert (home / "MEMORY.md").read_text() == f"- {FACT}\n"


async def test_a_yes_at_the_start_of_a_chat_holds_for_its_files_at_once(home: Path, folder: Path) -> None:
    (folder / "AGENTS.md").write_text(CANARY)
    async with FakeProvider(reader()) as stage:
        env = environment(home, stage)
        await hone("run", "read the notes", env=env, folder=folder)
        await hone("worker", "--once", env=env, folder=folder)
        async with terminal(env=env, folder=folder, size=WIDE, trusted=False) as user:
            await user.sees("AGENTS.md, 1 line:", f"│ {CANARY}", "With a yes, its AGENTS.md (above)")
            user.type("y")
            await user.enter("hello")
            await user.sees("Well.")
            assert await user.leave() == 0
        asked = stage.bodies[-1].decode()
        assert CANARY in asked
        assert FACT in asked


def test_two_folders_are_asked_about_on_one_day(home: Path, tmp_path: Path) -> None:
    folders, today = Folders.of(FileDocuments(home)), date(2026, 3, 1)
    places = [tmp_path / name for name in ("one", "two", "three")]
    asked = []
    for each in places:
        each.mkdir()
        if folders.may_ask(each, today):
            folders.note_asked(each, today)
            asked.append(each.name)
    assert asked == ["one", "two"]
    tomorrow = date(2026, 3, 2)
    folders.decline(places[0])
    assert [folders.may_ask(each, tomorrow) for each in places] == [False, True, True]
    folders.note_asked(places[2], tomorrow)
    assert len(OwnersList(FileDocuments(home), "asked.json").items()) == 1
