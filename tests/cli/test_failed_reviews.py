"""E6: a review that fails is one line in the chat, and the owner can switch it off."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Literal

import pytest

from hone import Hone
from hone.cli.lessons import Lessons
from hone.core.errors import Rejected
from hone.core.messages import assistant
from hone.core.model import Piece, Reply
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.settings import Settings
from hone.settings.sections import Learning

LINE = "✗ A review failed: The provider says no. It stays queued and is tried again later. · /reviews"


class Refusing:
    """Answers, and refuses to look back."""

    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        del prefix
        if "ook back over" in transcript.nodes[-1].message.text:
            raise Rejected("The provider says no.")
        yield Reply(assistant("Well."))


@pytest.mark.parametrize(("show", "told"), [("on", 1), ("verbose", 1), ("off", 0)])
async def test_a_review_that_fails_is_told_once_for_each_reason(
    home: Path, show: Literal["on", "verbose", "off"], told: int
) -> None:
    heard: list[str] = []

    def put(text: str) -> bool:
        heard.append(text)
        return True

    settings = Settings(learning=Learning(turns=1, show=show))
    async with Hone(home=home, model=Refusing(), settings=settings) as hone:
        Lessons(hone, put).begin()
        for words in ("Always answer in one sentence.", "Never use tabs."):
            session = await hone.session()
            await session.send(words)
        await hone.background.drain()
        assert [job.error for job in await hone.jobs.jobs()] == ["The provider says no."] * 2
    assert [" ".join(text.split()) for text in heard] == [LINE] * told
