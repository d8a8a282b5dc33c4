"""What every store promises of a conversation that is shortened."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hone.core.errors import Conflict, Missing
from hone.core.ids import SessionId
from hone.core.messages import user
from hone.core.ports import Header, Sessions
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.stores.sqlite import SqliteSessions
from tests.contract.kinds import KINDS, kept
from tests.given import NOON
from tests.stores.worker import OpenedSessions

PREFIX = Prefix("openai/m", "system")
A, B = SessionId("aaaa"), SessionId("bbbb")


def said(*texts: str) -> Transcript:
    chain = Transcript(PREFIX.digest)
    for text in texts:
        chain = chain.then(user(text), Trust.OWNER, NOON)
    return chain


WHOLE, SHORT = said("one", "two", "three", "four"), said("one", "notes", "four")


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sessions]:
    with kept(request.param, tmp_path) as stores:
        yield stores.sessions


async def begun(store: Sessions) -> None:
    await store.start(Header(A, NOON), PREFIX, WHOLE.nodes)


async def test_a_session_that_went_on_is_not_shortened(store: Sessions) -> None:
    with pytest.raises(Missing):
        await store.shorten(A, WHOLE.head, SHORT)
    await begun(store)
    for after, short in ((WHOLE.nodes[2].hash, SHORT), (WHOLE.head, Transcript(PREFIX.digest))):
        with pytest.raises(Conflict):
            await store.shorten(A, after, short)
    with pytest.raises(Conflict):
        await store.shorten(A, WHOLE.head, SHORT.rooted("another prefix"))
    assert list((await store.load(A)).transcript) == list(WHOLE)


async def test_it_goes_on_from_the_shorter_line_and_can_be_shortened_again(store: Sessions) -> None:
    await begun(store)
    await store.shorten(A, WHOLE.head, SHORT)
    longer = SHORT.then(user("five"), Trust.OWNER, NOON)
    await store.append(A, longer.nodes[-1:])
    assert (await store.load(A)).transcript.head == longer.head
    shorter = said("one", "more notes")
    await store.shorten(A, longer.head, shorter)
    assert list((await store.load(A)).transcript) == list(shorter)
    (summary,) = await store.list()
    assert (summary.messages, summary.opening) == (2, "one")


async def test_a_branch_keeps_the_long_line(store: Sessions) -> None:
    await begun(store)
    await store.start(Header(B, NOON, parent=A, shared=3), PREFIX, ())
    await store.shorten(A, WHOLE.head, SHORT)
    await store.delete(A)
    assert [message.text for message in (await store.load(B)).transcript] == ["one", "two", "three"]


async def test_what_was_said_stays_in_the_database_and_goes_with_the_session(tmp_path: Path) -> None:
    store = OpenedSessions.open(tmp_path / "hone.db")
    await begun(store)
    await store.shorten(A, WHOLE.head, SHORT)
    assert await contents(store) == 5
    await store.delete(A)
    assert await contents(store) == 0
    await store.close()


async def contents(store: SqliteSessions) -> int:
    return int(await store._database.read(lambda found: found.execute("SELECT count(*) FROM contents").get))
