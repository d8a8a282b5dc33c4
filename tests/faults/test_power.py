"""F1, C3: after a power cut at any moment all that was acknowledged is there, and the home is readable.

Real work is recorded with every write and every sync. `power.disk` says what a cut may leave of it: what was
synced, and anything of the rest. Hone opens what is left and carries on.
"""

import os
import platform
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from tests.conftest import Draw, Figures, Tier
from tests.faults.beside import ROOT
from tests.faults.power.bench import BY_NAME, Cut, Left
from tests.faults.power.disk import Deaf, Disk, Style, cut, leave
from tests.faults.power.recording import TOP, Change, Rename, Resize, Sync, Tree, Write

MODULE = "tests.faults.power.bench"
FIRST = {
    "turn": (6, 1_000),
    "log": (6, 1_000),
    "lists": (40, 200),
    "journal": (14, 600),
    "late": (14, 600),
    "archive": (20, 500),
}
"""How many cuts of each are tried in the short tier, and in the full one."""
LATER = {
    **dict.fromkeys(("resume", "review", "approve"), 250),
    **dict.fromkeys(("undo", "proposal", "backend"), 350),
    **dict.fromkeys(("skill", "curator", "outbox", "items"), 550),
    "template": 50,
    "import": 150,
}
"""The same for what is tried in the full tier alone."""
COUNTS = [
    *(pytest.param(name, *counts, id=name) for name, counts in FIRST.items()),
    *(pytest.param(name, 1, full, id=name, marks=pytest.mark.long) for name, full in LATER.items()),
]
MEMORY = Path("/dev/shm")

traced = pytest.mark.skipif(platform.machine() != "x86_64", reason="the tracer knows the calls of x86-64")


class Bench:
    """The process that cuts the power."""

    def __init__(self, process: subprocess.Popen[bytes], folder: str) -> None:
        self._process, self._folder = process, folder

    def cut(self, scenario: str, draw: Draw, deaf: Deaf = Deaf.NO) -> Left:
        assert self._process.stdin
        assert self._process.stdout
        order = Cut(scenario, self._folder, draw.index, str(draw.random.random()), deaf)
        self._process.stdin.write(json.encode(order) + b"\n")
        self._process.stdin.flush()
        return json.decode(self._process.stdout.readline(), type=Left)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """In memory where that is possible: the disk is a model, and real syncs would only take time."""
    assert {*FIRST, *LATER} == {*BY_NAME}
    command = [sys.executable, "-W", "error", "-m", MODULE]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environ = os.environ | {"PYTHONPATH": path, "HONE_LOCAL": "false"}
    place = MEMORY if os.access(MEMORY, os.W_OK) else tmp_path_factory.getbasetemp()
    with (
        TemporaryDirectory(prefix="hone-power-", dir=place) as folder,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, cwd=ROOT
        ) as process,
    ):
        yield Bench(process, folder)


@dataclass
class Tally:
    """What came of a scenario's power cuts."""

    states: set[str] = field(default_factory=set)
    wrong: Counter[str] = field(default_factory=Counter)
    stories: list[str] = field(default_factory=list)
    at: list[int] = field(default_factory=list)
    tried: int = 0

    def add(self, draw: Draw, left: Left) -> None:
        self.tried += 1
        self.states.add(left.digest)
        self.wrong.update({each.partition(":")[0] for each in left.wrong})
        if left.wrong:
            self.at.append(draw.index)
            where = f"index {draw.index}, after {left.point} operations, {left.style}, {left.said} said"
            self.stories += [f"{where}: {each}" for each in left.wrong]

    def tell(self, figures: Figures, scenario: str) -> None:
        lost = self.wrong["lost"]
        note = f"power cuts of {scenario}, {len(self.states)} different states"
        figures.tally(self.tried, got_in=self.wrong.total() - lost, lost=lost, note=note, at=self.at)


@traced
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(("scenario", "short", "full"), COUNTS)
def test_after_a_power_cut_all_that_was_acknowledged_is_there(
    scenario: str, short: int, full: int, bench: Bench, tier: Tier, figures: Figures
) -> None:
    tally = Tally()
    for draw in tier.draws(short=short, full=full):
        tally.add(draw, bench.cut(scenario, draw))
    tally.tell(figures, scenario)
    assert not tally.stories, "\n".join(tally.stories)


@traced
@pytest.mark.parametrize(
    ("scenario", "deaf"), [("lists", Deaf.FILES), ("lists", Deaf.FOLDERS), ("journal", Deaf.FILES)]
)
def test_a_sync_that_is_left_out_is_noticed(scenario: str, deaf: Deaf, bench: Bench, tier: Tier) -> None:
    draws = tier.draws(short=25, full=25)
    assert any(bench.cut(scenario, draw, deaf).wrong for draw in draws)


# The model of the disk, alone.

FILES, FOLDER = (1, 2), 3
NAMES = st.tuples(st.sampled_from((TOP, FOLDER)), st.sampled_from("ab"))
BYTES = st.binary(min_size=1, max_size=1500)
CHANGES = st.one_of(
    st.builds(
        Write, st.sampled_from(FILES), st.integers(0, 1500), st.binary(min_size=1, max_size=1500), st.just(0)
    ),
    st.builds(Resize, st.sampled_from(FILES), st.integers(0, 1500), st.just(0)),
    st.builds(lambda entry, node: Rename(((entry, node),)), NAMES, st.sampled_from((None, *FILES))),
)
EMPTY = Tree({}, frozenset((TOP, FOLDER)), {(TOP, "folder"): FOLDER})


def play(changes: list[Change]) -> Disk:
    disk = Disk(EMPTY, EMPTY.folders)
    for number, change in enumerate(changes):
        disk.take(number, change)
    return disk


@given(st.lists(CHANGES, max_size=12), st.randoms(use_true_random=False))
def test_a_cut_leaves_all_that_was_synced(changes: list[Change], random: Random) -> None:
    disk = play(changes)
    whole = disk.tree(changes)
    for node in (TOP, *FILES, FOLDER):
        disk.take(len(changes), Sync(node, len(changes)))
    assert cut(disk, random)[1] == whole


@given(st.lists(CHANGES, max_size=12), st.randoms(use_true_random=False))
def test_a_cut_may_take_back_or_keep_what_was_not_synced(changes: list[Change], random: Random) -> None:
    disk = play(changes)
    assert leave(disk, Style.NONE, random) == EMPTY
    assert leave(disk, Style.ALL, random) == disk.tree(changes)
    assert leave(disk, Style.BYTES, random).entries == EMPTY.entries
    assert leave(disk, Style.NAMES, random).files == EMPTY.files
