"""Tasks as users write them find their skill among 5,000 with near neighbours, through the real store."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from hone.core.ledger import Actor, Author, Change, Delta, skill
from hone.core.messages import digest
from hone.core.skill import DOCUMENT, ORIGIN, Birth, Card, Shelf
from hone.skills.document import parse
from hone.skills.similar import CANDIDATES, rank, similar, words
from hone.stores.database import Database
from hone.stores.ledger import SqliteLedger
from hone.stores.shelf import SqliteShelf
from tests.conftest import Figures, Tier
from tests.skills.routing.library import Task, library, tasks

FIRST = 10
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@cache
def cards() -> dict[str, Card]:
    return {skill.name: parse(skill.text).card for skill in library()}


@asynccontextmanager
async def shelved(folder: Path) -> AsyncIterator[Shelf]:
    database = Database.open(folder / "hone.db")
    ledger, shelf = SqliteLedger(database), SqliteShelf(database)
    origin = Birth.AGENT.encode()
    contents = {digest(each.text.encode()): each.text.encode() for each in library()}
    changes = [
        Change(
            skill(each.name),
            "create",
            (Delta(DOCUMENT, None, digest(each.text.encode())), Delta(ORIGIN, None, digest(origin))),
            Author(Actor.AGENT),
        )
        for each in library()
    ]
    await ledger.record(changes, {**contents, digest(origin): origin}, NOW)
    await shelf.card({digest(each.text.encode()): cards()[each.name] for each in library()})
    try:
        yield shelf
    finally:
        await database.close()


async def found(shelf: Shelf, query: str) -> list[str]:
    """Names, best first, as skills_list(query) has them."""
    candidates = await shelf.search(words(query), CANDIDATES)
    return [
        each.name
        for each in rank(query, [(each, cards()[each.name].body, score) for each, score in candidates])
    ]


async def missed(shelf: Shelf, wanted: Sequence[Task]) -> list[Task]:
    return [task for task in wanted if task.skill not in (await found(shelf, task.text))[:FIRST]]


def without_rare_words(wanted: Sequence[Task]) -> list[Task]:
    """Words that fewer than three skills have, gone from the tasks."""
    counts = Counter(word for skill in library() for word in set(words(skill.text.replace("-", " "))))
    return [
        Task(" ".join(word for word in words(task.text) if counts[word] >= 3), task.skill) for task in wanted
    ]


async def test_a_task_finds_its_skill_among_the_first_ten(
    tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    practice = tier.random().sample(tasks("practice.json"), tier.size(short=60, full=260))
    async with shelved(tmp_path) as shelf:
        for name, asked, floor in (("unknown", tasks(), 0.80), ("practice", practice, 0.90)):
            lost, plain = await missed(shelf, asked), await missed(shelf, without_rare_words(asked))
            hits, bare = len(asked) - len(lost), len(asked) - len(plain)
            figures(
                f"{len(asked)} {name} tasks tried among {len(library()):,} skills, {hits} found in the first "
                f"{FIRST}, {bare} with rare words removed"
            )
            assert len(lost) <= (1 - floor) * len(asked), [f"{task.text} → {task.skill}" for task in lost]


async def test_a_skill_is_found_by_its_own_name_and_description(tmp_path: Path) -> None:
    async with shelved(tmp_path) as shelf:
        for each in library()[::100]:
            card = cards()[each.name]
            assert (await found(shelf, f"{card.name} {card.description}"))[0] == each.name
            candidates = [
                (listed, "", score)
                for listed, score in await shelf.search(words(card.description), CANDIDATES)
            ]
            assert each.name in [like.name for like in similar(card.name, card.description, candidates)][:3]


def test_the_sets_are_what_they_claim_to_be() -> None:
    names = [each.name for each in library()]
    assert len(names) == len(set(names)) == 5_000
    assert len(tasks()) == len({task.skill for task in tasks()}) == 100
    assert {task.skill for task in (*tasks(), *tasks("practice.json"))} <= set(names)
    assert not {task.text for task in tasks()} & {task.text for task in tasks("practice.json")}
