"""C1: a save is merged on the version that its editor had read, as far as that can be known."""

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from hone.core.ledger import MEMORY, ChangeQuery, skill
from hone.core.skill import DOCUMENT, SkillOrigin
from hone.core.value import replace
from hone.knowledge import merge
from hone.knowledge.bases import Version, take
from hone.knowledge.journal import Add, ReplaceEntry, entries
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills.folder import Create, Patch, Rewrite, WriteFile
from tests.conftest import Figures, Tier
from tests.knowledge.test_keeper import AGENT, House, house

NAME = "trip-planning"
PLAN = f"---\nname: {NAME}\ndescription: Plan a trip.\n---\n\n# Steps\nRead the log.\nBook the train.\n"
FIRST, SECOND = "The build runs with make.", "Staging is at a.example.org"

Save = Callable[[Path, str], None]


def save_in_place(file: Path, text: str) -> None:
    file.write_text(text)


def save_by_renaming(file: Path, text: str) -> None:
    other = file.with_name("editor~")
    other.write_text(text)
    os.replace(other, file)


async def hold(it: House) -> str:
    """Return what an editor has read before the second lesson was learned."""
    await it.add(FIRST, AGENT)
    buffer = it.memory.read_text()
    await it.add(SECOND, AGENT)
    return buffer


@pytest.mark.parametrize("save", [save_in_place, save_by_renaming])
async def test_a_lesson_that_the_editor_had_not_read_is_kept_and_shown_however_often_it_saves(
    home: Path, save: Save
) -> None:
    async with house(home) as it:
        buffer = await hold(it)
        for word in (f"line {number} is mine" for number in range(12)):
            buffer += f"- {word}\n"
            save(it.memory, buffer)
            assert {FIRST, SECOND, word} <= {*entries(await it.keeper.text(MEMORY))}
            assert it.said.pop() == (
                f'MEMORY.md: "{SECOND}" was kept, because it is newer than the version you edited. '
                "To remove it: hone undo 2"
            )
        save(it.memory, buffer)
        assert entries(await it.keeper.text(MEMORY)) == entries(it.memory.read_text())
        assert SECOND in it.memory.read_text()
        made = await it.keeper.ledger.entries(ChangeQuery(target=MEMORY))
        assert not any("removed" in each.change.kind for each in made)
        assert made[0].change.author.tool == "an older version of the file"


async def test_an_old_buffer_that_is_saved_as_it_was_removes_nothing_if_nobody_has_read_the_new_file(
    home: Path,
) -> None:
    async with house(home) as it:
        save_in_place(it.memory, await hold(it))
        assert entries(await it.keeper.text(MEMORY)) == (FIRST, SECOND)
        assert SECOND in it.said[0]


@pytest.mark.parametrize("save", [save_in_place, save_by_renaming])
async def test_the_newest_lesson_is_removed_by_hand(home: Path, save: Save) -> None:
    async with house(home) as it:
        await hold(it)
        save(it.memory, it.memory.read_text().replace(f"- {SECOND}\n", ""))
        assert entries(await it.keeper.text(MEMORY)) == (FIRST,)
        assert it.said == []


@pytest.mark.parametrize(
    ("lesson", "corrected"),
    [
        ("Deploys run on Fridays.", "Deploys run on Thursdays."),
        (SECOND, SECOND.replace("a.ex", "b.ex")),
        ("Likes tea.", "Likes tea. But not in the evening."),
        ("Prefers tabs in Go, as gofmt writes them and the team agreed on in May.", "Prefers tabs in Go."),
    ],
)
async def test_a_lesson_that_the_owner_corrects_by_hand_is_not_there_twice(
    home: Path, lesson: str, corrected: str
) -> None:
    async with house(home) as it:
        await it.add(FIRST, AGENT)
        await it.add(lesson, AGENT)
        save_by_renaming(it.memory, it.memory.read_text().replace(lesson, corrected))
        assert entries(await it.keeper.text(MEMORY)) == (FIRST, corrected)
        assert it.said == []


def test_entries_stay_in_the_order_that_the_owner_gave_them() -> None:
    """Also where the editor may have held an older version, as long as nothing else differs."""
    saved, held = "- one\n- two\n", "- two\n- one\n"
    save = merge.Save("MEMORY.md", saved, held, merge.by_entry, unread=True)
    assert take(save, [Version(held), Version(saved)]).data == saved.encode()


async def test_what_was_undone_does_not_come_back_with_an_old_buffer(home: Path) -> None:
    async with house(home) as it:
        first = await it.add(FIRST, AGENT)
        await it.add(SECOND, AGENT)
        buffer = it.memory.read_text()
        await it.keeper.undo(first)
        save_by_renaming(it.memory, f"{buffer}- mine\n")
        assert entries(await it.keeper.text(MEMORY)) == (SECOND, "mine")
        assert it.said == [
            f'MEMORY.md: "{FIRST}" had been removed since the version that you edited, and stays removed. '
            "hone log has it."
        ]


