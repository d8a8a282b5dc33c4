"""What a review costs the conversation: the whole of a turn, and from the model's last byte until its end.

A turn that sets a review off, and one with that review at work beside it, each against the same turn with
reviews switched off. Both take turns in one process, so that whatever else the machine does hits both alike.
What the provider takes is not in it.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from statistics import median

from benchmarks.bench import ROOT, UNREVIEWED, Bench, Command, environment, lodged, play
from benchmarks.figures import Row, Side
from benchmarks.provider import Arrival, Provider, serving
from benchmarks.subject import recorded
from benchmarks.talk import history, spoken
from hone import Hone
from hone.core.ids import SessionId
from hone.core.jobs import State
from hone.core.ports import Header
from hone.learning.background import BREATH
from hone.runtime.session import Session
from hone.runtime.task_runner import ignore
from hone.settings import Settings
from hone.settings.sections import Learning

MESSAGES = 100
"""For each conversation."""
MOST = 1.05
LATENCY = 0.02
"""Seconds that the provider needs while a review runs, so that the review waits as in real use."""
RESAMPLES = 2_000
ROOT_SESSION = SessionId("root")
EVERY = {"on": 10, "due": 1, "off": 0}
"""Turns between two reviews: the default, always, never."""
PEER_TURNS, PEER_RUNS = 10, 3
"""A review of the peer takes seconds."""

Window = tuple[int, int]
"""When a turn was sent and when it ended, in nanoseconds of CLOCK_MONOTONIC."""
Windows = dict[str, dict[str, list[Window]]]


@dataclass(frozen=True, slots=True)
class Took:
    """Milliseconds of a whole turn, and of its part after the model's last byte."""

    whole: float
    after: float


Turns = dict[str, dict[str, list[Took]]]
"""By turn and side."""
BESIDE = "a whole turn beside a review at work"
KINDS: Mapping[str, tuple[str, str, Callable[[Took], float]]] = {
    BESIDE: ("due", "beside", lambda took: took.whole),
    "last byte to prompt, reviews on": ("on", "due", lambda took: took.after),
    "last byte to prompt, a review set off": ("due", "due", lambda took: took.after),
    "last byte to prompt, a review at work": ("due", "beside", lambda took: took.after),
}
"""By side, by which of the two measured turns, and by figure."""
Pairs = list[tuple[float, float]]


def review(bench: Bench) -> Iterator[Row]:
    """Yield the rows. The provider notes when a request arrives; its last byte is sent at once, or after its
    latency."""
    pairs: dict[str, Pairs] = {kind: [] for kind in KINDS}
    peer: Pairs = []
    environ = environment(bench.folder())
    with serving(environ) as quick, serving(environ, LATENCY) as slow:
        for number in range(1, bench.runs + 1):
            found = {"due": measured(bench, quick, 0.0), "beside": measured(bench, slow, LATENCY)}
            for kind, (side, turn, take) in KINDS.items():
                windows = found[turn][turn]
                sides = ([take(each) for each in windows[one]] for one in (side, "off"))
                pairs[kind] += zip(*sides, strict=True)
            if bench.peer and number <= PEER_RUNS:
                peer += beside(bench, bench.peer, slow)
            bench.tell(number, bench.runs)
    on, peer_on = (tuple(each for each, _ in some) for some in (pairs[BESIDE], peer))
    yield Row(BESIDE, "ms", on, peer=peer_on, lead=1)
    for kind, both in pairs.items():
        yield compared(kind, both, peer if kind == BESIDE else [])


def compared(kind: str, hone: Pairs, peer: Pairs) -> Row:
    sides: dict[Side, Pairs] = {"hone": hone}
    if peer:
        sides["peer"] = peer
    return Row(
        f"{kind} / reviews off",
        "ratio",
        (ratio(hone),),
        aim=MOST,
        peer=(ratio(peer),) if peer else (),
        bounds={side: interval(pairs) for side, pairs in sides.items()},
    )


def measured(bench: Bench, provider: Provider, latency: float) -> Turns:
    """Measure by turn and side."""
    home = bench.folder()
    command = [sys.executable, "-m", "benchmarks.review", "--home", str(home)]
    command += ["--turns", str(3 * bench.turns), "--latency", str(latency)]
    provider.notes()
    told: Windows = json.loads(play(command, environment(home, provider.url), ROOT))
    return timed_turns(told, provider.notes().arrivals, latency)


