"""`python -m benchmarks.start --compare REV`: the processor time of a start, beside another revision's."""

import argparse
import compileall
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, closing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TypeVar

from benchmarks.bench import environment
from benchmarks.revision import ROOT, unpacked

HERE = "working tree"
RUNS = 15
QUIET = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]


@dataclass(frozen=True, slots=True)
class Subject:
    """A tree with its own scratch folder. `home` is where a command works, `model` what it is copied from."""

    source: Path
    scratch: Path

    @property
    def home(self) -> Path:
        return self.scratch / "home"

    @property
    def model(self) -> Path:
        return self.scratch / "model"

    def prepare(self) -> None:
        """Compile the code and fill a small home."""
        compileall.compile_dir(self.source, quiet=1)
        for number in range(1, 4):
            self.spend("memory", "add", f"Entry {number}.")
        shutil.copytree(self.home, self.model)

    def renew(self) -> None:
        shutil.rmtree(self.home)
        shutil.copytree(self.model, self.home)

    def spend(self, *arguments: str) -> float:
        """Run a command and return its processor time in milliseconds."""
        code, spent = self._ended(self._begun("", arguments))
        if code:
            raise SystemExit(f"hone {' '.join(arguments)} ended with {code} in {self.source}")
        return spent

    def ask(self, *arguments: str) -> float:
        """Do the same up to the first request: when it has arrived, kill the process."""
        with closing(socket.create_server(("127.0.0.1", 0))) as door:
            door.settimeout(60)
            pid = self._begun(f"http://127.0.0.1:{door.getsockname()[1]}", arguments)
            try:
                _read(door)
            finally:
                os.kill(pid, signal.SIGKILL)
                _, spent = self._ended(pid)
        return spent

    def _begun(self, url: str, arguments: Sequence[str]) -> int:
        environ = environment(self.home, url) | {"PYTHONPATH": str(self.source)}
        command = [sys.executable, "-m", "hone", *arguments]
        with chdir(self.scratch):
            return os.posix_spawn(sys.executable, command, environ, file_actions=QUIET)

    def _ended(self, pid: int) -> tuple[int, float]:
        _, status, used = os.wait4(pid, 0)
        return os.waitstatus_to_exitcode(status), (used.ru_utime + used.ru_stime) * 1000


def _read(door: socket.socket) -> None:
    """Wait for a whole request."""
    caller, _ = door.accept()
    with closing(caller):
        data = b""
        while not _is_whole(data):
            more = caller.recv(65536)
            if not more:
                raise SystemExit("The first request broke off.")
            data += more


def _is_whole(data: bytes) -> bool:
    head, end, body = data.partition(b"\r\n\r\n")
    sizes = [
        line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
    ]
    return bool(end) and len(body) >= int(sizes[0] if sizes else 0)


T = TypeVar("T")
Take = Callable[[Subject], float]


def _undo(subject: Subject) -> float:
    subject.renew()
    return subject.spend("undo", "3")


def _run(subject: Subject) -> float:
    subject.renew()
    return subject.ask("run", "hi")


COMMANDS: Mapping[str, Take] = {
    "hone --version": lambda subject: subject.spend("--version"),
    "hone --help": lambda subject: subject.spend("--help"),
    "hone undo --help": lambda subject: subject.spend("undo", "--help"),
    "hone undo 3": _undo,
    "hone run hi, to the first request": _run,
}


@dataclass(slots=True)
class Row:
    """The milliseconds of one command, by tree."""

    name: str
    spent: dict[str, list[float]] = field(default_factory=dict)

    def cells(self, trees: Sequence[str]) -> Iterator[str]:
        yield self.name
        for tree in trees:
            yield from (f"{min(self.spent[tree]):.1f}", f"{median(self.spent[tree]):.1f}")
        if len(trees) > 1:
            before, after = (self.spent[tree] for tree in trees)
            yield from (f"{min(after) / min(before):.2f}×", f"{median(after) / median(before):.2f}×")


def alternate(name: str, subjects: Mapping[str, T], take: Callable[[T], float], runs: int) -> Row:
    """Alternate the trees. The one that comes first changes."""
    row = Row(name, {tree: [] for tree in subjects})
    for subject in subjects.values():
        take(subject)
    for number in range(runs):
        order = list(subjects.items())
        for tree, subject in order if number % 2 else reversed(order):
            row.spent[tree].append(take(subject))
    return row


def measured(subjects: Mapping[str, Subject], runs: int) -> Iterator[Row]:
    for name, take in COMMANDS.items():
        yield alternate(name, subjects, take, runs)


def table(what: str, trees: Sequence[str], rows: Iterator[Row]) -> Iterator[str]:
    titles = [f"{tree}, {kind}" for tree in trees for kind in ("min", "median")]
    titles += ["ratio of min", "ratio of median"] if len(trees) > 1 else []
    yield f"| {what} | {' | '.join(titles)} |"
    yield f"|---|{'---:|' * len(titles)}"
    for row in rows:
        yield f"| {' | '.join(row.cells(trees))} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start", description=__doc__)
    parser.add_argument("--compare", metavar="REV", help="a Git revision to measure beside the working tree")
    parser.add_argument("--runs", type=int, default=RUNS, help="how often each is measured [%(default)s]")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="hone-bench-") as scratch:
        subjects = {}
        if options.compare:
            other = unpacked(options.compare, Path(scratch) / "tree")
            subjects[options.compare] = Subject(other / "src", Path(scratch) / "other")
        subjects[HERE] = Subject(ROOT / "src", Path(scratch) / "here")
        for subject in subjects.values():
            subject.home.mkdir(parents=True, mode=0o700)
            subject.prepare()
        for line in table("processor time in ms", list(subjects), measured(subjects, options.runs)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
