"""The tool as one runs it: it measures, says what it measured, and writes where it is told to."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from benchmarks.bench import (
    PEER,
    ROOT,
    UNREVIEWED,
    Bench,
    Sample,
    alternate,
    environment,
    lodged,
    work,
)
from benchmarks.figures import Side
from benchmarks.provider import serving
from benchmarks.table import BEGIN, END


def bench(*options: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *options]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)


def test_without_a_peer_everything_else_is_measured_and_written(tmp_path: Path) -> None:
    page = tmp_path / "figures.md"
    page.write_text(f"Before.\n{BEGIN}\nold\n{END}\nAfter.\n")
    done = bench("--quick", "--peer", "none", "--only", "iteration", "--out", tmp_path / "figures")
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "figures" / "results.json").read_text())
    assert [row["point"] for row in told["rows"]] == [["iteration", 10], ["iteration", 100]]
    assert all(row["hone"] and row["floor"] and not row["peer"] for row in told["rows"])
    ElementTree.parse(tmp_path / "figures" / "iteration.svg")
    written = page.read_text()
    assert (written[:8], written[-7:]) == ("Before.\n", "After.\n")
    assert "old" not in written
    assert "![A tool iteration as the conversation grows](figures/iteration.svg)" in written
    assert not (tmp_path / "figures" / "ahead.svg").exists()
    assert "a tool iteration, 100 messages" in done.stdout
    assert "ahead of the peer" not in done.stdout


def test_a_peer_that_is_not_there_is_refused_with_the_way_to_get_it(tmp_path: Path) -> None:
    done = bench("--peer", tmp_path / "python")
    assert done.returncode == 2
    assert "`make peer`" in done.stderr


def test_the_sides_take_turns_after_a_round_that_does_not_count(tmp_path: Path) -> None:
    order: list[Side] = []

    def take(side: Side) -> Sample:
        order.append(side)
        return Sample(len(order))

    told: list[tuple[int, int]] = []
    asked = Bench(tmp_path, lambda number, runs: told.append((number, runs)))
    sides: tuple[Side, ...] = ("hone", "floor", "peer")
    found = alternate(asked, 3, {side: partial(take, side) for side in sides}, most=2)
    assert order == [*sides, *sides, *sides, "hone", "floor"]
    assert [each.value for each in found["hone"]] == [4, 7, 10]
    assert [each.value for each in found["peer"]] == [6, 9]
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_the_peer_finds_a_home_in_which_it_asks_nobody_but_the_provider(tmp_path: Path) -> None:
    python, home = tmp_path / "env" / "bin" / "python", tmp_path / "home"
    (tmp_path / "env" / "lib" / "python3.11" / "site-packages" / "hermes_agent-1.2.3.dist-info").mkdir(
        parents=True
    )
    home.mkdir()
    environ = lodged(python, home, "http://127.0.0.1:9", UNREVIEWED)
    assert environ["HERMES_HOME"] == str(home)
    assert environ["PATH"].startswith(f"{python.parent}{os.pathsep}")
    told = yaml.safe_load((home / "config.yaml").read_text())
    assert told["model"]["base_url"] == "http://127.0.0.1:9/v1"
    assert told["security"] == {"allow_lazy_installs": False, "tirith_enabled": False}
    assert (told["memory"]["nudge_interval"], told["skills"]["creation_nudge_interval"]) == (0, 0)
    checked = json.loads((home / ".update_check").read_text())
    assert (checked["ver"], checked["behind"]) == ("1.2.3", 0)


@pytest.mark.long
@pytest.mark.skipif(not PEER.exists(), reason="`make peer` has not been run")
@pytest.mark.parametrize("job", ["iterations", "sessions", "resident"])
def test_the_peer_does_the_same_work(job: str, tmp_path: Path) -> None:
    """A job that finds another number of messages than it counts on gives no figure."""
    asked = Bench(tmp_path, lambda *_: None, peer=PEER)
    with serving(environment(tmp_path)) as provider:
        done = work(asked, provider, "peer", job, {"count": 4, "turns": 2, "calls": 2})
    assert done.value > 0
    assert done.cpu > 0
