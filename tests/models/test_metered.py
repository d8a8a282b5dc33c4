"""E3: a run stops at its number of tokens."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.errors import Rejected
from hone.core.messages import assistant
from hone.core.model import Piece, Reply, TextPiece, Usage
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.models.scripted import Scripted, lines
from hone.models.wrappers import Metered
from tests.rig import PREFIX, asked

amounts = st.integers(0, 1_000)


class Costly:
    """Each call takes what the list says."""

    def __init__(self, *costs: tuple[int, int]) -> None:
        self._costs = iter(costs)
        self.calls = 0
        self.closed = 0

    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        self.calls += 1
        tokens, output = next(self._costs)
        try:
            yield TextPiece("word")
            yield Reply(assistant("word"), usage=Usage(tokens, cached=tokens // 2, output=output))
        finally:
            self.closed += 1


async def pieces(model: Metered) -> list[Piece]:
    return [piece async for piece in model.stream(PREFIX, asked())]


async def spend(costs: list[tuple[int, int]], most: int) -> None:
    inner = Costly(*costs)
    model = Metered(inner, most)
    for number, (tokens, output) in enumerate(costs):
        before = sum(each + other for each, other in costs[:number])
        if before >= most:
            with pytest.raises(Rejected, match=f"limit of {most:,} tokens"):
                await pieces(model)
            assert inner.calls == number
            return
        assert len(await pieces(model)) == 2
        assert model.spent == before + tokens + output
    assert inner.closed == inner.calls


@given(st.lists(st.tuples(amounts, amounts), min_size=1), amounts)
def test_no_call_is_made_once_the_tokens_are_spent_and_every_one_before_is(
    costs: list[tuple[int, int]], most: int
) -> None:
    asyncio.run(spend(costs, most))


async def test_what_is_passed_on_is_what_the_model_said() -> None:
    plain, metered = Scripted(lines("one two three")), Metered(Scripted(lines("one two three")), 10**6)
    assert await pieces(metered) == [piece async for piece in plain.stream(PREFIX, asked())]


async def test_a_reader_that_leaves_in_the_middle_closes_the_stream() -> None:
    inner = Costly((1, 1))
    stream = Metered(inner, 10).stream(PREFIX, asked())
    await anext(stream)
    await stream.aclose()
    assert inner.closed == 1
