"""`python -m benchmarks.rewind`: what it costs to be able to take back what a command does.

Each way prepares for a command, which changes ten files, and notes what it changed; then once more. Printed
are wall times, the best of some runs, and how much more is on the disk afterwards.
"""

import argparse
import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Protocol

from hone.core.clock import SystemClock
from hone.core.ids import SessionId
from hone.features.checkpoints.commanding import CommandRun, CommandWatch
from hone.features.checkpoints.store import CheckpointStore
from hone.features.checkpoints.values import TurnMark

RUNS = 3
CHANGED = 10
GIT = ("git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "gc.auto=0")


class Way(Protocol):
    """A way to undo what commands do. `before` and `after` surround each command."""

    def before(self) -> None: ...

    def after(self) -> None: ...


class OwnStore:
    """Hone's way: copied content, git's objects where git has them, and the changes in SQLite."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self._store = CheckpointStore(scratch, SystemClock())
        self._watch = CommandWatch(folder, scratch, self._store)
        self._runner = asyncio.Runner()
        self._run = CommandRun(TurnMark(SessionId("5e55"), 1, "a"), "terminal: make")

    def before(self) -> None:
        self._runner.run(self._watch.enter(self._run))

    def after(self) -> None:
        self._runner.run(self._watch.leave(self._run, discard=False))

    def close(self) -> None:
        self._runner.run(self._watch.close())
        self._runner.run(self._store.close())
        self._runner.close()


class ShadowGit:
    """A second repository next to the home: the whole folder is added to it around each command."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self._folder, self._git = folder, scratch / "shadow.git"
        self._ask("init", "-q")

    def before(self) -> None:
        self._ask("add", "-A")
        self._ask("write-tree")

    after = before

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def _ask(self, *arguments: str) -> None:
        place = ("--git-dir", str(self._git), "--work-tree", str(self._folder))
        subprocess.run([*GIT, *place, *arguments], cwd=self._folder, check=True, capture_output=True)


class Copy:
    """A copy of the folder before each command; blocks are shared if the file system supports that."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self._folder, self._scratch, self._count = folder, scratch, 0

    def before(self) -> None:
        self._count += 1
        target = self._scratch / f"copy-{self._count}"
        subprocess.run(["cp", "-a", "--reflink=auto", str(self._folder), str(target)], check=True)

    def after(self) -> None:
        """Do nothing: the copy is compared on demand."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


WAYS: dict[str, tuple[Callable[[Path, Path], "OwnStore | ShadowGit | Copy"], bool]] = {
    "own store, no git": (OwnStore, False),
    "own store, git has all": (OwnStore, True),
    "shadow git repository": (ShadowGit, False),
    "copy on write": (Copy, False),
}


def fill(folder: Path, files: int) -> int:
    """Write source files of a few kilobytes; return how many bytes."""
    random, total = Random(1), 0
    words = [f"word{number}" for number in range(2_000)]
    for number in range(files):
        path = folder / f"d{number % 50}" / f"m{number % 7}" / f"f{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "\n".join(" ".join(random.choices(words, k=8)) for _ in range(random.randint(10, 200)))
        path.write_text(text)
        total += len(text)
    return total


def change(folder: Path, at: int) -> None:
    files = sorted(folder.glob("d*/m*/*.py"))
    for path in files[at : at + CHANGED]:
        with path.open("a") as file:
            file.write("changed\n")


def commit(folder: Path) -> None:
    for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "all")):
        subprocess.run([*GIT, *arguments], cwd=folder, check=True, capture_output=True)
    time.sleep(0.05)  # every way reads files written at the same time as the index
    subprocess.run([*GIT, "status"], cwd=folder, check=True, capture_output=True)


def size_of(folder: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


@contextmanager
def place(files: int, *, git: bool) -> Iterator[tuple[Path, Path]]:
    with TemporaryDirectory() as name:
        folder, scratch = Path(name, "work"), Path(name, "scratch")
        folder.mkdir()
        scratch.mkdir()
        fill(folder, files)
        if git:
            commit(folder)
        os.sync()
        yield folder, scratch


def measure(name: str, files: int) -> tuple[list[float], int]:
    """Return the milliseconds before and after the first command and the second, and bytes on disk."""
    make, git = WAYS[name]
    with place(files, git=git) as (folder, scratch):
        way, spent = make(folder, scratch), list[float]()
        for number in range(2):
            for act in (way.before, way.after):
                began = time.perf_counter()
                act()
                spent.append((time.perf_counter() - began) * 1000)
                if act == way.before:
                    change(folder, number * 100)
        way.close()
        size = size_of(scratch)
        shutil.rmtree(scratch)
    return spent, size


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    print(f"| {options.files:,} files | before 1st | after 1st | before 2nd | after 2nd | on disk |")
    print("|---|--:|--:|--:|--:|--:|")
    for name in WAYS:
        runs = [measure(name, options.files) for _ in range(options.runs)]
        best = [min(times) for times in zip(*(spent for spent, _ in runs), strict=True)]
        cells = " | ".join(f"{each:.0f} ms" for each in best)
        print(f"| {name} | {cells} | {runs[-1][1] / 1024:,.0f} KiB |", flush=True)


if __name__ == "__main__":
    main()
