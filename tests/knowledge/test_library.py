"""D2, D6: skills found on the disk, in rank and by words; the same from a cold and a warm start."""

import os
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from hone.core.clock import ManualClock
from hone.core.embedding import Purpose, pack
from hone.core.ids import SessionId
from hone.core.ledger import Actor
from hone.core.skill import SkillEvent, SkillOrigin
from hone.files.tree import TICK, FileTree
from hone.knowledge.keeper import OWNER, Keeper
from hone.knowledge.library import FIRST, Library
from hone.knowledge.skills.folder import Archive, Create, Pin
from hone.stores.database import Database
from hone.stores.ledger import SqliteLedger
from hone.stores.skill_catalog import SqliteSkillCatalog

FOLDER = "/a/folder"


def document(name: str, description: str = "A craft.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n\nWork.\n"


def put(home: Path, name: str, text: str = "") -> Path:
    folder = home / "skills" / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text or document(name))
    return folder / "SKILL.md"


@asynccontextmanager
async def library(
    home: Path, clock: ManualClock | None = None, now: Callable[[], int] = time.time_ns
) -> AsyncIterator[tuple[Library, list[str]]]:
    said: list[str] = []
    database = Database.open(home / "hone.db")
    clock = clock or ManualClock()
    keeper = Keeper(SqliteLedger(database), FileTree(home, now), clock, said.append)
    yield Library(keeper, SqliteSkillCatalog(database), clock), said
    keeper.close()
    await database.close()


async def names(shelf: Library) -> list[str]:
    return [
        each.name for each in (await shelf.ranked(FOLDER)).skills if each.origin is not SkillOrigin.BUNDLED
    ]


async def test_of_many_new_folders_only_those_are_taken_in_that_can_be_first(home: Path) -> None:
    many = [f"craft-{number:03}" for number in range(3 * FIRST)]
    for name in many:
        put(home, name)
    async with library(home) as (shelf, _):
        cold = await names(shelf)
        assert cold == many[:FIRST]
        assert await shelf.keeper.ledger.latest() == FIRST
    async with library(home) as (shelf, _):
        assert await names(shelf) == cold
        assert await shelf.keeper.ledger.latest() == FIRST
        assert len(await shelf.listed()) > 3 * FIRST
        assert await names(shelf) == cold
        put(home, "craft-000b")
        assert await names(shelf) == sorted([*cold, "craft-000b"])[:FIRST]


