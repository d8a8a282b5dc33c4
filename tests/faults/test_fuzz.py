"""A7: whatever a model sends, the user sees no exception, and any provider would take the history."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from hone import Hone
from hone.core.clock import ManualClock
from hone.core.permit import Effect
from hone.core.turn import Stop, Turn
from hone.models.fake_provider import FakeProvider
from hone.models.fake_provider.faults import FAULTS, Refusal
from hone.models.fake_provider.playback import Framing, stream
from hone.models.fake_provider.shapes import Format
from hone.models.scripted import lines
from hone.runtime.session import Session
from hone.settings import Settings
from tests.conftest import Draw, Figures, Tier
from tests.faults.furnish import furnish, provider
from tests.faults.house import FORMATS, unended, unsound
from tests.faults.malformed import Output, make, sample
from tests.rig import Puppet

FRESH = 25
"""A session goes on for so many outputs."""
PLAYED = "played"
TOOLS = (Puppet("look", frozenset({Effect.READ}), readonly=True), Puppet("change", frozenset({Effect.WRITE})))


@dataclass
class Bench:
    """A stage that plays what is put up, then says what its script says."""

    format: Format
    stage: FakeProvider
    patch: pytest.MonkeyPatch
    waiting: list[Output] = field(default_factory=list)

    def choose(self, _: int) -> str | None:
        output = self.waiting.pop() if self.waiting else None
        streamed = output is not None and output.status == 200 and output.media_type == "text/event-stream"
        self.stage.raw = output.body if output and streamed else None
        if output is None or streamed:
            return None
        refusal = Refusal(output.status, {self.format: output.body}, media_type=output.media_type)
        self.patch.setitem(FAULTS, PLAYED, refusal)
        return PLAYED


@asynccontextmanager
async def bench(format: Format, home: Path, folder: Path, tries: int) -> AsyncIterator[tuple[Bench, Hone]]:
    stage = FakeProvider(lines("All is well."), keep=False)
    with pytest.MonkeyPatch.context() as patch:
        ready = Bench(format, stage, patch)
        stage.fault = ready.choose
        settings, clock = Settings(tries=tries, calls=8), ManualClock()
        async with stage:
            server = provider(format, stage.url)
            hone = furnish(home, folder, server, clock=clock, tools=TOOLS, settings=settings)
            async with hone:
                yield ready, hone


@contextmanager
def told(format: Format, output: Output) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        error.add_note(f"{format}, {output.kind}: {output.body[:2000]!r}")
        raise


async def endure(bench: Bench, hone: Hone, session: Session, output: Output, times: int) -> Turn:
    bench.waiting[:] = [output] * times
    turn = await session.send("go on")
    assert unended(turn) == []
    assert await unsound(bench.format, hone, session) == []
    assert bench.stage.invalid == []
    return turn


async def recover(bench: Bench, session: Session) -> None:
    bench.waiting.clear()
    bench.stage.cut_at = None
    turn = await session.send("are you still there?")
    assert (turn.stop, turn.text, bench.stage.invalid) == (Stop.ANSWERED, "All is well.", [])


@pytest.mark.parametrize("format", FORMATS)
async def test_malformed_outputs_raise_nothing_and_leave_valid_histories(
    format: Format, home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    drawn = list(tier.draws(short=120, full=5_000))
    endings: Counter[str] = Counter()
    for tries, some in batches(drawn):
        async with bench(format, home, tmp_path, tries) as (ready, hone):
            session = await hone.session()
            for draw in some:
                output = make(draw.random, format)
                with draw, told(format, output):
                    turn = await endure(ready, hone, session, output, draw.random.randint(1, tries))
                    endings[str(turn.stop)] += 1
            await recover(ready, session)
    ends = ", ".join(f"{number} {stop}" for stop, number in sorted(endings.items()))
    figures.tally(len(drawn), note=f"malformed outputs, {format}: {ends}, 0 invalid histories")


def batches(drawn: Sequence[Draw]) -> Iterator[tuple[int, Sequence[Draw]]]:
    """Those that share a session. How often a call may be tried goes by the index."""
    for tries in (1, 2, 3):
        same = [draw for draw in drawn if draw.index % 3 + 1 == tries]
        for start in range(0, len(same), FRESH):
            yield tries, same[start : start + FRESH]


@pytest.mark.parametrize("format", FORMATS)
async def test_streams_cut_at_any_byte_raise_nothing_and_leave_valid_histories(
    format: Format, home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    random = Random(4)
    whole = b"".join(data for _, data in stream(format, sample(random, odd=False), Framing("scripted")))
    tried = 0
    async with bench(format, home, tmp_path, 1) as (ready, hone):
        for draw in tier.draws(short=60, full=len(whole)):
            if tried % FRESH == 0:
                session = await hone.session()
            tried += 1
            ready.stage.cut_at = draw.index
            output = Output("cut", whole)
            with told(format, output):
                turn = await endure(ready, hone, session, output, 1)
                assert turn.stop is Stop.FAILED
        await recover(ready, session)
    figures.tally(tried, note=f"streams cut at a byte, {format}, 0 invalid histories")
