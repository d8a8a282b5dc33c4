"""`python -m benchmarks.skills`: 5,000 skills: what they take of the prompt, and how long."""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from apsw import Connection

from benchmarks.figures import Row, figure
from benchmarks.table import table
from hone import Hone
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
WARM, COLD = 20.0, 1_000.0
"""Milliseconds."""

Sample = tuple[float, float, float]
"""Milliseconds on the wall and of the processor, and bytes."""


def main() -> None:
    options = parsed()
    if options.compose:
        print(json.dumps(asyncio.run(composed(options.compose))))
        return
    with TemporaryDirectory(prefix="hone-bench-") as scratch:
        home = Path(scratch) / "home"
        home.mkdir(mode=0o700)
        asyncio.run(furnish(home, options.count))
        rows = [*parts(options.count, options.runs), *whole(home, options.runs)]
    print(table(rows))
    print("\n".join(f"{row.name}: {figure(row.cpu['hone'])} ms of the processor" for row in rows if row.cpu))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.skills", description=__doc__)
    parser.add_argument("--runs", type=int, default=7, help="how often each is measured [%(default)s]")
    parser.add_argument("--count", type=int, default=COUNT, help="how many skills there are [%(default)s]")
    parser.add_argument("--compose", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def documents(count: int) -> list[tuple[str, str]]:
    """Names and texts, as long as skills are."""
    made = []
    for number in range(count):
        name = f"{number:05}-kind-of-work"
        description = f"Do the work of kind {number} as it is done here. Use when somebody asks for {number}."
        steps = "\n".join(
            f"{step}. Look at part {step} of {number}, change it, and check it." for step in range(1, 40)
        )
        made.append((name, write_document(name, description, steps)))
    return made


async def furnish(home: Path, count: int) -> None:
    """A home with so many skills in its ledger and on its disk, and no card yet."""
    disk, origin = FileTree(home), SkillOrigin.AGENT.encode()
    contents, changes, prints = {digest(origin): origin}, [], {}
    for name, text in documents(count):
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
    """The file as Hone would have printed it, without waiting for the disk each time."""
    place = home / folder_of(target) / DOCUMENT
    place.parent.mkdir(mode=0o700, parents=True)
    place.write_bytes(data)
    found = disk.read(f"{folder_of(target)}/{DOCUMENT}")
    if found is None:
        raise SystemExit(f"{place} was written and is not there.")
    return found[1]


def parts(count: int, runs: int) -> list[Row]:
    """The pure pieces, in this process."""
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
    """From an unopened home to the text, each time in a process of its own: all cards to be made, or none."""
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
    """The way a session takes."""
    async with Hone(home=home, folder=home, learning="queue") as hone:
        await hone.ledger.latest()  # opening a home is not what is measured
        begun, used = time.perf_counter(), time.process_time()
        known = await SnapshotCache(hone.library).snapshot(home)
        text = index(known.skills, known.total)
        took, cpu = time.perf_counter() - begun, time.process_time() - used
        return took * 1000, cpu * 1000, float(len(text.encode()))


if __name__ == "__main__":
    main()
