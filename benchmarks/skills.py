"""`python -m benchmarks.skills`: 5,000 skills: what they take of the prompt, and how long searches take.

`--body 6000` gives each of them so many characters, with the words of many subjects in them.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory

from apsw import Connection

from benchmarks.figures import Row, figure
from benchmarks.table import table
from hone import Hone
from hone.cli.inspecting import inspect_all
from hone.core.ledger import Actor, Author, Change, ChangeKind, Delta, PublishedFile, Target, skill
from hone.core.messages import digest
from hone.core.skill import DOCUMENT, ORIGIN, ListedSkill, SkillOrigin
from hone.files.tree import FileTree
from hone.knowledge.places import folder_of
from hone.knowledge.skills.document import parse, write_document
from hone.knowledge.snapshots import SnapshotCache
from hone.prompt.compose import BUDGET, index
from hone.stores.database import Database
from hone.stores.ledger import SqliteLedger

COUNT = 5_000
WARM, COLD = 20.0, 400.0
"""In milliseconds."""
FIRST, SEARCH, NOTE = (
    "first search of a home",
    "skills_list, a whole instruction",
    "note to a whole instruction",
)
LIST, CHECK = "list of all skills", "hone skills check"
AIMS = {SEARCH: 30.0, NOTE: 30.0, CHECK: 2_000.0}
SYLLABLES = ("ba", "do", "fi", "gu", "ke", "lo", "mi", "no", "pra", "ste")
VOCABULARY = ["".join(each) for each in product(SYLLABLES, repeat=4)][::3]
INSTRUCTION = (
    "Our billing service has a flaky integration test that fails about every tenth run while it waits "
    "for the queue to drain. The consumer seems to start before the database migration has finished, so "
    "the first message is lost. Find out what really happens, write a test that shows the problem every "
    "time, and fix it without making the other tests slower. Do not change the public interface of the "
    "package, keep the commit small, and tell me at the end which files you changed, how you checked "
    "it, and what is still open. If you need more about the deployment, look into the folder deploy, "
    "where the charts and the modules are. The staging environment is shared with two other teams, so "
    "nothing may be restarted there during the day, and the credentials must not be printed anywhere. "
    "It is work of kind 4711, as it is done here. "
) + " ".join(VOCABULARY[:400:13])
"""About the length of an issue, with words that many skills have."""

Sample = tuple[float, float, float]
"""Milliseconds in wall and processor time, and bytes."""


def main() -> None:
    options = parsed()
    if options.compose:
        print(json.dumps(asyncio.run(composed(options.compose))))
        return
    if options.ask:
        print(json.dumps(asyncio.run(asked(options.ask, options.runs))))
        return
    with TemporaryDirectory(prefix="hone-bench-") as scratch:
        home = Path(scratch) / "home"
        home.mkdir(mode=0o700)
        asyncio.run(furnish(home, options.count, options.body))
        rows = [*parts(options.count, options.runs), *whole(home, options.runs), *asking(home, options.runs)]
    print(table(rows))
    print("\n".join(f"{row.name}: {figure(row.cpu['hone'])} ms of the processor" for row in rows if row.cpu))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.skills", description=__doc__)
    parser.add_argument("--runs", type=int, default=7, help="how often each is measured [%(default)s]")
    parser.add_argument("--count", type=int, default=COUNT, help="how many skills there are [%(default)s]")
    parser.add_argument("--body", type=int, default=0, help="at least so many characters each [%(default)s]")
    parser.add_argument("--compose", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--ask", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def documents(count: int, size: int = 0) -> list[tuple[str, str]]:
    """Return names and texts of the usual length of skills, or longer."""
    made = []
    for number in range(count):
        name = f"{number:05}-kind-of-work"
        description = f"Do the work of kind {number} as it is done here. Use when somebody asks for {number}."
        steps = "\n".join(
            f"{step}. Look at part {step} of {number}, change it, and check it." for step in range(1, 40)
        )
        made.append(
            (name, write_document(name, description, f"{steps}\n{filler(number, size - len(steps))}"))
        )
    return made


def filler(number: int, size: int) -> str:
    """Return words, some of which are in nearly every text, and most in few."""
    shares = [1 / (place + 10) for place in range(len(VOCABULARY))]
    return " ".join(Random(number).choices(VOCABULARY, shares, k=max(0, size) // 7))


async def furnish(home: Path, count: int, size: int = 0) -> None:
    """Make a home with this many skills in its ledger and on its disk, and no card yet."""
    disk, origin = FileTree(home), SkillOrigin.AGENT.encode()
    contents, changes, prints = {digest(origin): origin}, [], {}
    for name, text in documents(count, size):
        data, target = text.encode(), skill(name)
        contents[digest(data)] = data
        deltas = (Delta(DOCUMENT, None, digest(data)), Delta(ORIGIN, None, digest(origin)))
        changes.append(Change(target, ChangeKind.CREATE, deltas, Author(Actor.AGENT)))
        prints[target, f"{folder_of(target)}/{DOCUMENT}"] = laid(home, disk, target, data)
    database = Database.open(home / "hone.db")
    ledger = SqliteLedger(database)
    await ledger.record(changes, contents, datetime.now(UTC))
    await ledger.mark_published(prints)
    await database.close()


def laid(home: Path, disk: FileTree, target: Target, data: bytes) -> PublishedFile:
    """Write the file as Hone would have published it, without waiting for the disk each time."""
    place = home / folder_of(target) / DOCUMENT
    place.parent.mkdir(mode=0o700, parents=True)
    place.write_bytes(data)
    found = disk.read(f"{folder_of(target)}/{DOCUMENT}")
    if found is None:
        raise SystemExit(f"{place} was written and is not there.")
    return found[1]


def parts(count: int, runs: int) -> list[Row]:
    """Measure the pure parts, in this process."""
    made = documents(count)
    listed = [ListedSkill(name, parse(text).description, "") for name, text in made]
    return [
        Row(
            f"{count:,} documents read",
            "ms",
            repeated(lambda: [parse(text) for _, text in made], runs),
            (),
            COLD,
        ),
        Row(f"index of {count:,} skills", "ms", repeated(lambda: index(listed, count), runs), (), WARM),
        Row("index", "bytes", (float(len(index(listed, count).encode())),), (), float(BUDGET)),
    ]


def repeated(work: Callable[[], object], runs: int) -> tuple[float, ...]:
    samples = []
    for _ in range(runs):
        begun = time.perf_counter()
        work()
        samples.append((time.perf_counter() - begun) * 1000)
    return tuple(samples)


def whole(home: Path, runs: int) -> list[Row]:
    """Measure from an unopened home to the text, each time in a separate process: with all cards to be made,
    or none."""
    cold, warm = [], []
    for _ in range(runs):
        asyncio.run(forget_cards(home))
        cold.append(elsewhere(home))
        warm.append(elsewhere(home))
    sizes = tuple(size for _, _, size in (*cold, *warm))
    return [
        timed("skills in the prompt, cold", cold, COLD),
        timed("skills in the prompt, warm", warm, WARM),
        Row("skills in the prompt", "bytes", sizes, (), float(BUDGET)),
    ]


def asking(home: Path, runs: int) -> list[Row]:
    """Query a library: in a new process that has to make all cards, and then again and again."""
    asyncio.run(forget_cards(home))
    command: Sequence[str | Path] = [
        sys.executable,
        "-m",
        "benchmarks.skills",
        "--ask",
        home,
        "--runs",
        str(runs),
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return [
        Row(name, "ms", tuple(wall), (), AIMS.get(name), {"hone": median(cpu)})
        for name, (wall, cpu) in json.loads(done.stdout).items()
    ]


async def asked(home: Path, runs: int) -> dict[str, tuple[list[float], list[float]]]:
    """Return milliseconds in wall and processor time."""
    async with Hone(home=home, folder=home, learning="queue") as hone:
        await hone.ledger.latest()
        library, keeper, disk = hone.library, hone.keeper, FileTree(home)
        return {
            FIRST: await each(lambda: library.search("kind of work", 10), 1),
            SEARCH: await each(lambda: library.search(INSTRUCTION, 10), runs),
            NOTE: await each(lambda: library.match(INSTRUCTION), runs),
            LIST: await each(library.listed, runs),
            CHECK: await each(lambda: inspect_all(keeper, disk), 1),
        }


async def each(work: Callable[[], Awaitable[object]], runs: int) -> tuple[list[float], list[float]]:
    wall, cpu = [], []
    for _ in range(runs):
        begun, used = time.perf_counter(), time.process_time()
        await work()
        wall.append((time.perf_counter() - begun) * 1000)
        cpu.append((time.process_time() - used) * 1000)
    return wall, cpu


def timed(name: str, samples: Sequence[Sample], aim: float) -> Row:
    cpu = median(cpu for _, cpu, _ in samples)
    return Row(name, "ms", tuple(took for took, _, _ in samples), (), aim, {"hone": cpu})


async def forget_cards(home: Path) -> None:
    def work(connection: Connection) -> None:
        for statement in ("UPDATE skills SET card = NULL", "DELETE FROM cards", "DELETE FROM card_words"):
            connection.execute(statement)

    database = Database.open(home / "hone.db")
    await database.write(work)
    await database.close()


def elsewhere(home: Path) -> Sample:
    command: Sequence[str | Path] = [sys.executable, "-m", "benchmarks.skills", "--compose", home]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    took, cpu, size = json.loads(done.stdout)
    return took, cpu, size


async def composed(home: Path) -> Sample:
    """Compose a prompt as a session does."""
    async with Hone(home=home, folder=home, learning="queue") as hone:
        await hone.ledger.latest()  # opening a home is not part of the measurement
        begun, used = time.perf_counter(), time.process_time()
        known = await SnapshotCache(hone.library).snapshot(home)
        text = index(known.skills, known.total)
        took, cpu = time.perf_counter() - begun, time.process_time() - used
        return took * 1000, cpu * 1000, float(len(text.encode()))


if __name__ == "__main__":
    main()
