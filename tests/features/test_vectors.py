"""F2: vectors are made beside the conversation. Search uses those there are, and words alone without any."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from hone.core.clock import ManualClock
from hone.core.embedding import Coverage, Purpose
from hone.core.recall import Query
from hone.features.recall.asking import MeaningRecall
from hone.features.recall.making import BATCH, CLAIM, VectorMaker
from hone.features.recall.meanings import CHUNK, StoredMeanings
from hone.stores.database import Database
from hone.stores.home import Stores, over
from tests.contract.test_vectors import say
from tests.doubles.embedder import WordEmbedder


class Bench:
    """A store with messages, an embedder with moods, and the maker between them."""

    def __init__(
        self, home: Path, embedder: WordEmbedder | None = None, *, busy: Sequence[bool] = ()
    ) -> None:
        self.clock, self.said = ManualClock(), list[str]()
        self.stores: Stores = over(home, Database.in_memory())
        self.embedder = embedder or WordEmbedder()
        self._busy = list(busy)
        self.maker = VectorMaker(
            self.stores.vectors, self.open, self.stores.claims, self.clock, self.said.append, self._is_busy
        )
        self.meanings = StoredMeanings(self.stores.vectors, self.open, self.clock, self.said.append)
        self.recall = MeaningRecall(self.stores.recall, self.meanings)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.maker.close()
        await self.stores.close()

    async def open(self) -> WordEmbedder | None:
        return self.embedder

    def _is_busy(self) -> bool:
        return bool(self._busy) and self._busy.pop(0)

    async def covered(self) -> Coverage:
        return await self.stores.vectors.coverage(self.embedder.id)

    async def found(self, words: str, **more: object) -> list[str]:
        result = await self.recall.search(Query(words, **more))  # type: ignore[arg-type]
        return [hit.passage.text for hit in result.hits]


async def until(bench: Bench, left: int = 0) -> None:
    for _ in range(5_000):
        if (await bench.covered()).left == left:
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to that")


async def test_an_embedder_that_fails_is_tried_again_ever_more_seldom_and_said_once(tmp_path: Path) -> None:
    async with Bench(tmp_path) as bench:
        await say(bench.stores, "a", *(f"Number {each}." for each in range(40)))
        bench.embedder.fails = 18
        bench.maker.attend()
        await until(bench)
        assert [each for each in bench.clock.slept if each >= 2] == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
        assert bench.said == ["New messages are found by their words alone for now: The embedder is away."]
        assert await bench.covered() == Coverage(40, 0)


async def test_a_text_that_is_refused_does_not_hold_up_the_others(tmp_path: Path) -> None:
    async with Bench(tmp_path, WordEmbedder(refused="forbidden")) as bench:
        await say(
            bench.stores, "a", *(f"Number {each}." for each in range(20)), "A forbidden word.", "The end."
        )
        bench.maker.attend()
        await until(bench)
        assert (await bench.found("forbidden"))[0] == "A forbidden word."


async def test_the_users_turn_goes_first(tmp_path: Path) -> None:
    async with Bench(tmp_path, WordEmbedder(), busy=[True] * 5) as bench:
        await say(bench.stores, "a", *(f"Number {each}." for each in range(2 * BATCH)))
        await bench.maker.fill()
        assert bench.clock.slept.count(0.5) == 5
        assert [len(texts) for texts in bench.embedder.calls] == [BATCH, BATCH]


async def test_one_process_at_a_time_makes_them(tmp_path: Path) -> None:
    async with Bench(tmp_path) as bench:
        await say(bench.stores, "a", "Hello.", "Good day.")
        async with bench.stores.claims.hold(CLAIM):
            assert not await bench.maker.fill()
            assert bench.embedder.calls == []
        assert await bench.maker.fill()
        assert await bench.covered() == Coverage(2, 0)


async def test_what_shares_no_word_with_the_question_is_found_by_its_meaning(tmp_path: Path) -> None:
    async with Bench(tmp_path) as bench:
        await say(bench.stores, "a", "Arzt kaufte Haus.", "Very good.", "Nice weather.", "Yes.")
        question = "Who is the doctor that bought a home?"
        assert "Arzt kaufte Haus." not in await bench.found(question)
        await bench.maker.fill()
        assert (await bench.found(question))[0] == "Arzt kaufte Haus."
        assert await bench.found('"bought a home"') == []


async def test_messages_without_a_vector_yet_are_found_by_their_words(tmp_path: Path) -> None:
    async with Bench(tmp_path) as bench:
        await say(bench.stores, "a", "The doctor came by car.", "Fine.", "Nice weather.", "Yes.")
        await bench.maker.fill()
        await say(bench.stores, "b", "The boiler leaks.", "Call a plumber.")
        assert (await bench.found("Where does the boiler leak?"))[0] == "The boiler leaks."


class Hanging(WordEmbedder):
    """Answers when somebody is no longer waiting. Somebody who waits lets the time pass."""

    def __init__(self, clock: ManualClock, host: str = "") -> None:
        super().__init__()
        self._clock = clock
        self.host = host

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[bytes]:
        self.calls.append(tuple(texts))
        self._clock.advance(60)
        await asyncio.Event().wait()
        return ()


async def test_a_search_does_not_wait_for_an_embedder_that_hangs_or_fails(tmp_path: Path) -> None:
    async with Bench(tmp_path) as bench:
        await say(bench.stores, "a", "The boiler leaks.", "Call a plumber.")
        await bench.maker.fill()
        bench.embedder.fails = 1
        assert (await bench.found("boiler"))[0] == "The boiler leaks."
        assert bench.said == ["Search goes by words alone for now: The embedder is away."]
        for host, seconds in (("embed.example", 2), ("", 10)):
            bench.embedder = Hanging(bench.clock, host)
            assert (await bench.found("boiler"))[0] == "The boiler leaks."
            assert len(bench.embedder.calls) == 1
            assert f"did not answer within {seconds} seconds" in bench.said[-1]


async def test_short_texts_are_embedded_once_and_questions_are_not_stored(tmp_path: Path) -> None:
    async with Bench(tmp_path) as bench:
        texts = [f"Skill {number}" for number in range(CHUNK + 3)]
        first = await bench.meanings.vectors(texts)
        calls = len(bench.embedder.calls)
        assert await bench.meanings.vectors([*reversed(texts)]) == list(reversed(first))
        assert len(bench.embedder.calls) == calls == 2
        await bench.meanings.vectors(["A question."], "question")
        assert await bench.stores.vectors.cached("words", ["A question."]) == {}


async def test_short_texts_that_take_too_long_are_made_later(tmp_path: Path) -> None:
    async with Bench(tmp_path) as bench:
        working, bench.embedder = bench.embedder, Hanging(bench.clock)
        assert await bench.meanings.vectors(["One.", "Two."]) == ()
        bench.embedder = working
        assert await bench.meanings.make_later(working)
        assert not await bench.meanings.make_later(working)
        assert set(await bench.stores.vectors.cached("words", ["One.", "Two."])) == {"One.", "Two."}
