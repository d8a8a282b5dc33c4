"""Run it from a shell: print a table, and exit with 1 if anything happened that must not."""

import argparse
import asyncio
import sys

from tests.faults.fleet.running import Plan, run
from tests.faults.fleet.verdict import find_violations, print_table


def main() -> int:
    usual = Plan()
    parser = argparse.ArgumentParser(prog="python -m tests.faults.fleet")
    parser.add_argument("--seconds", type=float, default=usual.seconds)
    parser.add_argument("--workers", type=int, default=usual.workers)
    parser.add_argument("--servers", type=int, default=usual.servers)
    parser.add_argument("--clients", type=int, default=usual.clients, help="that talk to servers")
    parser.add_argument("--pause", type=float, default=usual.pause, help="seconds between two messages")
    parser.add_argument("--rate", type=float, default=usual.rate, help="further reviews due, a second")
    parser.add_argument("--stop", type=float, default=usual.stop, help="seconds that a process is stopped")
    parser.add_argument("--seed", type=int, default=usual.seed)
    found = asyncio.run(run(Plan(**vars(parser.parse_args()))))
    print_table(found)
    wrong = find_violations(found)
    for each in wrong:
        print(f"VIOLATION  {each}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
