"""Starts, turns, many concurrent conversations and their memory: Hone, the floor and the peer."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.bench import (
    HONE,
    Bench,
    Command,
    Sample,
    Samples,
    Take,
    alternate,
    environment,
    lodged,
    play,
    processor,
    row,
    work,
    working,
)
from benchmarks.figures import Row, Side
from benchmarks.provider import Provider, serving

BARE = Path(__file__).with_name("bare")
ITERATION = {10: 3.0, 100: 3.0, 1000: 8.0, 2000: None}
"""The most milliseconds per iteration, by the number of messages."""
CROWDS = (1, 10, 50, 100, 200)
"""Concurrent conversations."""
CHAT, SHORT = ("chat", "-q", "hi"), ("-z", "hi")
"""The peer's counterparts of `hone run hi`: the usual command, and the one for scripts, which does less."""
OPEN = 100
"""Conversations that are kept open to measure the memory of one."""


def version(bench: Bench) -> Iterator[Row]:
    home = bench.folder()
    environ = environment(home) | (lodged(bench.peer, home, "") if bench.peer else {})

    def timed(command: Command) -> Sample:
        begun, used = time.perf_counter(), processor()
        play(command, environ, bench.scratch)
        return Sample((time.perf_counter() - begun) * 1000, processor() - used)

    takes: dict[Side, Take] = {
        "hone": partial(timed, [HONE, "--version"]),
        "floor": partial(timed, [sys.executable, BARE / "version.py", "--version"]),
    }
    if bench.peer:
        takes["peer"] = partial(timed, [bench.peer.with_name("hermes"), "--version"])
    yield row("`--version`", "ms", 100, alternate(bench, 3 * bench.runs, takes), lead=5)


def first(bench: Bench) -> Iterator[Row]:
    """Measure from the start of the process until the provider has read the whole request."""
    with serving(environment(bench.folder())) as provider:
        size = request_size(bench, provider, "openai")
        used = {"hone": bench.folder(), "floor": bench.folder(), "peer": bench.folder()}
        bare: Command = [sys.executable, BARE / "first.py", provider.url, str(size)]

        def new(_: str) -> Path:
            return bench.folder()

        ways: list[tuple[str, Callable[[str], Path], Sequence[str]]] = [
            ("an empty home", new, CHAT),
            ("a home in use", used.__getitem__, CHAT),
        ]
        if bench.peer:
            ways.append(("the peer's shortest way", used.__getitem__, SHORT))
        for name, home, way in ways:
            takes: dict[Side, Take] = {
                "hone": partial(arrival, provider, run("openai"), partial(home, "hone")),
                "floor": partial(arrival, provider, bare, partial(home, "floor")),
            }
            if bench.peer:
                command: Command = [bench.peer.with_name("hermes"), *way]
                takes["peer"] = partial(arrival, provider, command, partial(home, "peer"), bench.peer)
            found = alternate(bench, 2 * bench.runs, takes, most=3)
            yield row(f"start to first request, {name}", "ms", 300, found, lead=15)


def arrival(
    provider: Provider, command: Command, place: Callable[[], Path], peer: Path | None = None
) -> Sample:
    home = place()
    environ = environment(home, provider.url)
    if peer:
        environ |= lodged(peer, home, provider.url)
    provider.notes()
    begun, used = time.monotonic_ns(), processor()
    play(command, environ, home)
    return Sample((provider.notes().arrivals[0].at - begun) / 1e6, processor() - used)


def size(bench: Bench) -> Iterator[Row]:
    with serving(environment(bench.folder())) as provider:
        peer = (float(request_size(bench, provider, bench.peer)),) if bench.peer else ()
        for format, name in (("openai", "OpenAI chat"), ("anthropic", "Anthropic messages")):
            found = float(request_size(bench, provider, format))
            beside = peer if format == "openai" else ()
            yield Row(f"first request for “hi”, {name}", "bytes", (found,), aim=16_000, peer=beside)


def request_size(bench: Bench, provider: Provider, of: str | Path) -> int:
    """Return the request size of Hone with a provider's format, or of the peer."""
    home = bench.folder()
    environ = environment(home, provider.url)
    provider.notes()
    if isinstance(of, Path):
        play([of.with_name("hermes"), *CHAT], environ | lodged(of, home, provider.url), home)
    else:
        play(run(of), environ, home)
    return provider.notes().arrivals[0].size