async def test_where_both_changed_the_same_entry_both_are_kept_and_shown(home: Path) -> None:
    async with house(home) as it:
        await it.add("Deploys run on Fridays.", AGENT)
        buffer = it.memory.read_text()
        await it.keeper.note([(MEMORY, ReplaceEntry("Fridays", "Deploys run on Mondays."))], OWNER)
        save_by_renaming(it.memory, buffer.replace("Fridays", "Thursdays"))
        text = await it.keeper.text(MEMORY)
        assert entries(text) == ("Deploys run on Mondays.", "Deploys run on Thursdays.")
        assert "conflicts with a change made meanwhile; both were kept" in it.said[0]


async def test_a_skill_keeps_both_where_it_can_be_used_then_and_the_owners_lines_elsewhere(
    home: Path,
) -> None:
    script = "#!/bin/sh\necho one\n"
    async with house(home) as it:
        folder = home / "skills" / NAME
        await it.keeper.edit_skill(NAME, Create(PLAN, SkillOrigin.AGENT), AGENT)
        await it.keeper.edit_skill(NAME, WriteFile("scripts/go.sh", script.encode()), OWNER)
        buffer = (folder / DOCUMENT).read_text()
        await it.keeper.edit_skill(NAME, Patch("Read the log.", "Read the log twice."), AGENT)
        save_by_renaming(folder / DOCUMENT, buffer.replace("Read the log.", "Read the map."))
        text = (await it.keeper.files(skill(NAME)))[DOCUMENT].decode()
        assert text == PLAN.replace("Read the log.", "Read the log twice.\nRead the map.")

        buffer = (folder / DOCUMENT).read_text()
        other = buffer.replace("Plan a trip.", "Plan a journey.")
        await it.keeper.edit_skill(NAME, Rewrite(other), OWNER)
        save_by_renaming(folder / DOCUMENT, buffer.replace("Plan a trip.", "Plan a tour."))
        text = (await it.keeper.files(skill(NAME)))[DOCUMENT].decode()
        assert ("Plan a tour." in text, "Plan a journey." in text) == (True, False)

        go = folder / "scripts/go.sh"
        await it.keeper.edit_skill(
            NAME, WriteFile("scripts/go.sh", script.replace("one", "two").encode()), OWNER
        )
        save_by_renaming(go, script.replace("one", "three"))
        assert (await it.keeper.files(skill(NAME)))["scripts/go.sh"] == script.replace(
            "one", "three"
        ).encode()
        assert [each.partition(": ")[2][:34] for each in it.said] == [
            "your edit conflicts with a change ",
            "your edit replaced a change made m",
            "your edit replaced a change made m",
        ]


async def test_what_editors_put_beside_a_file_becomes_no_part_of_a_skill(home: Path) -> None:
    async with house(home) as it:
        await it.keeper.edit_skill(NAME, Create(PLAN, SkillOrigin.AGENT), AGENT)
        for name in ("4913", "SKILL.md~", ".SKILL.md.swp", "#SKILL.md#", "SKILL.md___jb_tmp___", "sedAb12Cd"):
            (home / "skills" / NAME / name).write_text("half")
        files = await it.keeper.files(skill(NAME))
        assert [path for path in files if not path.startswith("@")] == [DOCUMENT]


async def test_an_edit_of_the_newest_version_is_taken_to_the_byte(
    tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    """One line removed, added or extended, in a journal that nobody else changes."""
    tried = wrong = 0
    for draw in tier.draws(short=6, full=100):
        home = tmp_path / str(draw.index)
        home.mkdir(mode=0o700)
        async with house(home) as it:
            for number in range(draw.random.randint(2, 5)):
                author = replace(AGENT, evidence=(replace(AGENT.evidence[0], message=number),))
                await it.keeper.note([(MEMORY, Add(_words(draw.random)))], author)
            for _ in range(3):
                wanted = _edit(it.memory.read_text().splitlines(keepends=True), draw.random)
                draw.random.choice((save_in_place, save_by_renaming))(it.memory, wanted)
                tried += 1
                wrong += await it.keeper.text(MEMORY) != wanted
            assert it.said == []
    figures.tally(tried, lost=wrong, note="edits by hand of the newest version")
    assert not wrong


def _words(random: Random) -> str:
    return " ".join("".join(random.choices("abdefgiklmnoprstuvz", k=7)) for _ in range(4))


def _edit(rows: list[str], random: Random) -> str:
    at = random.randrange(len(rows)) if rows else 0
    match random.choice("rac") if rows[1:] else "a":
        case "r":
            rows.pop(at)
        case "a":
            rows.insert(at, f"- {_words(random)}\n")
        case _:
            rows[at] = f"{rows[at].rstrip()} {_words(random)}\n"
    return "".join(rows)
