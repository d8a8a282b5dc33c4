"""`python -m benchmarks.lab`: Hone and, after `make peer`, its peer in the same worlds; `make lab` does so.

Writes docs/lab/hone.json, docs/lab/peer.json and docs/lab/curves.svg, and prints both tables.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.lab.peer import PYTHON, ROOT, play_job
from hone.features.lab.figures import ArmFigures, sum_up
from hone.features.lab.play import LabArm, Played, play_all
from hone.features.lab.plot import Panel, picture
from hone.features.lab.report import table, to_data
from hone.features.lab.world import SESSIONS

LEARNERS = ("honest", "careless")
SHOWN = ("as installed", "review after each turn")
FOLDER = ROOT / "docs" / "lab"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lab", description=__doc__)
    parser.add_argument("--worlds", type=int, default=30, help="for Hone; 0: as measured before")
    parser.add_argument("--peer-worlds", type=int, default=5, help="0: as measured before")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=FOLDER)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.worlds:
        run(options, "hone", options.worlds, play_hone)
    if options.peer_worlds and PYTHON.exists():
        run(options, "peer", options.peer_worlds, play_peer)
    (options.out / "curves.svg").write_text(draw(options.out), "utf-8")


def draw(folder: Path) -> str:
    """Draw what was measured for both sides, now or earlier."""
    files = [folder / name for name in ("hone.json", "peer.json")]
    told = [json.loads(each.read_text("utf-8"))["arms"] for each in files if each.exists()]
    arms = [arm for each in told for arm in msgspec.convert(each, list[ArmFigures])]
    panels = [Panel(f"{name} learner", tuple(arm for arm in arms if name in arm.arm)) for name in LEARNERS]
    return picture(panels, "Tasks that succeed at the first answer, by session")


Arms = dict[str, list[Played]]
"""The worlds of each arm, in the order of their seeds."""


def run(
    options: argparse.Namespace,
    side: str,
    worlds: int,
    play: Callable[[Sequence[int], int], Arms],
) -> None:
    """Run one side, print its table and write its file. Hone's first worlds are the peer's, too, and get a
    separate table."""
    seeds, begun = range(1, worlds + 1), time.monotonic()
    played = play(seeds, options.workers)
    figures = sum_up_all(played, worlds)
    show(figures)
    print(f"{side}: {worlds} worlds for each of {len(figures)} arms, {time.monotonic() - begun:,.0f} s\n")
    data: dict[str, Any] = {"agent": find_version(side), **to_data(figures, SESSIONS, seeds)}
    if side == "hone" and 0 < options.peer_worlds < worlds:
        first = sum_up_all(played, options.peer_worlds)
        show(first)
        print(f"{side}: the same in the first {options.peer_worlds} of these worlds, which are the peer's\n")
        data["first"] = to_data(first, SESSIONS, seeds[: options.peer_worlds])
    (options.out / f"{side}.json").write_text(json.dumps(data, indent=1) + "\n", "utf-8")


def sum_up_all(played: Arms, worlds: int) -> list[ArmFigures]:
    return [sum_up(arm, each[:worlds], SESSIONS) for arm, each in played.items()]


def show(figures: Sequence[ArmFigures]) -> None:
    for name in LEARNERS:
        print("\n".join(table(name, [each for each in figures if name in each.arm])))


def find_version(side: str) -> str:
    """Return the name and version of the peer as installed, or Hone's commit."""
    if side == "hone":
        told = subprocess.run(
            ("git", "describe", "--always"), cwd=ROOT, capture_output=True, text=True, check=False
        )
        return f"hone {told.stdout.strip()}"
    [installed] = PYTHON.parent.parent.glob("lib/*/site-packages/hermes_agent-*.dist-info")
    return installed.name.removesuffix(".dist-info").replace("_", "-")


def play_hone(seeds: Sequence[int], workers: int) -> Arms:
    arms = [LabArm(name, learns) for name in LEARNERS for learns in (True, False)]
    played = play_all([(arm, seed, SESSIONS) for arm in arms for seed in seeds], workers, lambda: None)
    return {
        f"Hone: {arm.name}": played[at * len(seeds) : (at + 1) * len(seeds)] for at, arm in enumerate(arms)
    }


def play_peer(seeds: Sequence[int], workers: int) -> Arms:
    arms = [(name, settings) for name in LEARNERS for settings in SHOWN]
    jobs = [(name, settings, seed) for name, settings in arms for seed in seeds]
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        played = list(pool.map(play_job, jobs))
    return {
        f"hermes-agent: {name}, {settings}": played[at * len(seeds) : (at + 1) * len(seeds)]
        for at, (name, settings) in enumerate(arms)
    }


if __name__ == "__main__":
    main()
