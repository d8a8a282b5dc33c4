"""F2: what the vectors of messages promise: one for each content, of one embedder, gone with the content."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hone.core.embedding import Coverage, Unembedded
from hone.core.ids import SessionId
from hone.core.messages import assistant, user
from hone.core.ports import Header
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.stores.home import Stores
from tests.contract.kinds import KINDS, kept, new_owner, postgres, reference, sqlite
from tests.contract.test_ledger import NOW
from tests.doubles.embedder import WordEmbedder
from tests.tier import fewer

PREFIX = Prefix("scripted/one", "One.")
ONE, TWO = WordEmbedder("one"), WordEmbedder("two")


@pytest.fixture(params=KINDS)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    with kept(request.param, tmp_path) as stores:
        yield stores


async def say(stores: Stores, session: str, *texts: str) -> None:
    chain = Transcript(PREFIX.digest)
    for text in texts:
        chain = chain.then(user(text) if len(chain) % 2 == 0 else assistant(text), Trust.OWNER, NOW)
    await stores.sessions.start(Header(SessionId(session), NOW), PREFIX, chain.nodes)


async def step(stores: Stores, embedder: WordEmbedder, limit: int = 2) -> int:
    found = await stores.vectors.missing(embedder.id, limit)
    vectors = await embedder.embed([each.text for each in found], "passage")
    await stores.vectors.put(embedder.id, list(zip(found, vectors, strict=True)))
    return len(found)


async def fill(stores: Stores, embedder: WordEmbedder) -> int:
    await stores.vectors.adopt(embedder.id)
    made = 0
    while count := await step(stores, embedder):
        made += count
    return made


async def test_what_was_said_twice_gets_one_vector(stores: Stores) -> None:
    await say(stores, "a", "Hello.", "Done.", "More.")
    await say(stores, "b", "Hello.", "Done.")
    assert await fill(stores, ONE) == 3
    assert await stores.vectors.coverage("one") == Coverage(3, 0)


async def test_a_content_that_is_deleted_or_replaced_meanwhile_gets_no_vector(stores: Stores) -> None:
    await say(stores, "a", "The first.", "The second.")
    await stores.vectors.adopt("one")
    found = await stores.vectors.missing("one", 10)
    await stores.sessions.delete(SessionId("a"))
    await say(stores, "b", "Something else.", "And more.")
    await stores.vectors.put("one", [(each, bytes(64)) for each in found])
    assert await stores.vectors.coverage("one") == Coverage(0, 2)
    assert await fill(stores, ONE) == 2


async def test_an_embedder_that_is_no_longer_in_use_adds_nothing(stores: Stores) -> None:
    await say(stores, "a", "The first.", "The second.")
    await stores.vectors.adopt("one")
    found = await stores.vectors.missing("one", 10)
    await stores.vectors.adopt("two")
    await stores.vectors.put("one", [(each, bytes(64)) for each in found])
    assert await stores.vectors.missing("one", 10) == ()
    assert await stores.vectors.coverage("one") == Coverage(0, 2)


async def test_another_embedder_makes_all_of_them_again(stores: Stores) -> None:
    await say(stores, "a", *(f"Message {number}." for number in range(9)))
    await fill(stores, ONE)
    await stores.vectors.adopt("two")
    await step(stores, TWO, limit=4)
    assert await stores.vectors.coverage("two") == Coverage(4, 5)
    assert await fill(stores, TWO) == 5
    assert await stores.vectors.coverage("one") == Coverage(0, 9)


async def test_short_texts_are_kept_by_embedder(stores: Stores) -> None:
    await stores.vectors.cache("one", {"a": b"1", "b": b"2"})
    assert await stores.vectors.cached("one", ["b", "c", "a"]) == {"a": b"1", "b": b"2"}
    assert await stores.vectors.cached("two", ["a"]) == {}


Act = tuple[str, object]
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.lists(st.integers(0, 12), min_size=1, max_size=5)),
        st.tuples(st.just("delete"), st.integers(0, 9)),
        st.tuples(st.just("step"), st.tuples(st.sampled_from(["one", "two"]), st.integers(1, 4))),
        st.tuples(st.just("late"), st.sampled_from(["one", "two"])),
    ),
    max_size=25,
)


@settings(max_examples=40)
@given(ACTS)
def test_none_is_missing_and_none_is_of_another_embedder_whatever_happens(acts: list[Act]) -> None:
    """Also if contents come and go, embedders change, and a batch is stored long after it was read."""
    asyncio.run(live(acts, reference(), sqlite("sqlite-memory", Path())))


@pytest.mark.timeout(3_600)
@fewer(8)
@given(ACTS)
def test_on_postgresql_none_is_missing_and_none_is_of_another_embedder(acts: list[Act]) -> None:
    asyncio.run(live(acts, reference(), postgres(new_owner())))


async def live(acts: list[Act], *kinds: Stores) -> None:
    for stores in kinds:
        await act(stores, acts)
    for embedder in (ONE, TWO):
        for stores in kinds:
            await fill(stores, embedder)
        covered = [await stores.vectors.coverage(embedder.id) for stores in kinds]
        assert covered == [Coverage(covered[0].made, 0)] * len(kinds)
    for stores in kinds:
        await stores.close()


async def act(stores: Stores, acts: list[Act]) -> None:
    late: list[tuple[str, list[tuple[Unembedded, bytes]]]] = []
    for number, (kind, what) in enumerate(acts):
        match kind, what:
            case "say", list(words):
                await say(stores, f"s{number}", *(f"Number {word}." for word in words))
            case "delete", int(which):
                known = [each.header.id for each in await stores.sessions.list()]
                if known:
                    await stores.sessions.delete(sorted(known)[which % len(known)])
            case "step", (str(name), int(limit)):
                await stores.vectors.adopt(name)
                await step(stores, ONE if name == "one" else TWO, limit)
            case "late", str(name):
                for held in late:
                    await stores.vectors.put(*held)
                found = await stores.vectors.missing(name, 3)
                late = [(name, [(each, bytes(64)) for each in found])]
