"""The long tier as one tool: `python -m tests.trials [--only NAME …] [--seed N] [--index K] [--short]`."""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from tests.trials import mutate, table
from tests.trials.guards import MUTATIONS
from tests.trials.suites import NAMES, SUITES, Suite
from tests.trials.table import Row

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reliability.md"
FIGURES = ROOT / "docs" / "reliability.json"
DEADLINE = 7_200
"""Seconds a test may take."""


def main(words: Sequence[str] | None = None) -> int:
    asked = parsed(words)
    if asked.list:
        width = max(map(len, NAMES))
        print("\n".join(f"{suite.name:{width}}  {suite.about}" for suite in SUITES))
        return 0
    return check_guards(asked) if asked.mutate else run_suites(asked)


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=table.COMMAND, description="Faults and attacks, counted.")
    parser.add_argument("--list", action="store_true", help="say which suites there are")
    parser.add_argument(
        "--only", action="append", choices=NAMES, metavar="NAME", help="this suite; may be given again"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of what is drawn (default: %(default)s)")
    parser.add_argument("--index", type=int, action="append", default=[], help="only this case of each count")
    parser.add_argument("--workers", type=int, default=0, help="processes that share the tests of a suite")
    parser.add_argument("--short", action="store_true", help="a sample of each count")
    parser.add_argument(
        "--mutate", action="store_true", help="disable each guard in turn; some test must fail"
    )
    parser.add_argument("--guard", default="", help="with --mutate: only guards whose name has this in it")
    parser.add_argument("--write", action="store_true", help=f"put what came of it into {PAGE.name}")
    return parser.parse_args(words)


def run_suites(asked: argparse.Namespace) -> int:
    rows = []
    for suite in [NAMES[name] for name in asked.only or NAMES]:
        print(f"{suite.name}: {suite.about} …", flush=True)
        rows.append(run(suite, asked))
        tell(rows[-1])
        if asked.write and not asked.index:  # at once: the next suite may take an hour
            table.put(PAGE, "suites", table.markdown(table.merged(FIGURES, rows, [*NAMES])))
    print(f"\n{table.markdown(rows)}")
    return 0 if all(each.well for each in rows) else 1


def run(suite: Suite, asked: argparse.Namespace) -> Row:
    """In a process of its own, whose progress is shown."""
    options = ["--seed", str(asked.seed), "--timeout", str(DEADLINE)]
    options += [] if asked.short else ["--long"]
    options += ["-n", str(asked.workers)] if asked.workers else []
    for index in asked.index:
        options += ["--index", str(index)]
    began = monotonic()
    with TemporaryDirectory(prefix="hone-trials-") as folder:
        path = Path(folder, "tallies")
        command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "--tallies", str(path)]
        ended = subprocess.run([*command, *options, *suite.tests], cwd=ROOT, check=False, env=os.environ)
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
    told: list[dict[str, Any]] = [json.loads(line) for line in lines]
    if ended.returncode and not any(each["failed"] for each in told):
        told.append(
            {
                "test": suite.name,
                "failed": f"pytest ended with {ended.returncode}",
                "tallies": [],
                "replay": [],
            }
        )
    return table.row(suite.name, told, monotonic() - began, asked.seed, short=asked.short)


def tell(row: Row) -> None:
    for note in row.notes:
        print(f"  {note}")
    for failure in row.failed:
        print(f"  FAILED {failure}")
    counts = f"{row.tried:,} tried, {row.got_in:,} got in, {row.lost:,} lost (seed {row.seed})"
    print(
        f"  {counts} in {row.seconds:,.0f} s" + ("" if row.well else f"\n  again: {row.replay}"), flush=True
    )


def check_guards(asked: argparse.Namespace) -> int:
    found = []
    for mutation in MUTATIONS:
        if asked.guard in mutation.guard:
            found.append(mutate.try_out(mutation))
            noticed = found[-1].test or "NOBODY NOTICED"
            print(f"{mutation.guard}: {mutation.what}\n  {noticed}\n  {found[-1].reason[:200]}", flush=True)
    missed = [each.mutation.guard for each in found if not each.test]
    print(f"\n{len(found)} guards disabled in turn, {len(missed)} unnoticed", *missed, sep="\n  ")
    if asked.write and not asked.guard:
        kept = {each.mutation.guard: {"disabled": each.mutation.what, "failed": each.test} for each in found}
        table.store(FIGURES, "guards", kept)
        table.put(PAGE, "guards", mutate.table(found))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
