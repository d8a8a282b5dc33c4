"""What is measured. Hone and the floor take turns, so that whatever else the machine does hits both alike."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import mkdtemp

from benchmarks.figures import Row, Unit
from benchmarks.provider import Provider, serving

ROOT = Path(__file__).parents[1]
HONE = Path(sys.executable).with_name("hone")
BARE = Path(__file__).with_name("bare")
CONVERSATIONS = 100


@dataclass(frozen=True, slots=True)
class Bench:
    """How much of everything, where to write, and whom to tell how far it is."""

    scratch: Path
    tell: Callable[[int, int], None]
    runs: int = 7
    turns: int = 10
    calls: int = 10

    def folder(self) -> Path:
        return Path(mkdtemp(dir=self.scratch))


@dataclass(frozen=True, slots=True)
class Sample:
    """A figure, the CPU milliseconds behind it, and the part of one core that the provider took meanwhile."""

    value: float
    cpu: float = 0.0
    provider: float = 0.0


Take = Callable[[], Sample]
Command = Sequence[str | Path]


def version(bench: Bench) -> Iterator[Row]:
    environ = environment(bench.folder())

    def timed(command: Command) -> Sample:
        begun, used = time.perf_counter(), processor()
        play(command, environ, bench.scratch)
        return Sample((time.perf_counter() - begun) * 1000, processor() - used)

    hone = partial(timed, [HONE, "--version"])
    floor = partial(timed, [sys.executable, BARE / "version.py", "--version"])
    yield row("`hone --version`", "ms", 100, alternate(bench, 3 * bench.runs, hone, floor))


def first(bench: Bench) -> Iterator[Row]:
    """From the start of the process until the provider has read the whole request."""
    with serving(environment(bench.folder())) as provider:
        size = request_size(bench, provider, "openai")
        used = bench.folder()
        floor = partial(arrival, provider, [sys.executable, BARE / "first.py", provider.url, str(size)], used)
        homes = {"an empty home": bench.folder, "a home in use": lambda: used}
        for name, home in homes.items():
            hone = partial(starting, provider, home)
            pairs = alternate(bench, 2 * bench.runs, hone, floor)
            yield row(f"`hone run` to its first request, {name}", "ms", 300, pairs)


def starting(provider: Provider, home: Callable[[], Path]) -> Sample:
    return arrival(provider, run("openai"), home())


def arrival(provider: Provider, command: Command, home: Path) -> Sample:
    provider.notes()
    begun, used = time.monotonic_ns(), processor()
    play(command, environment(home, provider.url), home)
    return Sample((provider.notes().arrivals[0].at - begun) / 1e6, processor() - used)


def size(bench: Bench) -> Iterator[Row]:
    with serving(environment(bench.folder())) as provider:
        for format, name in (("openai", "OpenAI chat"), ("anthropic", "Anthropic messages")):
            found = float(request_size(bench, provider, format))
            yield Row(f"first request for “hi”, {name}", "bytes", (found,), (), 16_000)


def request_size(bench: Bench, provider: Provider, format: str) -> int:
    home = bench.folder()
    provider.notes()
    play(run(format), environment(home, provider.url), home)
    return provider.notes().arrivals[0].size


def iteration(bench: Bench) -> Iterator[Row]:
    """A turn with a number of tool calls, divided by that number. The provider answers at once."""
    with serving(environment(bench.folder())) as provider:
        padding = request_size(bench, provider, "openai")
        for count, aim in ((10, 3), (100, 3), (1000, 8)):
            amounts = {"count": count, "turns": bench.turns, "calls": bench.calls, "padding": padding}
            pairs = both(bench, provider, "iterations", amounts)
            yield row(f"a tool iteration, {count:,} messages", "ms", aim, pairs)


def sessions(bench: Bench) -> Iterator[Row]:
    """Five turns in each of many conversations at once; the provider answers after 50 ms."""
    with serving(environment(bench.folder()), latency=0.05) as provider:
        padding = request_size(bench, provider, "openai")
        for calls, name in ((3, "3 model calls a turn"), (4, "3 tool calls a turn")):
            amounts = {"count": CONVERSATIONS, "turns": 5, "calls": calls, "padding": padding}
            pairs = both(bench, provider, "sessions", amounts)
            yield row(f"{CONVERSATIONS} sessions at once, {name}", "turns/s", 180, pairs)


def lasting(bench: Bench) -> Iterator[Row]:
    """A conversation that outgrows its window again and again; what its notes cost is in the figure."""
    with serving(environment(bench.folder())) as provider:
        for count in (500, 2000):
            amounts = {"count": count, "turns": bench.turns, "calls": bench.calls}
            samples = [
                work(bench, provider, ["hone", "lasting"], amounts, "window = 32000\n")
                for _ in range(bench.runs)
            ]
            values = tuple(sample.value for sample in samples)
            name = f"a tool iteration after {count:,} messages in a window of 32,000 tokens"
            yield Row(name, "ms", values, (), 8, (median(sample.cpu for sample in samples), 0.0))


SCENARIOS: Mapping[str, Callable[[Bench], Iterator[Row]]] = {
    "version": version,
    "first": first,
    "size": size,
    "iteration": iteration,
    "sessions": sessions,
    "lasting": lasting,
}


def both(
    bench: Bench, provider: Provider, job: str, amounts: Mapping[str, int]
) -> tuple[list[Sample], list[Sample]]:
    return alternate(
        bench,
        bench.runs,
        partial(work, bench, provider, ["hone", job], amounts),
        partial(work, bench, provider, ["floor", job], amounts),
    )


def work(
    bench: Bench, provider: Provider, what: Sequence[str], amounts: Mapping[str, int], settings: str = ""
) -> Sample:
    """One measurement in a process and a home of its own."""
    home = bench.folder()
    (home / "hone.toml").write_text(settings)
    command = [sys.executable, "-m", "benchmarks.work", *what, "--url", provider.url, "--home", str(home)]
    command += [part for name, amount in amounts.items() for part in (f"--{name}", str(amount))]
    provider.notes()
    done = json.loads(play(command, environment(home, provider.url), ROOT))
    notes = provider.notes()
    busy = notes.cpu * 1e9 / (notes.arrivals[-1].at - notes.arrivals[0].at)
    return Sample(done["value"], done["cpu"], busy)


def alternate(bench: Bench, runs: int, hone: Take, floor: Take) -> tuple[list[Sample], list[Sample]]:
    """A B A B …, after one of each that does not count."""
    hone()
    floor()
    pairs = []
    for number in range(1, runs + 1):
        pairs.append((hone(), floor()))
        bench.tell(number, runs)
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def row(name: str, unit: Unit, aim: float, pairs: tuple[list[Sample], list[Sample]]) -> Row:
    hone, floor = (tuple(each.value for each in side) for side in pairs)
    cpu, floor_cpu = (median(each.cpu for each in side) for side in pairs)
    busy, floor_busy = (median(each.provider for each in side) for side in pairs)
    return Row(name, unit, hone, floor, aim, (cpu, floor_cpu), (busy, floor_busy))


def processor() -> float:
    """CPU milliseconds of all processes that we have waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


def run(format: str) -> Command:
    return [HONE, "--model", f"{format}/scripted", "run", "hi"]


def play(command: Command, environ: Mapping[str, str], folder: Path) -> bytes:
    done = subprocess.run(
        command, env=environ, cwd=folder, check=False, stdin=subprocess.DEVNULL, capture_output=True
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stderr.decode()}")
    return done.stdout


def environment(home: Path, url: str = "") -> dict[str, str]:
    """Nothing of the caller's: no keys, no proxies, no PYTHONDONTWRITEBYTECODE."""
    own = {"PATH": os.environ.get("PATH", ""), "HOME": str(home), "LANG": "C.UTF-8", "HONE_HOME": str(home)}
    if not url:
        return own
    keys = {"OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": "none"}
    places = {"OPENAI_BASE_URL": f"{url}/v1", "ANTHROPIC_BASE_URL": url, "HONE_MODEL": "openai/scripted"}
    return own | keys | places
