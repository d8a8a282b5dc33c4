"""Tasks as users write them find their skill among 5,000 with near neighbours, through the real store."""

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from hone.core.clock import ManualClock
from hone.core.ledger import Actor, Author, Change, ChangeKind, Delta, skill
from hone.core.messages import digest
from hone.core.skill import DOCUMENT, ORIGIN, SkillOrigin, SkillSummary
from hone.knowledge.keeper import Keeper
from hone.knowledge.library import Library
from hone.knowledge.skills.document import parse
from hone.knowledge.skills.similar import words
from hone.prompt.matches import LIMIT, describe_matches
from hone.stores.database import Database
from hone.stores.ledger import SqliteLedger
from hone.stores.skill_catalog import SqliteSkillCatalog
from tests.conftest import Figures
from tests.skills.routing.library import FOLDER, Task, library, tasks

FIRST = 10
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@cache
def cards() -> dict[str, SkillSummary]:
    return {skill.name: parse(skill.text).summary for skill in library()}


@asynccontextmanager
async def shelved(folder: Path) -> AsyncIterator[Library]:
    """All skills in a real store, without a disk to look at."""
    database = Database.open(folder / "hone.db")
    ledger, shelf = SqliteLedger(database), SqliteSkillCatalog(database)
    origin = SkillOrigin.AGENT.encode()
    contents = {digest(each.text.encode()): each.text.encode() for each in library()}
    changes = [
        Change(
            skill(each.name),
            ChangeKind.CREATE,
            (Delta(DOCUMENT, None, digest(each.text.encode())), Delta(ORIGIN, None, digest(origin))),
            Author(Actor.AGENT),
        )
        for each in library()
    ]
    await ledger.record(changes, {**contents, digest(origin): origin}, NOW)
    await shelf.save_summaries({digest(each.text.encode()): cards()[each.name] for each in library()})
    try:
        yield Library(Keeper(ledger, None, ManualClock(NOW), lambda _: None), shelf, ManualClock(NOW))
    finally:
        await database.close()


async def found(shelf: Library, query: str) -> list[str]:
    """Names, best first, as skills_list(query) has them."""
    return [each.name for each in await shelf.search(query, FIRST)]


async def missed(shelf: Library, wanted: Sequence[Task]) -> list[Task]:
    return [task for task in wanted if task.skill not in await found(shelf, task.text)]


@cache
def counts() -> Counter[str]:
    """In how many skills a word stands."""
    return Counter(word for skill in library() for word in set(words(skill.text.replace("-", " "))))


def without_rare_words(wanted: Sequence[Task]) -> list[Task]:
    """Words that fewer than three skills have, gone from the tasks."""
    return [
        Task(" ".join(word for word in words(task.text) if counts()[word] >= 3), task.skill)
        for task in wanted
    ]


SETS = {"requests.json": ("everyday", 0.93), "tasks.json": ("hard", 0.75)}
"""Requests as people make them, tasks that avoid the words of the skill they mean; and the least share."""
NAMED = {"requests.json": 0.85, "tasks.json": 0.5}
"""The least share of them whose skill a first turn names unasked."""


async def test_a_request_finds_its_skill_among_the_first_ten(tmp_path: Path, figures: Figures) -> None:
    async with shelved(tmp_path) as shelf:
        for file, (name, floor) in SETS.items():
            asked = tasks(file)
            lost, plain = await missed(shelf, asked), await missed(shelf, without_rare_words(asked))
            hits, bare = len(asked) - len(lost), len(asked) - len(plain)
            figures(
                f"{len(asked)} {name} tasks tried among {len(library()):,} skills, {hits} found in the first "
                f"{FIRST}, {bare} with rare words removed"
            )
            assert hits >= floor * len(asked), [f"{task.text} → {task.skill}" for task in lost]
        await each_is_found_by_its_own_words(shelf)


async def each_is_found_by_its_own_words(shelf: Library) -> None:
    for each in library()[::100]:
        card = cards()[each.name]
        assert (await found(shelf, f"{card.name} {card.description}"))[0] == each.name
        alike = await shelf.find_similar(card.name, card.description)
        assert each.name in [like.name for like in alike][:3]


async def test_a_first_turn_names_the_right_skill_and_small_talk_names_none(
    tmp_path: Path, figures: Figures
) -> None:
    async with shelved(tmp_path) as shelf:
        for file, (name, _) in SETS.items():
            notes = [describe_matches(await shelf.match(task.text)) for task in tasks(file)]
            right = sum(f"- {task.skill}: " in note for task, note in zip(tasks(file), notes, strict=True))
            noted = sum(map(bool, notes))
            figures(f"{len(notes)} {name} first turns: {noted} with a note, {right} name the right skill")
            assert right >= NAMED[file] * len(notes)
            assert all(len(note.encode()) <= LIMIT for note in notes)
        for name, turns in small_talk().items():
            false = [turn for turn in turns if await shelf.match(turn)]
            figures(f"{len(turns)} turns of small talk, {name}: {len(false)} with a note")
            assert len(false) <= 0.05 * len(turns), false


def small_talk() -> dict[str, Sequence[str]]:
    """Turns of the conversations that recall is measured on, and a hundred that were written for this."""
    talk = json.loads((FOLDER.parents[1] / "recall/smalltalk.json").read_text("utf-8"))
    turns = [each["text"] for exchange in talk["exchanges"] for each in exchange if each["role"] == "user"]
    said = [re.sub(r"\{\w+\}", "it", turn) for turn in turns]
    own: list[str] = json.loads((FOLDER / "smalltalk.json").read_text("utf-8"))
    return {"from conversations": said, "written for this": own}


def test_the_sets_are_what_they_claim_to_be() -> None:
    names = [each.name for each in library()]
    assert len(names) == len(set(names)) == 5_000
    for file in SETS:
        assert len(tasks(file)) == len({task.skill for task in tasks(file)}) == 100
        assert {task.skill for task in tasks(file)} <= set(names)
    assert not {task.skill for task in tasks("tasks.json")} & {task.skill for task in tasks("requests.json")}
