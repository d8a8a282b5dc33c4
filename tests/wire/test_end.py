"""Where a reply ends: what breaks after its end takes nothing from it."""

from pathlib import Path

import pytest

from hone import Hone
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import lines
from tests.wire.test_fork import FORMATS, point


@pytest.mark.parametrize("wire", FORMATS)
async def test_a_whole_reply_is_taken_although_the_connection_breaks_right_after_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wire: str
) -> None:
    async with FakeProvider(lines("whole"), cut_at=10**9) as stage:
        point(monkeypatch, wire, stage.url)
        async with Hone(folder=tmp_path) as hone:
            turn = await hone.run("hi")
    assert (turn.text, len(stage.bodies)) == ("whole", 1)
