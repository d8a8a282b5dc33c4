"""`python -m benchmarks`: Hone beside the floor and the peer, in one run and one table."""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.bench import HONE, PEER, ROOT, Bench
from benchmarks.exits import exits
from benchmarks.figures import Row
from benchmarks.journal import journal
from benchmarks.machine import described, facts
from benchmarks.month import month
from benchmarks.plot import lead, lines
from benchmarks.review import review
from benchmarks.scenarios import SCENARIOS as OTHERS
from benchmarks.server import server
from benchmarks.share import share
from benchmarks.shelf import shelf
from benchmarks.store import store
from benchmarks.table import as_json, placed, processor, table

OUT = ROOT / "docs" / "benchmarks"
SCENARIOS = {
    **OTHERS,
    "server": server,
    "share": share,
    "review": review,
    "exits": exits,
    "store": store,
    "shelf": shelf,
    "journal": journal,
    "month": month,
}
DIVES = ("recall", "memory", "imports", "skills", "start", "iterations", "transport", "commands")
"""Measurements of Hone alone with their own table, made only if they are requested by name."""


def main() -> None:
    options = parse()
    if not HONE.exists():
        raise SystemExit("There is no `hone` beside this Python. Run `make bench`, which installs it.")
    for name in options.only or ():
        if name in DIVES:
            subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], cwd=ROOT, check=True)
    names = [name for name in options.only or SCENARIOS if name in SCENARIOS]
    if names:
        report(options, names)


def report(options: argparse.Namespace, names: Sequence[str]) -> None:
    with TemporaryDirectory(prefix="hone-bench-", ignore_cleanup_errors=True) as scratch:
        bench = Bench(Path(scratch), progress, runs=options.runs, peer=options.peer)
        if options.quick:
            bench = Bench(Path(scratch), progress, 1, turns=2, calls=3, peer=options.peer, quick=True)
        machine = facts(bench.scratch, bench.peer)
        begun = time.monotonic()
        rows = measure(bench, names)
        machine["minutes"] = ceil((time.monotonic() - begun) / 60)
    figures = "\n\n".join((described(machine), table(rows), processor(rows)))
    print(figures)
    if options.out or not (options.only or options.quick):
        write(options.out or OUT, rows, machine, figures)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        choices=[*SCENARIOS, *DIVES],
        metavar="NAME",
        help=f"this one; may be repeated: {', '.join(SCENARIOS)}; or, on their own: {', '.join(DIVES)}",
    )
    parser.add_argument("--runs", type=int, default=5, help="how often each side is measured [%(default)s]")
    parser.add_argument("--quick", action="store_true", help="little of everything: to see that it works")
    parser.add_argument(
        "--peer",
        type=python,
        default=PEER if PEER.exists() else None,
        help="the Python of an environment with hermes-agent, or `none` [what `make peer` made, if any]",
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="the folder for results.json and the pictures; a document of that name beside it gets them "
        "[docs/benchmarks if everything is measured, else nowhere]",
    )
    return parser.parse_args()


def python(given: str) -> Path | None:
    if given == "none":
        return None
    path = Path(given).absolute()
    if not path.with_name("hermes").exists():
        raise argparse.ArgumentTypeError(
            f"There is no `hermes` beside {given}. `make peer` makes such a place."
        )
    return path


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
    shown = []
    for name, title, drawn in pictures(rows):
        (out / f"{name}.svg").unlink(missing_ok=True)
        if drawn:
            (out / f"{name}.svg").write_text(drawn, encoding="utf-8")
            shown.append(f"![{title}]({out.name}/{name}.svg)")
    document = out.with_suffix(".md")
    if document.exists():
        told = "\n\n".join((figures, *shown))
        document.write_text(placed(document.read_text(encoding="utf-8"), told), encoding="utf-8")
    tell(f"written: results.json and {len(shown)} pictures in {os.path.relpath(out)}")


def pictures(rows: Sequence[Row]) -> list[tuple[str, str, str | None]]:
    grown, crowd = "A tool iteration as the conversation grows", "Turns a second as sessions are added"
    return [
        ("ahead", "How many times Hone is ahead of the peer", lead(rows)),
        ("iteration", grown, lines(rows, "iteration", grown, "messages in the conversation")),
        ("sessions", crowd, lines(rows, "sessions", crowd, "sessions at once")),
    ]


def progress(number: int, runs: int) -> None:
    """Show progress on one line, if somebody watches."""
    if sys.stderr.isatty():
        done = f"  {number} of {runs}" if number < runs else " " * 20
        print(done, end="\r", file=sys.stderr, flush=True)


def tell(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
