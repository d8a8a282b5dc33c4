"""A8: bytes that no provider should send, trickles and floods among them, end within their bounds."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from hone import Hone
from hone.core.turn import Stop, Turn
from hone.models.fake_provider import FakeProvider
from hone.models.fake_provider.disorder import DISORDER
from hone.models.fake_provider.faults import FAULTS
from hone.models.fake_provider.shapes import Format
from hone.models.scripted import lines
from hone.settings import Settings
from hone.settings.sections import BoundSettings
from tests.conftest import Figures, Tier
from tests.faults.furnish import furnish, provider
from tests.faults.house import FORMATS, unended, unsound
from tests.faults.test_providers import KEY, Play, meet, recover
from tests.models.loopback import turn as turn_loop

SIZE = 20_000
ADDRESS = "Check the address in use: http://127.0.0.1:"
SENTENCES = {
    "204": f"answered 204 instead of 200, without an answer. {ADDRESS}",
    "202": f"answered 202 instead of 200, without an answer. {ADDRESS}",
    "301": "redirects to https://new.example/v2/chat (301). Hone does not follow",
    "307": "redirects to /somewhere/else (307). Hone does not follow",
    "302-nowhere": "redirects without an address (302). Hone does not follow",
    "304": "redirects without an address (304). Hone does not follow",
    "511": "answered with a web page (Hotel Wi-Fi). You may have to log in to this network first.",
    "portal": "answered with a web page (Hotel Wi-Fi). You may have to log in to this network first.",
    "page-as-json": "answered with a web page (Hotel Wi-Fi). You may have to log in to this network first.",
    "page-as-events": "answered with a web page (Hotel Wi-Fi). You may have to log in to this network first.",
    "no-body": f"sent an empty answer. {ADDRESS}",
    "no-json": f"sent an empty answer. {ADDRESS}",
    "no-chunks": f"sent an empty answer. {ADDRESS}",
    "only-comments": "ended the connection before its answer began.",
    "plain-words": "sent something that is neither JSON nor an event: upstream is on fire.",
    "length-too-short": "broke off in the middle of its answer.",
    "length-nonsense": "announced an answer of impossible length.",
    "length-twice": "announced an answer of impossible length.",
    "gzip": "compressed its answer (gzip) although it was asked not to.",
    "deflate": "compressed its answer (deflate) although it was asked not to.",
    "br": "compressed its answer (br) although it was asked not to.",
    "gzip-400": "refused the request (400): the reason is compressed (gzip), which Hone did not ask for.",
    "not-http": "did not answer in HTTP/1.1.",
    "http2": "did not answer in HTTP/1.1.",
    "upgrade": "changed to another protocol.",
    "continue-endless": "sent headers without end.",
    "headers-endless": "sent headers without end.",
    "headers-slow": "sent no part of an answer within 300 seconds. To wait longer, raise first_content of",
    "chunk-nonsense": "sent a chunk without a size.",
    "chunk-overrun": "sent a chunk that does not end where it said.",
    "refusal-endless": "is not able to answer now (500): helphelp",
    "refusal-slow": "sent no part of an answer within 300 seconds. To wait longer, raise first_content of",
    "comments-endless": f"sent more than {64 * SIZE:,} bytes for one answer. To allow it, raise size of",
    "comments-slow": "sent no part of an answer within 300 seconds. To wait longer, raise first_content of",
    "empty-deltas-slow": "sent no part of an answer within 300 seconds. To wait longer, raise first_content",
    "byte-by-byte": " seconds. To wait longer, raise ",
    "text-endless": f"sent an answer of more than {SIZE:,} characters. To allow it, raise size of [bounds]",
    "text-slow": "did not finish its answer within 3600 seconds. To allow it, raise reply of [bounds]",
    "thinking-endless": f"sent an answer of more than {SIZE:,} characters. To allow it, raise size of",
    "arguments-endless": f"sent an answer of more than {SIZE:,} characters. To allow it, raise size of",
    "calls-endless": f"sent an answer of more than {SIZE:,} characters. To allow it, raise size of",
    "line-endless": f"sent a single event of more than {2 * SIZE:,} bytes. To allow it, raise size of",
    "event-endless": f"sent a single event of more than {2 * SIZE:,} bytes. To allow it, raise size of",
    "json-endless": f"sent a single event of more than {2 * SIZE:,} bytes. To allow it, raise size of",
    "hang-at-start": "sent no part of an answer within 300 seconds. To wait longer, raise first_content of",
    "hang-in-text": "sent no more of its answer for 120 seconds. To wait longer, raise silence of [bounds]",
    "hang-in-thinking": "sent no more of its answer for 120 seconds. To wait longer, raise silence of",
    "hang-in-call": "sent no more of its answer for 120 seconds. To wait longer, raise silence of",
    "not-utf8": "sent something that is not",
    "deep-json": "sent something that is not",
    "wrong-types": "sent something that is not",
    "array": "sent something that is not",
}
"""What the user reads. The other kinds of disorder do not keep an answer from being one."""


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "sk-test")


@dataclass
class Bounded(Play):
    """The server's pauses move the clock, so that an hour of trickling takes a moment."""

    async def sleep(self, seconds: float) -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        self.clock.advance(seconds)

    def hone(self, url: str, tries: int = 2) -> Hone:
        settings = Settings(tries=tries, bounds=BoundSettings(size=SIZE / 1_000_000))
        server = provider(self.format, url, KEY)
        return furnish(self.home, self.folder, server, clock=self.clock, settings=settings)


