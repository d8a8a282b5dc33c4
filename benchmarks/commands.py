"""`python -m benchmarks.commands`: what toolchains, caches and sealed places add to a command.

The two sides take turns in one run: a cell with a folder and the system, and the cell that commands get.
"""

import argparse
import asyncio
import os
import resource
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from msgspec import Struct

from hone.core.clock import SystemClock
from hone.files.tree import TICK
from hone.sandbox.choice import Sandbox
from hone.sandbox.output import Output, Spill
from hone.sandbox.process import run
from hone.sandbox.spec import ALL, SandboxSpec
from hone.sandbox.workspace import Workspace

RUNS = 40
WANTED = 15.0
"""In milliseconds."""
FOLDERS = {
    "a small repository": 20,
    "a repository with 1,000 folders": 1_000,
    "one with 5,000 folders": 5_000,
}
QUIET = ("/bin/true",)
CHANGING = ("/bin/mktemp", "made-XXXXXX")
"""It changes the folder it runs in."""
TOOLCHAINS = (
    ".cargo/bin",
    ".rustup",
    ".pyenv/shims",
    ".nvm/versions/node/v20/bin",
    ".local/share/uv/tools/x/bin",
)


@contextmanager
def user(root: Path) -> Iterator[None]:
    """Make a home with toolchains that are on PATH."""
    folders = [root / name for name in (*TOOLCHAINS, ".local/bin")]
    for folder in folders:
        folder.mkdir(parents=True)
        for number in range(20):
            (folder / f"tool-{number}").write_text("#!/bin/sh\n")
    before = {name: os.environ.get(name) for name in ("HOME", "PATH")}
    os.environ |= {"HOME": str(root), "PATH": ":".join([*map(str, folders), os.environ["PATH"]])}
    try:
        yield
    finally:
        os.environ |= {name: value for name, value in before.items() if value is not None}


def folder_of(root: Path, count: int) -> Path:
    return (root / f"folder-{count}").resolve()


def lay_out(folder: Path, count: int) -> None:
    """Make a repository with the usual sealed places, and many folders."""
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    for name in (".github/workflows/ci.yml", ".vscode/settings.json", ".envrc", ".pre-commit-config.yaml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x\n")
    for number in range(count):
        place = folder / f"part-{number // 50}" / f"{number % 50}"
        place.mkdir(parents=True)
        (place / "file.py").write_text("x\n")


Take = Callable[[], Awaitable[object]]


def spent() -> float:
    """Return the processor time of this process and of those that have ended, in milliseconds."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used) * 1000


class Times(Struct, frozen=True):
    """The times of one command, in milliseconds: the median of its processor time, and the shortest wall
    time."""

    processor: float
    clock: float


async def compare(takes: list[Take], runs: int) -> list[Times]:
    """Compare two sides. They take turns, so a busy moment affects both."""
    samples: list[list[tuple[float, float]]] = [[] for _ in takes]
    for _ in range(runs):
        for take, found in zip(takes, samples, strict=True):
            begun = (spent(), time.perf_counter())
            await take()
            found.append((spent() - begun[0], (time.perf_counter() - begun[1]) * 1000))
    return [Times(median(each[0] for each in one), min(each[1] for each in one)) for one in samples]


async def measure(root: Path, count: int, runs: int, argv: Sequence[str]) -> tuple[Times, Times, float]:
    """Measure the bare sandbox, the one that commands get, and the search for its contents."""
    folder = folder_of(root, count)
    clock = SystemClock()
    sandbox = Sandbox(home=root / "home", clock=clock)
    workspace = Workspace(folder, sandbox, clock)
    try:
        begun = time.perf_counter()
        sandbox.survey(folder)
        survey = (time.perf_counter() - begun) * 1000
        choice = await workspace.choice()
        if choice.held != ALL:
            raise SystemExit("No sandbox holds here; see hone doctor.")
        bare = SandboxSpec(folder, hidden=(root / "home",), scratch=workspace.scratch())
        launch = choice.mode.wrap(argv, bare)

        async def alone() -> None:
            await run(launch, output=Output(Spill(Path(os.devnull), "")), clock=clock, timeout=60)

        async def whole() -> None:
            await workspace.run(workspace.launch(argv, choice), "measured", 60)

        one, other = await compare([alone, whole], runs)
    finally:
        await workspace.close()
    return one, other, survey


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.commands", description=__doc__)
    parser.add_argument(
        "--runs", type=int, default=RUNS, help="how often each side is measured [%(default)s]"
    )
    parser.add_argument("--quick", action="store_true", help="the smallest folder, once")
    parser.add_argument("--changing", action="store_true", help="a command that changes its folder")
    options = parser.parse_args()
    argv = CHANGING if options.changing else QUIET
    heads = ("bare cell", "with tools and seals", "more", "more by the clock", "wanted", "met", "found once")
    print(f"| processor time of {argv[0]}, ms | {' | '.join(heads)} |")
    print(f"| --- |{' ---: |' * len(heads)}")
    with TemporaryDirectory(prefix="hone-commands-") as name:
        root = Path(name)
        (root / "home").mkdir(mode=0o700)
        with user(root / "user"):
            wanted = [*FOLDERS.items()][: 1 if options.quick else None]
            for _, count in wanted:
                lay_out(folder_of(root, count), count)
            time.sleep(0 if options.quick else TICK / 1e9)  # recently changed folders are read every time
            for what, count in wanted:
                runs = 1 if options.quick else options.runs
                print(row(what, *asyncio.run(measure(root, count, runs, argv))), flush=True)


def row(what: str, bare: Times, whole: Times, survey: float) -> str:
    more, clock = whole.processor - bare.processor, whole.clock - bare.clock
    met = "yes" if more <= WANTED else "**no**"
    shown = (
        *(f"{each:.1f}" for each in (bare.processor, whole.processor, more, clock)),
        f"≤ {WANTED:g}",
        met,
    )
    return f"| {what} | {' | '.join(shown)} | {survey:.0f} |"


if __name__ == "__main__":
    main()
