"""A8: whatever the provider does, a turn ends in an answer or one plain sentence, and nothing is lost."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hone import Hone
from hone.core.clock import ManualClock
from hone.core.events import Event, Notice
from hone.core.messages import Role, assistant
from hone.core.model import Restart, TextPiece
from hone.core.turn import Stop, Turn
from hone.models.fake_provider import FakeProvider
from hone.models.fake_provider.faults import FAULTS, first, refuse, refusing
from hone.models.fake_provider.shapes import Format
from hone.models.scripted import Script, call, lines, rounds
from hone.runtime.session import Session
from hone.settings import Settings
from tests.conftest import Figures, Tier
from tests.faults.furnish import furnish, provider
from tests.faults.house import FORMATS, unended, unsound

KEY = "STAGE_KEY"
FIRST_BYTE = 60.0
SENTENCES = {
    "400": "refused the request (400): ",
    "401": f"Set {KEY} to a valid key.",
    "403": f"Set {KEY} to a valid key.",
    "404-model": "Check the model's name.",
    "408": "is not able to answer now (408)",
    "429-after": "is not able to answer now (429)",
    "429-plain": "is not able to answer now (429)",
    "500": "is not able to answer now (500)",
    "502-html": "is not able to answer now (502): 502 Bad Gateway",
    "503": "is not able to answer now (503)",
    "529": "is not able to answer now (529)",
    "refused": "Nothing answers at 127.0.0.1:",
    "reset": "broke off",
    "half-stream": "closed the connection in the middle of its answer",
    "cut-in-call": "broke off in the middle of its answer",
    "bad-json": "sent something that is not",
    "empty": "empty reply",
    "overflow": "Start a new session",
    "silent": f"sent nothing for {FIRST_BYTE:g} seconds",
    "error-event": "verloaded",
}
"""What the user reads when a fault stays."""
ANSWERS = {"length": "cut at the model's output limit", "filter": "content filter"}
"""What is said beside an answer that is not whole."""
PASSING = {name for name in SENTENCES if name not in {"400", "401", "403", "404-model", "overflow", "silent"}}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "sk-test")


@dataclass
class Play:
    """One conversation with a provider that misbehaves from call `since` on, until `until`."""

    format: Format
    home: Path
    folder: Path
    script: Script = field(default_factory=lambda: rounds(assistant("I look.", call("todo")), "Here it is."))
    clock: ManualClock = field(default_factory=ManualClock)
    fault: str | None = None
    since: int = 0
    until: int = 10**6
    calls: int = 0
    events: list[Event] = field(default_factory=list)

    def choose(self, _: int) -> str | None:
        """Also lets the time pass that a silent provider takes: by now the caller waits for it."""
        number, self.calls = self.calls, self.calls + 1
        name = self.fault if self.since <= number < self.until else None
        if name == "silent":
            asyncio.get_running_loop().call_soon(self.clock.advance, FIRST_BYTE)
        return name

    def hone(self, url: str, tries: int = 2) -> Hone:
        settings = Settings(tries=tries, first_byte=FIRST_BYTE)
        server = provider(self.format, url, KEY)
        return furnish(self.home, self.folder, server, clock=self.clock, settings=settings)

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Notice)]

    @property
    def restarts(self) -> list[str]:
        return [event.reason for event in self.events if isinstance(event, Restart)]


async def meet(play: Play, hone: Hone) -> tuple[Session, Turn]:
    session = await hone.session()
    return session, await session.send("please do it", play.events.append)


async def recover(play: Play, hone: Hone, session: Session, stage: FakeProvider) -> list[str]:
    """The fault is gone: what is wrong with the rest of the conversation?"""
    wrong = await unsound(play.format, hone, session)
    play.fault = None
    turn = await session.send("and now?")
    if (turn.stop, turn.text) != (Stop.ANSWERED, "Here it is."):
        wrong.append(f"not answered afterwards: {turn.stop} {turn.error} {turn.text}")
    said = [message.text for message in (await hone.sessions.load(session.id)).transcript]
    wrong += [f"lost: {words}" for words in ("please do it", "and now?") if words not in said]
    return wrong + await unsound(play.format, hone, session) + stage.invalid


def misnamed(play: Play, turn: Turn) -> list[str]:
    """Whether the user was told what happened."""
    name = play.fault or ""
    if name in ANSWERS:
        told = any(ANSWERS[name] in notice for notice in play.notices)
        return [] if turn.stop is Stop.ANSWERED and told else [f"not told: {turn.stop} {play.notices}"]
    told = turn.stop is Stop.FAILED and SENTENCES[name] in turn.error
    return [] if told else [f"not told: {turn.stop} {turn.error!r} {turn.text!r}"]


async def suffer(play: Play) -> list[str]:
    if play.fault == "refused":
        return await suffer_refusal(play)
    async with FakeProvider(play.script, fault=play.choose) as stage, play.hone(stage.url) as hone:
        session, turn = await meet(play, hone)
        wrong = unended(turn) + misnamed(play, turn)
        return wrong + await recover(play, hone, session, stage)


async def suffer_refusal(play: Play) -> list[str]:
    with refusing() as url:
        hone = play.hone(url)
        session, turn = await meet(play, hone)
    async with FakeProvider(play.script, port=int(url.rpartition(":")[2])) as stage, hone:
        wrong = unended(turn) + misnamed(play, turn)
        return wrong + await recover(play, hone, session, stage)


def test_the_table_of_faults_is_complete() -> None:
    assert set(SENTENCES) | set(ANSWERS) == set(FAULTS)
    assert len(FAULTS) >= 21


@pytest.mark.parametrize("format", FORMATS)
def test_every_provider_fault_ends_in_an_answer_or_one_plain_sentence(
    format: Format, home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    failures: dict[int, list[str]] = {}
    cases = [(name, since) for name in FAULTS for since in ((0,) if name == "refused" else (0, 1))]
    drawn = list(tier.draws(short=len(cases), full=len(cases)))
    for draw in drawn:
        name, since = cases[draw.index]
        wrong = asyncio.run(suffer(Play(format, home, tmp_path, fault=name, since=since)))
        if wrong:
            failures[draw.index] = [f"{name} at call {since}", *wrong]
    lost = sum("lost: " in each for wrong in failures.values() for each in wrong)
    note = f"faults of a provider, {format}: {len(FAULTS)} kinds, at the first and the second call"
    figures.tally(len(drawn), got_in=len(failures), lost=lost, note=note, at=failures)
    assert failures == {}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", sorted(PASSING - {"refused"}))
async def test_a_passing_fault_is_outlived_by_patience(
    format: Format, name: str, home: Path, tmp_path: Path
) -> None:
    play = Play(format, home, tmp_path, lines("Here it is."), fault=name, until=2)
    async with FakeProvider(play.script, fault=play.choose) as stage, play.hone(stage.url, tries=4) as hone:
        session, turn = await meet(play, hone)
        assert (turn.stop, turn.text) == (Stop.ANSWERED, "Here it is.")
        assert play.clock.slept == ([1.0, 1.0] if name == "429-after" else [1.0, 2.0])
        assert len(play.restarts) == 2
        assert [message.role for message in session.transcript] == [Role.USER, Role.ASSISTANT]
        assert await unsound(format, hone, session) + stage.invalid == []


class Waking(ManualClock):
    """Something happens while one sleeps."""

    def __init__(self, wake: Callable[[int], Awaitable[None]]) -> None:
        super().__init__()
        self._wake = wake

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        await self._wake(len(self.slept))


@pytest.mark.parametrize("format", FORMATS)
async def test_a_server_that_comes_up_late_is_waited_for(format: Format, home: Path, tmp_path: Path) -> None:
    with refusing() as url:
        pass
    stage = FakeProvider(lines("Here I am."), port=int(url.rpartition(":")[2]))

    async def wake(slept: int) -> None:
        if slept == 2:
            await stage.__aenter__()

    clock = Waking(wake)
    async with Play(format, home, tmp_path, clock=clock).hone(url, tries=4) as hone:
        turn = await hone.run("are you there?")
    await stage.__aexit__(None, None, None)
    assert (turn.stop, turn.text, clock.slept) == (Stop.ANSWERED, "Here I am.", [1.0, 2.0])


@pytest.mark.parametrize(
    ("value", "slept"),
    [
        ("7", [7.0, 7.0]),
        ("0", [0.0, 0.0]),
        ("1.5", [1.5, 1.5]),
        ("Thu, 01 Jan 2026 00:00:30 GMT", [30.0, 0.0]),
        ("soon", [1.0, 2.0]),
        ("-3", [1.0, 2.0]),
        ("3600", []),
        ("9" * 400, []),
        ("Fri, 01 Jan 9999 00:00:00 GMT", []),
    ],
)
async def test_retry_after_is_honoured_unless_it_asks_for_too_much(
    value: str, slept: list[float], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FAULTS, "later", refuse(429, "Slow down.", retry_after=value))
    clock = ManualClock()
    play = Play("openai", home, tmp_path, clock=clock)
    async with (
        FakeProvider(lines("fine"), fault=first(2, "later")) as stage,
        play.hone(stage.url, tries=4) as hone,
    ):
        turn = await hone.run("hello?")
    assert clock.slept == slept
    said = turn.error.partition(" Try again in about 60 minutes, at ")
    assert (turn.stop, said[0]) == (
        (Stop.ANSWERED, "") if slept else (Stop.FAILED, "stage is not able to answer now (429): Slow down.")
    )
    assert bool(said[2]) is (value == "3600")


@pytest.mark.parametrize("format", FORMATS)
async def test_silence_ends_at_its_deadline_and_not_before(
    format: Format, home: Path, tmp_path: Path
) -> None:
    play = Play(format, home, tmp_path)
    asked = asyncio.Event()

    def choose(_: int) -> str:
        asked.set()
        return "silent"

    async with FakeProvider(lines("never"), fault=choose) as stage, play.hone(stage.url) as hone:
        session = await hone.session()
        sending = asyncio.create_task(session.send("anybody there?"))
        async with asyncio.timeout(60):
            await asked.wait()
        play.clock.advance(FIRST_BYTE - 0.001)
        for _ in range(100):
            await asyncio.sleep(0)
        assert not sending.done()
        play.clock.advance(0.001)
        turn = await sending
        assert turn.stop is Stop.FAILED
        assert SENTENCES["silent"] in turn.error
        assert len(stage.requests) == 1
        assert await unsound(format, hone, session) == []


@pytest.mark.parametrize("format", FORMATS)
async def test_a_stream_that_falls_silent_ends_too_and_what_was_shown_is_kept(
    format: Format, home: Path, tmp_path: Path
) -> None:
    play = Play(format, home, tmp_path)
    events = {"openai": 200, "anthropic": 500, "responses": 1_600}[format]
    async with (
        FakeProvider(lines("one two three four five"), pace=3600, chunk=events + 400) as stage,
        play.hone(stage.url) as hone,
    ):
        session = await hone.session()

        def emit(event: Event) -> None:
            play.events.append(event)
            if len([each for each in play.events if isinstance(each, TextPiece)]) == 1:
                asyncio.get_running_loop().call_soon(play.clock.advance, 3600)

        turn = await session.send("go", emit)
        assert turn.stop is Stop.FAILED
        assert "sent no more of its answer for 120 seconds." in turn.error
        assert turn.text.startswith("one ")
        assert turn.text.endswith(f"(cut short: {turn.error})")
        assert await unsound(format, hone, session) == []


@asynccontextmanager
async def two_stages(
    play: Play, spare: Format, fault: str
) -> AsyncIterator[tuple[Hone, FakeProvider, FakeProvider]]:
    play.fault = fault
    async with (
        FakeProvider(play.script, fault=play.choose) as bad,
        FakeProvider(rounds(assistant("I look.", call("todo")), "The spare says so.")) as good,
    ):
        providers = provider(play.format, bad.url, KEY), provider(spare, good.url)
        settings = Settings(tries=2, fallback="spare/other")
        async with furnish(play.home, play.folder, *providers, clock=play.clock, settings=settings) as hone:
            yield hone, bad, good


@pytest.mark.parametrize("spare", FORMATS)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("since", [0, 1])
@pytest.mark.parametrize("name", ["401", "503", "silent", "cut-in-call"])
async def test_a_fallback_takes_over_with_the_same_contents_in_a_new_segment(
    name: str, since: int, format: Format, spare: Format, home: Path, tmp_path: Path
) -> None:
    play = Play(format, home, tmp_path, since=since)
    async with two_stages(play, spare, name) as (hone, bad, good):
        session, turn = await meet(play, hone)
        assert (turn.stop, turn.text) == (Stop.ANSWERED, "The spare says so.")
        assert any(n.endswith("Going on with spare/other.") and SENTENCES[name] in n for n in play.notices)
        stored = await hone.sessions.load(session.id)
        assert stored.prefix.model == "spare/other"
        assert stored.transcript.root == stored.prefix.digest
        roles = [message.role for message in stored.transcript]
        assert roles == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
        assert await unsound(spare, hone, session) + bad.invalid + good.invalid == []
        before = len(bad.requests)
        assert (await session.send("go on")).stop is Stop.ANSWERED
        assert len(bad.requests) == before


async def test_a_fallback_that_fails_too_ends_in_its_own_sentence(home: Path, tmp_path: Path) -> None:
    play = Play("openai", home, tmp_path)
    async with two_stages(play, "anthropic", "500") as (hone, _, good):
        good.fault = "401"
        session, turn = await meet(play, hone)
        assert turn.stop is Stop.FAILED
        assert "spare refused the key (401)" in turn.error
        assert await unsound("anthropic", hone, session) == []


async def test_an_overflow_is_not_handed_to_the_fallback(home: Path, tmp_path: Path) -> None:
    play = Play("openai", home, tmp_path)
    async with two_stages(play, "anthropic", "overflow") as (hone, _, good):
        _, turn = await meet(play, hone)
        assert SENTENCES["overflow"] in turn.error
        assert good.requests == []