def wrong_end(play: Play, turn: Turn) -> list[str]:
    """Whether the turn ended as this kind of disorder should, and in time."""
    name = play.fault or ""
    told = turn.stop is Stop.FAILED and SENTENCES.get(name, "no failure") in turn.error
    answered = name not in SENTENCES and (turn.stop, turn.text) == (Stop.ANSWERED, "Here it is.")
    remarks = [each for each in play.notices if "reports a usage that cannot be right" in each]
    if len(remarks) != (name.startswith("usage-") and name != "usage-missing"):
        return [f"not told of usage: {play.notices}"]
    wrong = [] if told or answered else [f"ended with {turn.stop} {turn.error!r} {turn.text[:80]!r}"]
    most = 3_600 if name == "text-slow" else 60 + 300 + 120
    late = play.clock.monotonic() > most + 60
    return [*wrong, f"after {play.clock.monotonic()} seconds"] if late else wrong


async def suffer(play: Bounded) -> list[str]:
    async with (
        FakeProvider(play.script, fault=play.choose, sleep=play.sleep) as stage,
        play.hone(stage.url) as hone,
    ):
        session, turn = await meet(play, hone)
        return unended(turn) + wrong_end(play, turn) + await recover(play, hone, session, stage)


def test_there_are_more_than_sixty_kinds_of_faults() -> None:
    assert set(SENTENCES) <= set(DISORDER)
    assert len({*DISORDER, *FAULTS}) > 60


@pytest.mark.parametrize("format", FORMATS)
def test_disorder_ends_within_its_bounds_and_leaves_a_valid_history(
    format: Format, home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    cases = [(name, since) for name in DISORDER for since in (0, 1)]
    failures: dict[int, list[str]] = {}
    drawn = list(tier.draws(short=12, full=len(cases)))
    for draw in drawn:
        name, since = cases[draw.index]
        wrong = asyncio.run(suffer(Bounded(format, home, tmp_path, fault=name, since=since)))
        if wrong:
            failures[draw.index] = [f"{name} at call {since}", *wrong]
    lost = sum("lost: " in each for wrong in failures.values() for each in wrong)
    note = f"disorder, {format}: {len(DISORDER)} kinds, at the first and the second call"
    figures.tally(len(drawn), got_in=len(failures), lost=lost, note=note, at=failures)
    assert failures == {}


@pytest.mark.parametrize("format", FORMATS)
async def test_a_reply_that_keeps_coming_is_waited_for(format: Format, home: Path, tmp_path: Path) -> None:
    """A piece of content every 30 seconds, for half an hour."""
    words = " ".join(str(number) for number in range(60))
    play = Bounded(format, home, tmp_path, lines(words))

    async def sleep(seconds: float) -> None:
        await turn_loop()
        play.clock.advance(seconds)

    async with FakeProvider(play.script, pace=30.0, sleep=sleep) as stage, play.hone(stage.url) as hone:
        session, turn = await meet(play, hone)
        assert (turn.stop, turn.text) == (Stop.ANSWERED, words)
        assert play.clock.monotonic() > 1_500
        assert await unsound(format, hone, session) + stage.invalid == []
