"""`python -m benchmarks.bars`: the processor time of the parts of a turn, as ratios to a floor.

Hone and its floor take turns, each in separate processes; the minimum of each counts, which a busy machine
changes little. A bar lies between what Hone takes and twice that; what exceeds it is measured again.
"""

import argparse
import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.bench import environment
from benchmarks.journal import write
from benchmarks.provider import serving
from benchmarks.recall import PREFIX, indexed
from benchmarks.revision import ROOT
from benchmarks.start import Subject
from benchmarks.talk import spoken
from hone.core.ids import SessionId
from hone.core.messages import user
from hone.core.ports import Header
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.stores.database import Database
from hone.stores.sqlite import SqliteSessions

ROUNDS, AGAIN = 3, 3
"""How often each is measured, and the factor by which that grows if it exceeds its bar."""
APPENDS, ENTRIES, FILES = 300, 20, 400
PADDING = "14000"
"""Bytes for the floor's system text and tools, about as many as Hone's."""

Take = Callable[[str], float]
"""Gets a side, "hone" or "floor", and returns milliseconds of processor time."""


@dataclass(frozen=True, slots=True)
class Bar:
    name: str
    most: float
    take: Take


@dataclass(frozen=True, slots=True)
class Measured:
    bar: Bar
    hone: float
    floor: float

    @property
    def ratio(self) -> float:
        return self.hone / self.floor

    def __str__(self) -> str:
        return (
            f"{self.bar.name}: {self.hone:.2f} ms, floor {self.floor:.3f} ms, {self.ratio:.1f} times, "
            f"at most {self.bar.most:g}"
        )


def measure(folder: Path, rounds: int = ROUNDS) -> Iterator[Measured]:
    with serving(environment(folder / "provider")) as provider:
        for bar in make_bars(folder, provider.url):
            least = {"hone": inf, "floor": inf}
            for number in range(AGAIN * rounds):
                least = {side: min(known, bar.take(side)) for side, known in least.items()}
                if number + 1 >= rounds and least["hone"] <= bar.most * least["floor"]:
                    break
            yield Measured(bar, **least)


def make_bars(folder: Path, url: str) -> tuple[Bar, ...]:
    started = Subject(ROOT / "src", folder / "start")
    started.home.mkdir(parents=True)
    return (
        Bar("a tool iteration at 10 messages", 13.0, partial(talk, url, 20)),
        Bar("a turn without a tool call", 20.0, partial(talk, url, 0)),
        Bar("a message stored, and a row in SQLite", 5.2, partial(job, "append")),
        Bar("a journal entry, and a file replaced", 18.0, partial(job, "journal")),
        Bar("start to first request, and a bare Python", 20.0, partial(start, started)),
    )


def talk(url: str, calls: int, side: str) -> float:
    """Return milliseconds per tool call of a turn, or for a turn without any."""
    with TemporaryDirectory(prefix="hone-bars-") as home:
        amounts = ("--count", "10", "--turns", "5" if calls else "60", "--calls", str(calls))
        place = ("--url", url, "--home", home, "--padding", PADDING)
        return float(play(home, url, "benchmarks.work", side, "iterations", *place, *amounts)["cpu"])


def job(name: str, side: str) -> float:
    with TemporaryDirectory(prefix="hone-bars-") as home:
        return float(play(home, "http://127.0.0.1:9", "benchmarks.bars", "--job", name, side)["cpu"])


def start(subject: Subject, side: str) -> float:
    if side == "hone":
        return subject.ask("run", "hi")
    pid = os.posix_spawn(sys.executable, [sys.executable, "-c", "pass"], dict(os.environ))
    used = os.wait4(pid, 0)[2]
    return (used.ru_utime + used.ru_stime) * 1000


def play(home: str, url: str, module: str, *arguments: str) -> dict[str, float]:
    done = subprocess.run(
        (sys.executable, "-m", module, *arguments),
        cwd=ROOT,
        env=environment(Path(home), url) | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def append(path: Path) -> float:
    """Append as a conversation does, including the index of words."""

    async def story() -> None:
        database, now = Database.open(path), datetime.now(UTC)
        store, name = SqliteSessions(database), SessionId("bars")
        chain = Transcript(PREFIX.digest).then(user(spoken(0)), Trust.OWNER, now)
        await store.start(Header(name, now), PREFIX, chain.nodes)
        for number in range(APPENDS):
            chain = chain.then(user(spoken(number)), Trust.OWNER, now)
            await store.append(name, chain.nodes[-1:])
        await indexed(database)
        await database.close()

    used = time.process_time()
    asyncio.run(story())
    return (time.process_time() - used) / APPENDS


def insert(path: Path) -> float:
    used = time.process_time()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("PRAGMA synchronous = full")
        connection.execute("CREATE TABLE messages (text TEXT)")
        for number in range(APPENDS):
            connection.execute("INSERT INTO messages VALUES (?)", (spoken(number),))
    return (time.process_time() - used) / APPENDS


def note(path: Path) -> float:
    told = asyncio.run(write(path.parent, ENTRIES, "bars"))
    return float(told["cpu"]) / len(told["acknowledged"])


def replace_file(path: Path) -> float:
    used, new = time.process_time(), path.with_suffix(".new")
    for number in range(FILES):
        with new.open("w", encoding="utf-8") as file:
            file.write(f"{spoken(number)}\n" * 10)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    return (time.process_time() - used) / FILES


JOBS: dict[tuple[str, str], Callable[[Path], float]] = {
    ("append", "hone"): append,
    ("append", "floor"): insert,
    ("journal", "hone"): note,
    ("journal", "floor"): replace_file,
}
"""Seconds of processor time for each piece, in a separate process."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bars", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each is measured [%(default)s]")
    parser.add_argument("--job", nargs=2, metavar=("JOB", "SIDE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        name, side = options.job
        took = JOBS[name, side](Path(os.environ["HONE_HOME"]) / f"bars-{name}")
        print(json.dumps({"cpu": took * 1000}))
        return
    with TemporaryDirectory(prefix="hone-bars-") as folder:
        for measured in measure(Path(folder), options.rounds):
            print(measured, flush=True)


if __name__ == "__main__":
    main()
