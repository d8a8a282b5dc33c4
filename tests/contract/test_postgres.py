"""J1: over any history PostgreSQL and the reference agree, whatever the port; any text survives."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.ids import SessionId
from hone.core.messages import Message, sound, user
from hone.core.ports import Header
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.stores.home import Stores
from hone.stores.postgres.text import adapt, array, escape, unescape
from tests import databases
from tests.contract import test_jobs, test_ledger, test_looks, test_outbox, test_sessions, test_shelf
from tests.contract.kinds import new_owner, postgres, reference
from tests.contract.test_sessions import NOW, PREFIX, A, facts
from tests.tier import fewer

TABLES = ("sessions", "nodes", "chains", "contents", "prefixes", "counts", "looks", "histories")
TEXTS = st.text(st.one_of(st.characters(), st.sampled_from("\0\x01\x02\uffff\U0010ffff")))


@pytest.fixture(autouse=True, scope="module")
def server() -> str:
    """Skip before a law is drawn, not inside of it."""
    return databases.shared()


def ask(query: str, owner: str) -> list[Any]:
    """As a superuser, whom no policy holds back."""
    with psycopg.connect(databases.shared(), autocommit=True) as connection:
        return [value for (value,) in connection.execute(query, {"owner": owner})]


def side_by_side(compare: Callable[[Sequence[Stores]], Coroutine[Any, Any, Any]]) -> None:
    """Compare what the stores of a new owner do with what the reference does."""
    asyncio.run(compare((reference(), postgres(new_owner()))))


@fewer(15)
@given(st.lists(test_sessions.STEPS, min_size=5, max_size=20))
def test_sessions_agree_with_the_reference_and_nothing_is_left_behind(steps: list[Any]) -> None:
    owner = new_owner()
    contents = "SELECT digest FROM hone.contents WHERE owner = %(owner)s"
    kinds = (reference(), postgres(owner))
    asyncio.run(test_sessions.compare(kinds, steps, lambda: ask(contents, owner)))
    for table in TABLES:
        assert ask(f"SELECT count(*) FROM hone.{table} WHERE owner = %(owner)s", owner) == [0], table


@fewer(15)
@given(st.lists(test_jobs.DEEDS, min_size=5, max_size=20))
def test_jobs_agree_with_the_reference(deeds: list[Any]) -> None:
    side_by_side(lambda kinds: test_jobs.compare(kinds, deeds))


@fewer(15)
@given(st.lists(test_looks.DEEDS, min_size=5, max_size=20))
def test_looks_agree_with_the_reference(deeds: list[Any]) -> None:
    side_by_side(lambda kinds: test_looks.compare(kinds, deeds))


@fewer(15)
@given(test_ledger.BATCHES)
def test_ledgers_agree_with_the_reference(batches: list[Any]) -> None:
    side_by_side(lambda kinds: test_ledger.compare(kinds, batches))


@fewer(15)
@given(test_outbox.acts)
def test_outboxes_agree_with_the_reference(acts: list[tuple[str, int]]) -> None:
    side_by_side(lambda kinds: test_outbox.compare(kinds, acts))


@fewer(15)
@given(st.lists(test_shelf.STEPS, min_size=1, max_size=12))
def test_skill_catalogs_agree_with_the_reference(steps: list[Any]) -> None:
    side_by_side(lambda kinds: test_shelf.compare(kinds, steps))


@given(TEXTS, TEXTS)
def test_an_escaped_text_holds_no_nul_and_keeps_its_place_and_its_beginnings(one: str, two: str) -> None:
    assert (unescape(escape(one)), "\0" in escape(one)) == (one, False)
    assert (escape(one) < escape(two)) is (one < two)
    assert escape(one + two).startswith(escape(one))
    assert escape(two).startswith(escape(one)) is two.startswith(one)


@fewer(25)
@given(
    st.lists(st.none() | TEXTS | st.sampled_from(["", "NULL", " ", "{}", '"', "\\", "a,b"])),
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)),
    st.lists(st.none() | st.floats(allow_nan=False)),
    st.lists(st.booleans()),
)
def test_the_server_reads_any_array_as_it_was_written(
    texts: list[str | None], numbers: list[int | None], shares: list[float | None], flags: list[bool]
) -> None:
    wanted: list[list[Any]] = [[sound(text) if text else text for text in texts], numbers, shares, flags]
    with psycopg.connect(databases.shared(), autocommit=True) as connection:
        adapt(connection)
        query = "SELECT %s::text[], %s::bigint[], %s::double precision[], %s::boolean[]"
        read = connection.execute(query, [array(each) for each in wanted]).fetchone()
    assert read
    assert list(read) == wanted


@fewer(25)
@given(st.lists(TEXTS, min_size=1, max_size=8, unique=True), TEXTS)
def test_any_text_is_found_sorted_and_searched_by_its_beginning_as_it_was_written(
    texts: list[str], beginning: str
) -> None:
    names = sorted({sound(text) for text in texts})

    async def story(stores: Stores) -> None:
        for name in names:
            header = Header(SessionId(name), NOW, title=name, folder=name)
            transcript = Transcript(PREFIX.digest).then(user("x"), Trust.OWNER, NOW)
            await stores.sessions.start(header, PREFIX, transcript.nodes, test_looks.look())
        assert [each.session for each in await stores.jobs.looks()] == names
        for name in names:
            header = (await stores.sessions.load(SessionId(name))).header
            assert (header.id, header.title, header.folder) == (name, name, name)
        matching = [name for name in names if name.startswith(sound(beginning))]
        if len(matching) == 1:
            assert await stores.sessions.find(beginning) == matching[0]

    asyncio.run(story(postgres(new_owner())))


@fewer(15)
@given(
    st.lists(
        st.tuples(test_sessions.ANY_MESSAGE, st.sampled_from(Trust), test_sessions.TIMES),
        min_size=1,
        max_size=5,
    )
)
def test_any_message_at_any_time_comes_back(said: list[tuple[Message, Trust, datetime]]) -> None:
    transcript = Transcript(PREFIX.digest)
    for message, trust, at in said:
        transcript = transcript.then(message, trust, at)

    async def story(stores: Stores) -> Transcript:
        await stores.sessions.start(Header(A, NOW), PREFIX, transcript.nodes[:1])
        await stores.sessions.append(A, transcript.nodes[1:])
        return (await stores.sessions.load(A)).transcript

    assert facts(asyncio.run(story(postgres(new_owner()))).nodes) == facts(transcript.nodes)
