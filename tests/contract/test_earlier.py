"""What every store promises of the lines a session has left."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hone.core.errors import Missing
from hone.core.ids import SessionId
from hone.core.messages import user
from hone.core.ports import Header, Sessions
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from tests.contract.kinds import KINDS, kept
from tests.given import NOON

ONE, TWO = Prefix("openai/m", "system"), Prefix("openai/n", "system")
A, B = SessionId("aaaa"), SessionId("bbbb")


def said(*texts: str) -> Transcript:
    chain = Transcript(ONE.digest)
    for text in texts:
        chain = chain.then(user(text), Trust.OWNER, NOON)
    return chain


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sessions]:
    with kept(request.param, tmp_path) as stores:
        yield stores.sessions


async def test_the_lines_a_session_has_left_are_told_oldest_first_and_go_with_it(store: Sessions) -> None:
    with pytest.raises(Missing):
        await store.earlier(A)
    whole, short = said("one", "two", "three"), said("one", "notes")
    await store.start(Header(A, NOON), ONE, whole.nodes)
    assert await store.earlier(A) == ()
    await store.shorten(A, whole.head, short)
    longer = short.then(user("four"), Trust.OWNER, NOON)
    await store.append(A, longer.nodes[-1:])
    await store.move(A, TWO, longer.rooted(TWO.digest))
    await store.start(Header(B, NOON, parent=A, shared=0), ONE, said("five").nodes)
    left = await store.earlier(A)
    assert [(line.prefix, line.transcript.head) for line in left] == [(ONE, whole.head), (ONE, longer.head)]
    assert [message.text for message in left[0].transcript] == ["one", "two", "three"]
    assert await store.earlier(B) == ()
    await store.delete(A)
    with pytest.raises(Missing):
        await store.earlier(A)