def run(format: str) -> Command:
    return [HONE, "--model", f"{format}/scripted", "run", "hi"]


def iteration(bench: Bench) -> Iterator[Row]:
    """Measure a turn with some tool calls, divided by their number. The provider answers at once."""
    with serving(environment(bench.folder())) as provider:
        padding = request_size(bench, provider, "openai")
        for count, aim in lengths(bench):
            amounts = {"count": count, "turns": bench.turns, "calls": bench.calls, "padding": padding}
            takes = working(bench, provider, "iterations", amounts, peer={"turns": 3})
            found = alternate(bench, bench.runs, takes, most=3 if count < 1000 else 2, warm=count > 10)
            lead, point = 25 if aim else 1, ("iteration", count)
            yield row(f"a tool iteration, {count:,} messages", "ms", aim, found, lead, point)


def turn(bench: Bench) -> Iterator[Row]:
    """Measure a turn without a tool call, minus the provider's time."""
    with serving(environment(bench.folder())) as provider:
        padding = request_size(bench, provider, "openai")
        for count, _ in lengths(bench):
            amounts = {"count": count, "turns": bench.turns, "calls": 0, "padding": padding}
            takes = working(bench, provider, "iterations", amounts, peer={"turns": 3})
            found = alternate(bench, bench.runs, takes, most=2, warm=count > 10)
            yield row(f"a turn without a tool call, {count:,} messages", "ms", None, found, lead=1)


def lengths(bench: Bench) -> list[tuple[int, float | None]]:
    return list(ITERATION.items())[: 2 if bench.quick else None]


def sessions(bench: Bench) -> Iterator[Row]:
    """Measure turns in many concurrent conversations, all of them begun before; the provider answers after 50
    ms."""
    with serving(environment(bench.folder()), latency=0.05) as provider:
        padding = request_size(bench, provider, "openai")
        for count in CROWDS[: 2 if bench.quick else None]:
            amounts = {"count": count, "turns": 5, "calls": 3, "padding": padding}
            takes = working(
                bench, provider, "sessions", amounts, peer={"turns": max(1, min(5, 100 // count))}
            )
            runs = bench.runs if count == 100 else min(3, bench.runs)
            found = alternate(bench, runs, takes, most=2 if count in (1, 10, 100) else 1, warm=count > 1)
            aim, lead = (180, 40) if count == 100 else (None, 1)
            name = f"{count} sessions at once" if count > 1 else "1 session"
            yield row(f"{name}, 3 tool calls a turn", "turns/s", aim, found, lead, ("sessions", count))
            yield row(f"{name}, 99 of 100 turns within", "ms", None, other(found), lead=1)


def resident(bench: Bench) -> Iterator[Row]:
    """Measure the memory of an open conversation, and of a process with one of them."""
    with serving(environment(bench.folder())) as provider:
        padding = request_size(bench, provider, "openai")
        amounts = {"count": 10 if bench.quick else OPEN, "turns": 3, "calls": 1, "padding": padding}
        found = alternate(
            bench, min(3, bench.runs), working(bench, provider, "resident", amounts), 2, warm=True
        )
        yield row(f"memory of one session of {amounts['count']}", "KiB", None, found, lead=5)
        yield row("memory of the process with one session", "KiB", None, other(found), lead=1)


def other(samples: Samples) -> Samples:
    """Return the second figure of each measurement. Its processor time belongs to the first one."""
    return {side: [Sample(each.other) for each in some] for side, some in samples.items()}


def lasting(bench: Bench) -> Iterator[Row]:
    """Measure a conversation that outgrows its window again and again, including the cost of its notes."""
    with serving(environment(bench.folder())) as provider:
        for count in (500,) if bench.quick else (500, 2000):
            amounts = {"count": count, "turns": bench.turns, "calls": bench.calls}
            settings = "window = 32000\n"
            take = partial(work, bench, provider, "hone", "lasting", amounts, settings)
            name = f"a tool iteration after {count:,} messages in a window of 32,000 tokens"
            yield row(name, "ms", 8, alternate(bench, min(3, bench.runs), {"hone": take}, warm=True))


SCENARIOS: Mapping[str, Callable[[Bench], Iterator[Row]]] = {
    "version": version,
    "first": first,
    "size": size,
    "iteration": iteration,
    "turn": turn,
    "sessions": sessions,
    "resident": resident,
    "lasting": lasting,
}
