"""`hone serve` under load for minutes: does it grow, and do its reviews keep up?

Clients, the provider and the server are three processes, so that what is measured of the server is its own.
On two cores some hundred clients need time to think: `--think` is its mean. Without it, they would measure
the machine.
"""

import argparse
import asyncio
import json
import os
import sqlite3
import sys
import time
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.bench import ROOT, environment
from benchmarks.crowd import Crowd, Place
from benchmarks.machine import facts
from benchmarks.provider import serving
from benchmarks.server import running
from benchmarks.soak_plot import Panel, draw

SETTINGS = """plugins = ["benchmarks.subject:register"]
[learning]
turns = 2
"""
"""A review after every second turn: five times as many as by default."""
STEP = 5.0
"""Seconds between two checks of the server."""
PATIENCE = 60.0
"""Seconds for all reviews to finish after the last turn."""
GROWTH = 0.05
LATENCY = 0.2
WARM = 2.0
"""Minutes that do not count: caches fill and conversations reach their usual length."""
EXTRA = 32
"""Descriptors that a server opens once and keeps: readers of the database, connections to the provider."""


@dataclass(frozen=True, slots=True)
class Look:
    """The server at one moment: memory in MiB, open descriptors, waiting reviews, turns so far."""

    at: float
    memory: float
    private: float
    descriptors: int
    queued: int
    pending: int
    reviewed: int
    turns: int


@dataclass(slots=True)
class Soak:
    """The result."""

    minutes: float
    clients: int
    think: float
    machine: Any
    looks: list[Look] = field(default_factory=list)
    turns: int = 0
    cut: int = 0
    conversations: int = 0
    wrong: list[str] = field(default_factory=list)
    slow: float = 0.0
    middle: float = 0.0
    drained: float | None = None
    idle_before: int = 0
    idle_after: int = 0
    ended: float = 0.0

    def _within(self, start: float, end: float) -> list[Look]:
        return [look for look in self.looks if start * 60 <= look.at < end * 60]

    @property
    def memory(self) -> tuple[float, float]:
        """Return the MiB in the minute after the warm-up and in the last minute under load."""
        start = min(WARM, self.minutes / 3)
        first, last = self._within(start, start + 1), self._within(self.minutes - 1, self.minutes)
        return median(look.memory for look in first), median(look.memory for look in last)

    @property
    def growth(self) -> float:
        first, last = self.memory
        return last / first - 1

    @property
    def faults(self) -> list[str]:
        """Return the violated expectations."""
        found = []
        if self.growth > GROWTH:
            found.append(f"memory grew by {self.growth:.1%}")
        if self.idle_after > self.idle_before + EXTRA:
            found.append(f"{self.idle_before} descriptors before, {self.idle_after} after")
        if self.drained is None:
            found.append(f"{self.looks[-1].queued} reviews were left after {PATIENCE:.0f} s")
        return found + self.wrong[:5]


class Server:
    """Observes the process from outside: /proc, and the database, which is only read."""

    def __init__(self, process: int, home: Path) -> None:
        self._process = process
        self._uri = f"file:{home / 'hone.db'}?mode=ro"

    def look(self, at: float, turns: int) -> Look:
        memory, private = self._memory()
        queued, pending, reviewed = self._reviews()
        return Look(at, memory, private, self.descriptors(), queued, pending, reviewed, turns)

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self._process}/fd"))

    def _memory(self) -> tuple[float, float]:
        lines = Path(f"/proc/{self._process}/status").read_text().splitlines()
        sizes = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
        return int(sizes["VmRSS"][0]) / 1024, int(sizes["RssAnon"][0]) / 1024

    def _reviews(self) -> tuple[int, int, int]:
        with closing(sqlite3.connect(self._uri, uri=True, timeout=30)) as connection:
            [queued] = connection.execute("SELECT count(*) FROM jobs WHERE state = 'queued'").fetchone()
            [pending] = connection.execute("SELECT count(*) FROM looks").fetchone()
            [reviewed] = connection.execute("SELECT count(*) FROM jobs WHERE state = 'done'").fetchone()
        return queued, pending, reviewed


