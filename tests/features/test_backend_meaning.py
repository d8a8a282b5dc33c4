"""With an embedder, memories that words found are ranked by meaning, too; none is lost or added."""

import asyncio
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from hone.core.backend import MemoryItem
from hone.features.backends.meaning import rank_by_meaning
from tests.doubles.meanings import Told

AT = datetime(2026, 1, 1, tzinfo=UTC)
QUESTION = "Which editor does the owner like?"


def memory(key: str, value: str) -> MemoryItem:
    return MemoryItem(key, value, "ann", AT, AT, {})


async def test_the_memory_that_means_the_same_comes_first() -> None:
    found = [memory(f"note-{number}", f"Likes the owner of house {number}.") for number in range(4)]
    meant = memory("tools", "Writes everything in Vim.")
    told = Told((QUESTION, f"{meant.key}: {meant.value}"))
    assert (await rank_by_meaning(told, QUESTION, [*found, meant]))[0] == meant


class Mute:
    async def vectors(self, _texts: object, _purpose: str = "passage") -> tuple[bytes, ...]:
        return ()


async def test_the_order_by_words_stays_where_nobody_knows_the_meaning() -> None:
    found = [memory("a", "one"), memory("b", "two")]
    assert await rank_by_meaning(Mute(), QUESTION, found) == found
    assert await rank_by_meaning(Told(), QUESTION, []) == []


@given(st.lists(st.text("abc ", min_size=1, max_size=8), unique=True, max_size=6))
def test_no_memory_is_lost_or_added(values: list[str]) -> None:
    found = [memory(f"k{number}", value) for number, value in enumerate(values)]
    ranked = asyncio.run(rank_by_meaning(Told(), QUESTION, found))
    assert sorted(each.key for each in ranked) == sorted(each.key for each in found)
