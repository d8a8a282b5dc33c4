"""Measure what happens to a review whose process ends: turns that are due for one, and nobody who stays.

Each turn is a separate process and conversation, and says one thing that its review would note. Then a
process starts that stays until nothing is left to do. What is not in the journal by then is lost.
"""

import argparse
import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from benchmarks.bench import HONE, ROOT, Bench, Command, environment, lodged, play
from benchmarks.figures import Row, Side
from benchmarks.learner import Learner, fact, furnish, learning, words
from hone import Hone
from hone.runtime.task_runner import ignore

TURNS = 6
LATENCY = 0.1
"""Seconds that the provider needs for an answer."""
SETTINGS = "[learning]\nturns = 1\niterations = 0\n"
PEERS = "memory: {nudge_interval: 1}\nskills: {creation_nudge_interval: 0}\n"

End = Callable[[Path | None, int, Path, Path, Mapping[str, str]], None]
"""One turn in a home and a folder, and how its process ends."""


def exits(bench: Bench) -> Iterator[Row]:
    turns = 1 if bench.quick else TURNS
    for name, end in ENDS.items():
        lost: dict[Side, tuple[float, ...]] = {"hone": (float(missing(bench, None, turns, end)),)}
        if bench.peer:
            lost["peer"] = (float(missing(bench, bench.peer, turns, end)),)
        row = f"reviews lost of {turns}, {name}"
        yield Row(row, "lost", lost["hone"], aim=0, peer=lost.get("peer", ()))


def missing(bench: Bench, peer: Path | None, turns: int, end: End) -> int:
    home, folder, notes = bench.folder(), bench.folder(), bench.folder()
    furnish(folder, turns)
    (home / "hone.toml").write_text(SETTINGS)
    with learning(environment(notes), notes, LATENCY) as learner:
        environ = environment(home, learner.url) | {"PYTHONPATH": str(ROOT)}
        if peer:
            environ |= lodged(peer, home, learner.url, PEERS)
        for turn in range(turns):
            end(peer, turn, home, folder, environ)
            bench.tell(turn + 1, turns)
        play(staying(peer, home, folder), environ, folder)
        return turns - kept(home, peer, turns, learner)


def kept(home: Path, peer: Path | None, turns: int, learner: Learner) -> int:
    if len(learner.bodies()) < turns:
        raise SystemExit(f"only {len(learner.bodies())} requests came: this is another workload")
    journal = home / ("memories/MEMORY.md" if peer else "MEMORY.md")
    text = journal.read_text(encoding="utf-8") if journal.exists() else ""
    return sum(fact(turn) in text for turn in range(turns))


def by_itself(peer: Path | None, turn: int, _home: Path, folder: Path, environ: Mapping[str, str]) -> None:
    task = words(turn)
    play([peer.with_name("hermes"), "-z", task] if peer else [HONE, "run", task], environ, folder)


def killed(peer: Path | None, turn: int, home: Path, folder: Path, environ: Mapping[str, str]) -> None:
    """Kill a process that would stay, as a chat does."""
    command = [*staying(peer, home, folder), str(turn)]
    with subprocess.Popen(
        command, env=dict(environ), cwd=folder, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        answered = any(line.strip() == "answered" for line in process.stdout)
        process.send_signal(signal.SIGKILL)
        if not answered:
            raise SystemExit(f"{' '.join(map(str, command))} did not answer")


ENDS: Mapping[str, End] = {"the command ends": by_itself, "killed after the answer": killed}


def staying(peer: Path | None, home: Path, folder: Path) -> Command:
    """Return the command of a process that stays until it has nothing left to do."""
    if peer:
        return [peer, "-m", "benchmarks.peer.exits"]
    return [sys.executable, "-m", "benchmarks.exits", str(home), str(folder)]


async def stay(home: Path, folder: Path, turn: int | None) -> None:
    async with Hone(home=home, folder=folder, learning="queue") as hone:
        hone.background.attend(ignore)
        if turn is None:
            await hone.background.drain()
            return
        done = await (await hone.session()).send(words(turn))
        if done.error:
            raise SystemExit(f"Hone did not answer: {done.error}")
        print("answered", flush=True)
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exits", description=__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("turn", type=int, nargs="?")
    options = parser.parse_args()
    asyncio.run(stay(options.home, options.folder, options.turn))


if __name__ == "__main__":
    main()