async def test_the_folder_of_skills_is_listed_again_only_after_it_was_touched(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[str] = []
    folders = FileTree.folders

    def listing(tree: FileTree, path: str = "", known: Collection[str] = ()) -> set[str]:
        listed.append(path)
        return folders(tree, path, known)

    monkeypatch.setattr(FileTree, "folders", listing)
    put(home, "craft-one")
    async with library(home, now=lambda: time.time_ns() + 2 * TICK) as (shelf, _):
        for _ in range(2):  # the first one takes the new folder in
            await shelf.search("craft", 9)
        listed.clear()
        for _ in range(3):
            assert "craft-one" in {each.name for each in await shelf.search("craft", 9)}
        assert listed == []
        put(home, "craft-two")
        assert "craft-two" in {each.name for each in await shelf.search("craft", 9)}
        (home / "skills" / "craft-one" / "SKILL.md").unlink()
        (home / "skills" / "craft-one").rmdir()
        await shelf.search("craft", 9)
        assert (home / "skills" / "craft-one" / "SKILL.md").exists()


async def test_folders_that_cannot_be_used_are_told_and_keep_no_others_out(home: Path) -> None:
    for number in range(FIRST + 5):
        put(home, f"bad-{number:03}", "no front matter")
    good = put(home, "good-one")
    async with library(home) as (shelf, said):
        assert await names(shelf) == ["good-one"]
        assert len(said) == FIRST + 5
        assert "skills/bad-000 cannot be used as it is" in said[0]
    assert good.read_text() == document("good-one")


async def test_a_folder_that_cannot_be_used_is_not_read_again_until_somebody_touches_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, read = put(home, "bad-one", "no front matter"), FileTree.read
    seen: list[str] = []

    def count(disk: FileTree, path: str) -> object:
        seen.append(path)
        return read(disk, path)

    monkeypatch.setattr(FileTree, "read", count)
    os.utime(bad, (1, 1))
    async with library(home) as (shelf, said):
        for _ in range(3):
            assert "bad-one" not in [each.name for each in await shelf.listed()]
        assert (seen, len(said)) == (["skills/bad-one/SKILL.md"], 1)
    async with library(home) as (shelf, said):
        await shelf.listed()
        assert (seen, said) == (["skills/bad-one/SKILL.md"], []), "another process knows"
        bad.write_text("still no front matter")
        for _ in range(2):  # it was touched a moment ago, and may change within the tick of the clock
            await shelf.listed()
        assert seen == ["skills/bad-one/SKILL.md"] * 3
        bad.write_text(document("bad-one"))
        os.utime(bad, (2, 2))
        assert "bad-one" in [each.name for each in await shelf.listed()]


async def test_a_prompt_summarizes_no_more_skills_than_compete_for_it(home: Path) -> None:
    many = [f"craft-{number:03}" for number in range(FIRST + 3)]
    for name in many:
        put(home, name)
    async with library(home) as (shelf, _):
        await shelf.keeper.adopt(many)
        cold = await names(shelf)
        assert len(await shelf._catalog.unsummarized()) == 3
        assert [each.name for each in await shelf.search(many[-1], 1)] == many[-1:]
        assert await shelf._catalog.unsummarized() == ()
        assert await names(shelf) == cold == many[:FIRST]


async def test_rank_is_pinned_then_used_then_name_and_stays_the_same_all_day(home: Path) -> None:
    clock = ManualClock()
    async with library(home, clock) as (shelf, _):
        for name in ("a-craft", "b-craft", "c-craft", "d-craft"):
            await shelf.keeper.edit_skill(name, Create(document(name), SkillOrigin.AGENT), OWNER)
        await shelf.keeper.edit_skill("d-craft", Pin(), OWNER)
        await shelf.count("c-craft", SkillEvent.USE, Actor.AGENT, SessionId("1"))
        await shelf.count("b-craft", SkillEvent.VIEW, Actor.REVIEW, SessionId("2"))
        assert await names(shelf) == ["d-craft", "a-craft", "b-craft", "c-craft"]
        clock.advance(timedelta(days=1).total_seconds())
        assert await names(shelf) == ["d-craft", "c-craft", "a-craft", "b-craft"]
        await shelf.keeper.edit_skill("c-craft", Archive(), OWNER)
        assert await names(shelf) == ["d-craft", "a-craft", "b-craft"]
        tally = (await shelf.usage_counts())["b-craft"]
        assert (tally.views, tally.uses, tally.background_views) == (0, 0, 1)


async def test_a_document_edited_by_hand_is_noticed_where_it_is_ranked(home: Path) -> None:
    path = put(home, "a-craft")
    async with library(home) as (shelf, _):
        await names(shelf)
        path.write_text(document("a-craft", "A finer craft."))
        first, *_ = (await shelf.ranked(FOLDER)).skills
        assert first.description == "A finer craft."
        path.unlink()
        path.parent.rmdir()
        assert await names(shelf) == ["a-craft"]
        assert path.read_text() == document("a-craft", "A finer craft.")


class FakeMeanings:
    """Knows three subjects, and which words belong to which."""

    SUBJECTS = ("cat kitten vet", "bread loaf bakery", "boat harbor sail")

    def __init__(self, *, is_ready: bool = True) -> None:
        self.is_ready = is_ready

    async def vectors(self, texts: Sequence[str], purpose: Purpose = "passage") -> Sequence[bytes]:
        if not self.is_ready:
            return ()
        return [
            pack([sum(word in text.lower() for word in subject.split()) for subject in self.SUBJECTS])
            for text in texts
        ]


async def test_skills_can_be_ranked_by_meaning_too_and_are_not_unless_somebody_says_so(home: Path) -> None:
    put(home, "harbor-trips", document("harbor-trips", "Plan a trip with friends."))
    put(home, "kitten-trips", document("kitten-trips", "Plan a trip with pets."))
    async with library(home) as (plain, _):
        keeper, catalog, clock = plain.keeper, plain._catalog, ManualClock()
        found = {}
        for name, meanings in (
            ("none", None),
            ("not ready", FakeMeanings(is_ready=False)),
            ("ready", FakeMeanings()),
        ):
            ranked = await Library(keeper, catalog, clock, meanings).search("plan a trip to the vet", 9)
            found[name] = [each.name for each in ranked]
        assert found["none"] == found["not ready"]
        assert found["none"][:2] == ["harbor-trips", "kitten-trips"]
        assert found["ready"][:2] == ["kitten-trips", "harbor-trips"]
        assert sorted(found["ready"]) == sorted(found["none"])
