"""Very many skills: their size in the prompt, and the time to build that part of it.

"Cold" is a new process that has to read every skill, "warm" one that finds an earlier process's cache.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.bench import ROOT, Bench, Sample, Samples, Take, alternate, environment, lodged, play, row
from benchmarks.figures import Row, Side
from benchmarks.skills import COLD, WARM, documents, forget_cards, furnish
from hone.prompt.compose import BUDGET

COUNTS = {1_000: None, 5_000: 40.0}
"""Skills, and the factor by which the peer's part of the prompt should be larger."""
NOWHERE = "http://127.0.0.1:9"
SNAPSHOT = ".skills_prompt_snapshot.json"
"""What the peer keeps for the next process."""


@dataclass(frozen=True, slots=True)
class Cupboard:
    """A home with skills in it."""

    home: Path
    peer: Path | None

    def take(self, *, cold: bool) -> Sample:
        if cold:
            self.forget()
        environ, python = environment(self.home, NOWHERE), self.peer or Path(sys.executable)
        command: list[str | Path] = [python, "-m", "benchmarks.skills", "--compose", self.home]
        if self.peer:
            environ |= lodged(self.peer, self.home, NOWHERE)
            command = [python, "-m", "benchmarks.peer.skills"]
        took, cpu, size = json.loads(play(command, environ, ROOT))
        return Sample(took, cpu, other=size)

    def forget(self) -> None:
        if self.peer:
            (self.home / SNAPSHOT).unlink(missing_ok=True)
        else:
            asyncio.run(forget_cards(self.home))


def shelf(bench: Bench) -> Iterator[Row]:
    for many, lead in list(COUNTS.items())[: 1 if bench.quick else None]:
        count = many // 100 if bench.quick else many
        sides: dict[Side, Cupboard] = {"hone": furnished(bench, count, None)}
        if bench.peer:
            sides["peer"] = furnished(bench, count, bench.peer)
        cold = measured(bench, sides, cold=True)
        warm = measured(bench, sides, cold=False)
        sizes = {side: [Sample(each.other) for each in some] for side, some in cold.items()}
        yield row(f"{count:,} skills in the prompt", "bytes", BUDGET, sizes, lead)
        yield row(f"{count:,} skills in the prompt, cold", "ms", COLD, cold, lead=1)
        yield row(f"{count:,} skills in the prompt, warm", "ms", WARM, warm, lead=1)


def furnished(bench: Bench, count: int, peer: Path | None) -> Cupboard:
    home = bench.folder()
    if peer is None:
        asyncio.run(furnish(home, count))
    for name, text in documents(count) if peer else ():
        place = home / "skills" / "work" / name / "SKILL.md"
        place.parent.mkdir(parents=True)
        place.write_text(text, encoding="utf-8")
    return Cupboard(home, peer)


def measured(bench: Bench, sides: dict[Side, Cupboard], *, cold: bool) -> Samples:
    takes: dict[Side, Take] = {side: partial(each.take, cold=cold) for side, each in sides.items()}
    return alternate(bench, bench.runs, takes, most=3, warm=bench.quick)