def beside(bench: Bench, peer: Path, provider: Provider) -> Pairs:
    home, turns = bench.folder(), min(PEER_TURNS, bench.turns)
    environ = environment(home, provider.url) | lodged(peer, home, provider.url, UNREVIEWED)
    command: Command = [peer, "-m", "benchmarks.peer.review", str(turns), str(LATENCY), str(MESSAGES)]
    provider.notes()
    told: Windows = json.loads(play(command, environ, ROOT).splitlines()[-1])
    found = timed_turns(told, provider.notes().arrivals, LATENCY)["beside"]
    return [(one.whole, other.whole) for one, other in zip(found["due"], found["off"], strict=True)]


def timed_turns(told: Windows, arrivals: Sequence[Arrival], latency: float) -> Turns:
    return {
        turn: {side: [took(each, arrivals, latency * 1000) for each in some] for side, some in by.items()}
        for turn, by in told.items()
    }


def took(window: Window, arrivals: Sequence[Arrival], latency: float) -> Took:
    """Return the times of a turn. Its own request is the smallest: a review's is larger."""
    sent, over = window
    own = min((each for each in arrivals if sent <= each.at <= over), key=lambda each: each.size)
    return Took((over - sent) / 1e6 - latency, (over - own.at) / 1e6 - latency)


def ratio(pairs: Pairs) -> float:
    return median(on for on, _ in pairs) / median(off for _, off in pairs)


def interval(pairs: Pairs) -> tuple[float, float]:
    """Return the range of the ratio of the medians in 95 of 100 samples of these pairs."""
    random = Random(1)
    drawn = sorted(ratio(random.choices(pairs, k=len(pairs))) for _ in range(RESAMPLES))
    return drawn[RESAMPLES * 25 // 1000], drawn[RESAMPLES * 975 // 1000]


async def converse(home: Path, turns: int, latency: float) -> Windows:
    """Run turns that may trigger a review; if the provider is slow, run another one beside each review."""
    found: Windows = {
        turn: {side: [] for side in EVERY} for turn in (("due", "beside") if latency else ("due",))
    }
    more = len(found) - 1
    every = {**EVERY, "due": EVERY["due"] * len(found)}  # only the first turn of a round triggers one
    sides = {side: await opened(home / side, each) for side, each in every.items()}
    await taken(sides["due"], more, 0.0)
    order, random = list(sides), Random(1)
    for number in range(turns + 1):
        random.shuffle(order)
        for side in order:
            windows = await taken(sides[side], len(found), random.uniform(0, 2 * latency))
            for turn, window in zip(found, windows, strict=True):
                found[turn][side] += [window] if number else []  # the first of each does not count
    for side, hone in sides.items():
        told = len(found) * (turns + 1) + (more if side == "due" else 0)
        await check(hone, told // every[side] if every[side] else 0)
        await hone.close()
    return found


async def check(hone: Hone, wanted: int) -> None:
    done = sum(job.state is State.DONE for job in await hone.jobs.jobs())
    if done != wanted:
        raise SystemExit(f"{done} reviews were done instead of {wanted}: this is another workload")


async def opened(home: Path, every: int) -> Hone:
    """Open a conversation to branch off, so that all turns count together."""
    home.mkdir()
    settings = Settings(model="openai/scripted", learning=Learning(turns=every, iterations=0))
    hone = Hone(home=home, folder=home, settings=settings, learning="queue")
    prefix = (await hone.session()).agent.prefix
    header = Header(ROOT_SESSION, datetime.now(UTC), folder=str(home))
    await hone.sessions.start(header, prefix, recorded(prefix.digest, history(MESSAGES)).nodes)
    hone.background.attend(ignore)
    return hone


async def taken(hone: Hone, turns: int, phase: float) -> list[Window]:
    """Start the second turn at some moment of the review, if there is one."""
    sessions = [await hone.resume(await hone.branch(ROOT_SESSION)) for _ in range(turns)]
    windows = []
    for number, session in enumerate(sessions):
        if number:
            await asyncio.sleep(BREATH + phase)
        windows.append(await timed(session))
    await hone.background.drain()
    return windows


async def timed(session: Session) -> Window:
    sent = time.monotonic_ns()
    turn = await session.send(spoken(0))
    over = time.monotonic_ns()
    if turn.error:
        raise SystemExit(f"Hone did not answer: {turn.error}")
    return sent, over


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.review", description=__doc__)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--turns", type=int, required=True)
    parser.add_argument("--latency", type=float, required=True)
    options = parser.parse_args()
    print(json.dumps(asyncio.run(converse(options.home, options.turns, options.latency))))


if __name__ == "__main__":
    main()
