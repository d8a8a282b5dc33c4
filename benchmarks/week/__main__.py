"""`python -m benchmarks.week`: play the stories and print what was learned from them."""

import argparse
import os
import sys
from pathlib import Path

import msgspec

from benchmarks.week import cues
from benchmarks.week.company import perform
from benchmarks.week.play import Conditions
from benchmarks.week.report import describe, report
from benchmarks.week.stories import BLIND, OWN, SURFACES, find_faults, load, sample

RATES = (0.0, 0.1, 0.3)


def main() -> None:
    options = _options()
    blind, own = load(BLIND), load(OWN)
    for fault in find_faults([*blind, *own]):
        print(fault, file=sys.stderr)
    chosen = {"blind": blind, "own": own, "all": [*blind, *own]}[options.stories]
    stories = sample([each for each in chosen if each.id in options.only or not options.only], options.sample)
    known = frozenset(each.id for each in blind)
    conditions = [Conditions(rate, options.seed, options.by_hand) for rate in options.rates]
    scores = perform(stories, conditions, options.workers, known, options.through)
    found = report(scores, cues.measure(stories), options.seed, through=options.through)
    print("\n".join(describe(found)))
    if options.out:
        options.out.write_bytes(msgspec.json.format(msgspec.json.encode(found)) + b"\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.week", description=__doc__)
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="only so many stories")
    parser.add_argument("--stories", choices=("all", "blind", "own"), default="all")
    parser.add_argument("--only", nargs="*", default=[], metavar="ID", help="these stories")
    parser.add_argument("--rates", type=float, nargs="*", default=RATES, help="of the model's errors")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=(os.cpu_count() or 2) + 1)
    parser.add_argument("--through", nargs="*", default=[], choices=SURFACES, help="in place of their own")
    parser.add_argument("--by-hand", action="store_true", help="say hone review after each conversation")
    parser.add_argument("--out", type=Path, help="a file for the figures as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    main()
