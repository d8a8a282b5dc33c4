"""F1: many sessions at once in one process; each keeps its own."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import quantiles
from time import perf_counter

import pytest

from hone import Hone
from hone.core.messages import Message, Role, assistant
from hone.core.turn import Stop
from hone.models.fake_provider import FakeProvider
from hone.models.fake_provider.shapes import Format
from hone.models.scripted import call
from hone.runtime.session import Session
from tests.conftest import Figures, Tier
from tests.faults.furnish import furnish, provider
from tests.faults.house import FORMATS, unsound

TURNS = 3
CANARY = re.compile(r"canary-\d+-")


def speak(messages: Sequence[Message]) -> Message:
    """Writes the user's canary into a file of its own, reads it, and says what it read."""
    asked = max(index for index, message in enumerate(messages) if message.role is Role.USER)
    words, since = messages[asked].text, messages[asked + 1 :]
    match [message.result.text for message in since if message.result]:
        case []:
            return assistant("I write.", call("write_file", path=f"{words}.txt", content=words))
        case [_]:
            return assistant("I read.", call("read_file", path=f"{words}.txt"), call("todo"))
        case [_, read, _]:
            return assistant(f"It says {read}.")
    raise AssertionError(f"{len(since)} messages since the user's")


async def talk(hone: Hone, number: int, seconds: list[float]) -> Session:
    session = await hone.session()
    for turn in range(TURNS):
        words, begun = f"canary-{number}-{turn}", perf_counter()
        ended = await session.send(words)
        seconds.append(perf_counter() - begun)
        assert (ended.stop, ended.text) == (Stop.ANSWERED, f"It says {words}."), ended.error
    return session


@pytest.mark.parametrize("format", FORMATS)
async def test_a_crowd_of_sessions_loses_nothing_and_mixes_nothing(
    format: Format, home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    count = tier.size(short=24, full=200)
    seconds: list[float] = []
    async with (
        FakeProvider(speak) as stage,
        furnish(home, tmp_path, provider(format, stage.url)) as hone,
    ):
        sessions = await asyncio.gather(*(talk(hone, number, seconds) for number in range(count)))
        assert stage.invalid == []
        for body in stage.bodies:
            assert len(set(CANARY.findall(body.decode()))) == 1
    async with furnish(home, tmp_path, provider(format, stage.url)) as hone:
        assert len(await hone.sessions.list()) == count
        for number, session in enumerate(sessions):
            assert await unsound(format, hone, session) == []
            whole = b"".join(node.encoded for node in (await hone.sessions.load(session.id)).transcript.nodes)
            assert set(CANARY.findall(whole.decode())) == {f"canary-{number}-"}
            assert len(await hone.sessions.spending(session.id)) == TURNS * 3
    worst = quantiles(seconds, n=100)[-1]
    figures(
        f"{count} sessions at once, {format}: {count * TURNS} turns tried (99 of 100 within {worst:.2f} s), "
        "0 lost, 0 invalid, 0 mixed up"
    )
