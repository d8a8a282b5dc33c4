"""`python -m benchmarks`: Hone beside the floor, in one run and one table."""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.figures import Row
from benchmarks.machine import described, facts
from benchmarks.plot import picture
from benchmarks.review import review
from benchmarks.scenarios import HONE, ROOT, Bench
from benchmarks.scenarios import SCENARIOS as OTHERS
from benchmarks.server import server
from benchmarks.table import as_json, placed, processor, table

OUT = ROOT / "docs" / "benchmarks"
SCENARIOS = {**OTHERS, "review": review, "server": server}


def main() -> None:
    options = parse()
    if not HONE.exists():
        raise SystemExit("There is no `hone` beside this Python. Run `make bench`, which installs it.")
    with TemporaryDirectory(prefix="hone-bench-") as scratch:
        bench = Bench(Path(scratch), progress, runs=options.runs)
        if options.quick:
            bench = Bench(Path(scratch), progress, runs=min(options.runs, 2), turns=3)
        machine = facts(bench.scratch)
        rows = measure(bench, options.only or list(SCENARIOS))
    figures = "\n\n".join((described(machine), table(rows), processor(rows)))
    print(figures)
    if options.out or not (options.only or options.quick):
        write(options.out or OUT, rows, machine, figures)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(SCENARIOS), help="this one; may be repeated")
    parser.add_argument("--runs", type=int, default=7, help="how often each side is measured [%(default)s]")
    parser.add_argument("--quick", action="store_true", help="little of everything: to see that it works")
    parser.add_argument(
        "--out",
        type=Path,
        help="the folder for results.json and the picture; a document of that name beside it gets the table "
        "[docs/benchmarks if everything is measured, else nowhere]",
    )
    return parser.parse_args()


def measure(bench: Bench, names: Sequence[str]) -> list[Row]:
    rows = []
    for name in names:
        begun = time.monotonic()
        for row in SCENARIOS[name](bench):
            rows.append(row)
            tell(f"{row.name}: {time.monotonic() - begun:.0f} s")
    return rows


def write(out: Path, rows: Sequence[Row], machine: dict[str, str | float | int], figures: str) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.json").write_text(as_json(rows, machine), encoding="utf-8")
    (out / "figures.svg").write_text(picture(rows), encoding="utf-8")
    document = out.with_suffix(".md")
    if document.exists():
        document.write_text(placed(document.read_text(encoding="utf-8"), figures), encoding="utf-8")
    tell(f"written: results.json and figures.svg in {os.path.relpath(out)}")


def progress(number: int, runs: int) -> None:
    """A line that is written over, where somebody looks on."""
    if sys.stderr.isatty():
        done = f"  {number} of {runs}" if number < runs else " " * 20
        print(done, end="\r", file=sys.stderr, flush=True)


def tell(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
