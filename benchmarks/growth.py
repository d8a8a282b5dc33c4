"""`python -m benchmarks.growth`: a tool call and a turn in a large home, beside a small one.

Both homes take turns. The figures are milliseconds of processor time, of each the least and the median.
"""

import argparse
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.bars import PADDING, play
from benchmarks.bench import environment
from benchmarks.large_home import SMALL, HomeSize, build
from benchmarks.provider import serving

MESSAGES, CALLS, RUNS = 1_000_000, 300_000, 5
ROWS = {"a tool call, 10 messages": 20, "a turn without a tool call, 10 messages": 0}


def take(url: str, calls: int, home: Path) -> float:
    amounts = ("--count", "10", "--turns", "10" if calls else "60", "--calls", str(calls))
    place = ("--url", url, "--home", str(home), "--padding", PADDING)
    return float(play(str(home), url, "benchmarks.work", "hone", "iterations", *place, *amounts)["cpu"])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--messages", type=int, default=MESSAGES, help="of the large home [%(default)s]")
    parser.add_argument(
        "--calls", type=int, default=CALLS, help="model calls of the large home [%(default)s]"
    )
    parser.add_argument("--runs", type=int, default=RUNS, help="how often each is measured [%(default)s]")
    options = parser.parse_args()
    sizes = {"small": SMALL, "large": HomeSize(options.messages, 20, 30, options.calls, 200)}
    with TemporaryDirectory(prefix="hone-growth-") as scratch:
        homes = {name: Path(scratch) / name for name in sizes}
        for name, size in sizes.items():
            build(homes[name], size)
        with serving(environment(Path(scratch) / "provider")) as provider:
            for row, calls in ROWS.items():
                one = partial(take, provider.url, calls)
                rounds = [{name: one(home) for name, home in homes.items()} for _ in range(options.runs)]
                small, large = ([each[name] for each in rounds] for name in sizes)
                figures = (
                    f"{min(small):.2f}, {median(small):.2f}; large {min(large):.2f}, {median(large):.2f}"
                )
                print(f"{row}: small {figures}; {median(large) / median(small):.2f} times", flush=True)


if __name__ == "__main__":
    main()
