"""A process beside the tests that has imported all it needs. It records each scenario once.

Each line of its input asks for one power cut. It builds the files that the cut may leave, and another process
inspects them.
"""

import asyncio
import gc
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

import apsw
from msgspec import Struct, json

from tests.faults.points import files, knowledge
from tests.faults.points.bench import afresh, apart, play
from tests.faults.points.reviews import Review
from tests.faults.points.scenario import KILLED, Say, Scenario, Told
from tests.faults.points.talks import Resumed, Talk
from tests.faults.power.disk import Deaf, cut, digest, find_points, replay, weaken
from tests.faults.power.lists import lists
from tests.faults.power.recording import File, Recorder, Recording, Tree

SMALL = 24
"""Pages of the log after which SQLite copies it into the database: often enough to be cut off at."""

STRIDE = 7_919
"""A prime: neighboring numbers are far apart in the recording, and each point has its turn."""


@dataclass(frozen=True)
class Copied(Talk):
    """With a log that is copied into the database again and again, and begun anew."""

    name: str = "log"

    async def act(self, root: Path, say: Say) -> None:
        apsw.connection_hooks.append(lambda connection: connection.wal_autocheckpoint(SMALL))
        await super().act(root, say)


SCENARIOS: Sequence[Scenario] = (
    Talk(),
    Copied(),
    lists,
    knowledge.journal,
    knowledge.late,
    knowledge.skills,
    Resumed(),
    Review(),
    knowledge.undo,
    knowledge.approve,
    knowledge.archive,
    knowledge.curator,
    knowledge.proposal,
    files.templates,
    files.backend,
    files.outbox,
    files.items,
    files.Import(),
)
BY_NAME = {each.name: each for each in SCENARIOS}


class Cut(Struct, frozen=True):
    """Which power cut: a number, taken as a point of the recording, and a seed for what the cut leaves."""

    scenario: str
    folder: str
    number: int
    seed: str
    deaf: Deaf = Deaf.NO


class Left(Struct, frozen=True):
    """What a power cut left, and what is wrong with that; each sentence begins with one word."""

    points: int
    point: int
    style: str
    digest: str
    said: int
    unsynced: int
    wrong: list[str]


class Recorded(Struct, frozen=True):
    recording: Recording
    points: list[int]
    told: Told
    expected: object


def record(scenario: Scenario, folder: Path, deaf: Deaf) -> Recorded:
    """Record an undisturbed run. Everything is where the recording says, or it would prove nothing."""
    root, vault = folder / scenario.name, folder / f"{scenario.name}.vault"
    afresh(scenario, root)
    expected = apart(lambda: scenario.rehearse(root))
    afresh(scenario, root)
    vault.mkdir()
    recorder, told = play(scenario, root, partial(Recorder, vault=vault))
    recording = recorder.recording()
    assert (told.status, told.wrong()) == (0, []), told
    assert len(told.lines) == len(recording.marks)
    differing = compare(recording, root)
    assert not differing, f"the recording is not what happened: {differing}"
    # Here, not apart: what this process has loaded and compiled by now, no other one does again.
    wrong = asyncio.run(scenario.inspect(root, told, expected))
    assert not wrong, wrong
    gc.freeze()
    heard = weaken(recording, deaf)
    return Recorded(heard, find_points(heard), told, expected)


def compare(recording: Recording, root: Path) -> list[str]:
    """Return where a folder differs from what a recording makes of it."""
    disk = replay(recording, len(recording.operations))
    tree = disk.tree([change for _, change in disk.pending])
    recorded = {path: _content(tree, node) for path, node in tree.paths().items()}
    there = {
        str(each.relative_to(root)): each.read_bytes() if each.is_file() else None for each in root.rglob("*")
    }
    names = sorted(recorded.keys() | there.keys())
    return [
        name
        for name in names
        if recorded.get(name, b"") != there.get(name, b"") and not name.endswith("-shm")
    ]


def _content(tree: Tree, node: int) -> bytes | None:
    """None for a folder."""
    return None if node in tree.folders else tree.files.get(node, File()).data


def build(tree: Tree, root: Path, vault: Path, random: Random) -> None:
    """Put the files of a state in place: the same files as when they were recorded, with their times."""
    shutil.rmtree(root)
    root.mkdir(mode=0o700)
    for path, node in tree.paths().items():
        place = root / path
        if node in tree.folders:
            place.mkdir(mode=0o700)
            continue
        kept, file = vault / str(node), tree.files.get(node, File())
        # Shared memory is on the disk, too, with whatever was written there last.
        kept.write_bytes(random.randbytes(len(file.data)) if path.endswith("-shm") else file.data)
        os.utime(kept, ns=(file.modified, file.modified))
        os.link(kept, place)


def perform(order: Cut, recorded: Recorded) -> Left:
    scenario, root = BY_NAME[order.scenario], Path(order.folder, order.scenario)
    random, recording, points = Random(order.seed), recorded.recording, recorded.points
    point = points[order.number * STRIDE % len(points)]
    disk = replay(recording, point)
    style, tree = cut(disk, random)
    build(tree, root, root.with_suffix(".vault"), random)
    said = sum(mark <= point for mark in recording.marks)
    told = Told(recorded.told.lines[:said], KILLED, "")
    try:
        wrong = apart(lambda: scenario.inspect(root, told, recorded.expected))
    except ChildProcessError as error:
        wrong = [f"unreadable: the next process fails: {error}"]
    return Left(len(points), point, style, digest(tree), said, len(disk.pending), wrong)


def main() -> None:
    out = os.dup(1)
    os.dup2(2, 1)  # nothing that a scenario prints is an answer
    known: dict[tuple[str, Deaf], Recorded] = {}
    for line in sys.stdin:
        order = json.decode(line, type=Cut)
        folder, which = Path(order.folder), (order.scenario, order.deaf)
        if which not in known:
            for each in folder.iterdir():
                shutil.rmtree(each) if each.is_dir() else each.unlink()
            known = {which: record(BY_NAME[order.scenario], folder, order.deaf)}
        left = perform(order, known[which])
        os.write(out, json.encode(left) + b"\n")


if __name__ == "__main__":
    main()
