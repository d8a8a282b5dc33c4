"""F1, C3, D3, E2, E8, G1: killed at any write, or refused by the disk at any call, it loses nothing.

A scenario is a process that says what was acknowledged as soon as it is. Another one looks at what is there
afterwards, and goes on.
"""

import os
import platform
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from msgspec import json

from tests.conftest import Figures, Tier
from tests.faults.beside import ROOT
from tests.faults.points.bench import Order, Report
from tests.faults.points.scenario import REFUSED
from tests.faults.points.scenarios import SCENARIOS
from tests.faults.points.tracer import ERRORS, Blow, Call, Kind

NAMES = [each.name for each in SCENARIOS]
WORDS = ("lost", "doubled", "half", "debris", "unsound", "unplain", "uncaught")
LASTING = 0.3
"""How often an error stays."""
EVERY, PAGES, ERRORS_EACH = 400, 100, 80
"""A scenario of no more writes than that is killed at every one of them."""
MODULE = "tests.faults.points.bench"

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the tracer knows the calls of x86-64")


class Bench:
    """The process that plays scenarios."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path, notes: Path) -> None:
        self._process, self._folder, self._notes = process, folder, notes

    def play(self, scenario: str, blow: Blow | None = None) -> Report:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.encode(Order(scenario, str(self._folder), blow)) + b"\n")
        self._process.stdin.flush()
        return json.decode(self._process.stdout.readline(), type=Report)

    def rehearsed(self, scenario: str) -> Report:
        """What an undisturbed run does. It is noted for the other processes of this test run, too."""
        note = self._notes / f"{scenario}.json"
        if not note.exists():
            report = self.play(scenario)
            assert (report.told.status, report.wrong) == (0, []), report
            draft = self._folder / note.name
            draft.write_bytes(json.encode(report))
            draft.replace(note)
        return json.decode(note.read_bytes(), type=Report)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    base = tmp_path_factory.getbasetemp()
    notes = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "rehearsed"
    notes.mkdir(exist_ok=True)
    command = [sys.executable, "-W", "error", "-m", MODULE]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environ = os.environ | {"PYTHONPATH": path, "HONE_LOCAL": "false"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, cwd=ROOT
    ) as process:
        yield Bench(process, tmp_path_factory.mktemp("points"), notes)


@dataclass
class Tally:
    """What came of a scenario's blows."""

    struck: int = 0
    missed: int = 0
    refused: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    stories: list[str] = field(default_factory=list)
    at: list[int] = field(default_factory=list)

    def add(self, index: int, blow: Blow, report: Report) -> None:
        self.struck += report.struck
        self.missed += not report.struck
        self.refused += bool(report.told.all(REFUSED))
        self.wrong.update({each.partition(":")[0] for each in report.wrong})
        if report.wrong:
            call = report.calls[blow.at - 1 : blow.at]
            self.at.append(index)
            self.stories += [
                f"index {index}, {blow}, {call}, {report.told.lines}: {each}" for each in report.wrong
            ]

    def tell(self, figures: Figures, what: str) -> None:
        found = ", ".join(f"{self.wrong[word]} {word}" for word in WORDS)
        note = f"{what}: {found}; {self.refused} refused in a sentence, {self.missed} over before"
        unfit = sum(self.wrong[word] for word in WORDS[1:])
        figures.tally(self.struck, got_in=unfit, lost=self.wrong["lost"], note=note, at=self.at)


def spread(calls: list[Call]) -> list[int]:
    """The numbers of the writes to kill at: all of them, or if those are too many, some of the pages that
    SQLite writes and all the others."""
    writes = [at for at, call in enumerate(calls, 1) if call.kind is Kind.WRITE]
    if len(writes) <= EVERY:
        return writes
    pages = [at for at in writes if calls[at - 1].name == "pwrite64"]
    some = {pages[at * len(pages) // PAGES] for at in range(PAGES)}
    return sorted(some | (set(writes) - set(pages)))


def drawn(calls: list[Call], random: Random) -> Blow:
    """Every sort of call is as likely as any other, however often it is made."""
    name = random.choice(sorted({call.name for call in calls} & set(ERRORS)))
    at = random.choice([at for at, call in enumerate(calls, 1) if call.name == name])
    lasting = random.random() < LASTING and calls[at - 1].kind is not Kind.LOCK
    return Blow(at, random.choice(ERRORS[name]), lasting)


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("scenario", NAMES)
def test_killed_at_any_write_it_is_there_once_and_whole(
    scenario: str, bench: Bench, tier: Tier, figures: Figures
) -> None:
    points, tally = spread(bench.rehearsed(scenario).calls), Tally()
    for draw in tier.draws(short=1, full=len(points)):
        blow = Blow(points[draw.index])
        tally.add(draw.index, blow, bench.play(scenario, blow))
    tally.tell(figures, f"kills of {scenario} at its writes")
    assert not tally.stories, "\n".join(tally.stories)
    assert tally.missed <= 2 + len(points) // 5  # how much is committed together depends on the moment


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("scenario", NAMES)
def test_refused_by_the_disk_at_any_call_it_says_so_and_nothing_is_half_done(
    scenario: str, bench: Bench, tier: Tier, figures: Figures
) -> None:
    calls, tally = bench.rehearsed(scenario).calls, Tally()
    for draw in tier.draws(short=2, full=ERRORS_EACH):
        blow = drawn(calls, draw.random)
        tally.add(draw.index, blow, bench.play(scenario, blow))
    tally.tell(figures, f"errors in {scenario}")
    assert not tally.stories, "\n".join(tally.stories)
    assert tally.struck


def test_a_note_of_an_agent_waits_for_the_disk_once(bench: Bench) -> None:
    """Its file is published later, with others."""
    report = bench.rehearsed("late")
    spans = dict(enumerate(zip(report.marks, report.marks[1:], strict=False), 1))
    waits = {
        step: [call.name for call in report.calls[slice(*spans[step])] if call.name in ("fsync", "fdatasync")]
        for step in (1, 3)
    }
    assert waits == {1: ["fdatasync"], 3: ["fdatasync"]}


def unsettled(calls: Sequence[Call]) -> set[str]:
    """The files and folders of the home that a power cut could still take back, after these calls."""
    open: set[str] = set()
    for call in calls:
        if call.name in ("fsync", "fdatasync"):
            open.discard(call.place)
        elif call.name in ("write", "pwrite64", "ftruncate"):
            open.add(call.place)
        elif call.name in ("rename", "renameat", "renameat2", "link", "linkat"):
            open.add(call.place.rpartition("/")[0])
    # A file without a name is gone after a power cut, whatever was in it.
    return {
        place for place in open if place.startswith("home") and not place.endswith(("-shm", " (deleted)"))
    }


@pytest.mark.parametrize("scenario", NAMES)
def test_nothing_is_acknowledged_before_it_would_survive_a_power_cut(scenario: str, bench: Bench) -> None:
    report = bench.rehearsed(scenario)
    assert report.marks
    said = zip(report.told.lines, report.marks, strict=True)
    late = {line: unsettled(report.calls[:at]) for line, at in said}
    assert {line: places for line, places in late.items() if places} == {}
