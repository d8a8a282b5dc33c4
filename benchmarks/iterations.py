"""`python -m benchmarks.iterations --compare REV`: the processor time of a tool call, beside another tree."""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.bench import environment
from benchmarks.provider import serving
from benchmarks.revision import ROOT, unpacked
from benchmarks.start import HERE, Row, alternate, table

COUNTS = (10, 100, 1000, 2000)
AMOUNTS = ("--turns", "7", "--calls", "20", "--padding", "14000")
RUNS = 10


@dataclass(frozen=True, slots=True)
class Tree:
    """A working tree whose own `benchmarks.work` runs against the provider at `url`. `figure` selects a part
    of its answer: "cpu" or "value", the wall time."""

    root: Path
    url: str
    figure: str

    def take(self, count: int) -> float:
        """Return the median milliseconds per tool call of a turn that begins with `count` messages."""
        with TemporaryDirectory(prefix="hone-bench-") as home:
            job = ("hone", "iterations", "--url", self.url, "--home", home, "--count", str(count))
            done = subprocess.run(
                (sys.executable, "-m", "benchmarks.work", *job, *AMOUNTS),
                cwd=self.root,
                env=environment(Path(home), self.url) | {"PYTHONPATH": f"{self.root / 'src'}:{self.root}"},
                check=True,
                stdout=subprocess.PIPE,
            )
        return float(json.loads(done.stdout.splitlines()[-1])[self.figure])


def measured(trees: Mapping[str, Tree], runs: int) -> Iterator[Row]:
    for count in COUNTS:
        yield alternate(f"{count:,} messages", trees, partial(Tree.take, count=count), runs)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.iterations", description=__doc__)
    parser.add_argument("--compare", metavar="REV", help="a Git revision to measure beside the working tree")
    parser.add_argument("--runs", type=int, default=RUNS, help="how often each is measured [%(default)s]")
    parser.add_argument("--clock", action="store_true", help="measure by the clock, on a quiet machine")
    options = parser.parse_args()
    figure, unit = ("value", "by the clock") if options.clock else ("cpu", "of processor time")
    with TemporaryDirectory(prefix="hone-bench-") as scratch:
        folder = Path(scratch)
        with serving(environment(folder / "provider")) as provider:
            trees = {HERE: Tree(ROOT, provider.url, figure)}
            if options.compare:
                other = Tree(unpacked(options.compare, folder / "tree"), provider.url, figure)
                trees = {options.compare: other} | trees
            for line in table(f"a tool call, ms {unit}", list(trees), measured(trees, options.runs)):
                print(line, flush=True)


if __name__ == "__main__":
    main()