async def load(soak: Soak, server: Server, crowd: Crowd) -> None:
    """Let all clients talk, check the server in the meantime, then wait until its reviews are done."""
    began, end = time.monotonic(), soak.minutes * 60
    soak.idle_before = server.descriptors()
    talks = [asyncio.create_task(crowd.talk(number)) for number in range(soak.clients)]
    while (now := time.monotonic() - began) < end:
        _tell(soak, server.look(now, len(crowd.seconds)))
        await asyncio.sleep(min(STEP, max(0.0, end - now)))
    crowd.over.set()
    await asyncio.gather(*talks)
    stopped = time.monotonic()
    while time.monotonic() - stopped < PATIENCE:
        look = server.look(time.monotonic() - began, len(crowd.seconds))
        _tell(soak, look)
        if not look.queued:
            soak.drained = time.monotonic() - stopped
            break
        await asyncio.sleep(1)
    soak.idle_after = server.descriptors()


def _tell(soak: Soak, look: Look) -> None:
    soak.looks.append(look)
    line = f"{look.at:6.0f} s  {look.memory:6.1f} MiB  {look.descriptors:5} descriptors  "
    line += (
        f"{look.queued:5} queued  {look.pending:5} pending  {look.reviewed:6} reviewed  {look.turns:6} turns"
    )
    print(line, file=sys.stderr, flush=True)


def play(minutes: float, clients: int, think: float, seed: int, settings: str = SETTINGS) -> Soak:
    with TemporaryDirectory() as folder, serving(environment(Path(folder)), LATENCY) as provider:
        soak = Soak(minutes, clients, think, facts(Path(folder), None))
        home = Path(folder) / "home"
        home.mkdir()
        (home / "hone.toml").write_text(settings)
        with running(home, provider) as (url, process):
            key = (home / "serve.key").read_text().strip()
            crowd = Crowd(Place(url, key), think, Random(seed))
            asyncio.run(load(soak, Server(process, home), crowd))
            ended = time.monotonic()
        soak.ended = time.monotonic() - ended
    soak.turns, soak.cut = len(crowd.seconds) + crowd.cut, crowd.cut
    soak.conversations, soak.wrong = crowd.conversations, crowd.wrong
    soak.middle, soak.slow = median(crowd.seconds), quantiles(crowd.seconds, n=100)[-1]
    return soak


def picture(soak: Soak) -> str:
    over = [look.at / 60 for look in soak.looks]
    lines: dict[str, list[float]] = {
        "Memory of the server (MiB)": [look.memory for look in soak.looks],
        "Open descriptors": [look.descriptors for look in soak.looks],
        "Reviews that wait": [look.queued for look in soak.looks],
    }
    panels = [
        Panel(title, tuple(zip(over, values, strict=True)), soak.minutes) for title, values in lines.items()
    ]
    return draw(panels, f"hone serve with {soak.clients} clients; the load ends at the red line")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--clients", type=int, default=300)
    parser.add_argument(
        "--think", type=float, default=20.0, help="mean seconds between two turns of a client"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/soak.json and soak.svg")
    options = parser.parse_args()
    soak = play(options.minutes, options.clients, options.think, options.seed)
    told = {**asdict(soak), "memory": soak.memory, "growth": soak.growth, "faults": soak.faults}
    if options.write:
        (ROOT / "docs/benchmarks/soak.json").write_text(json.dumps(told, indent=1) + "\n")
        (ROOT / "docs/pictures/soak.svg").write_text(picture(soak))
    print(json.dumps({name: value for name, value in told.items() if name != "looks"}, indent=1))
    return 1 if soak.faults else 0


if __name__ == "__main__":
    sys.exit(main())
