"""`python -m benchmarks.terminal --compare REV`: what a keystroke and a streamed token cost in the chat.

The chat runs at a pseudo-terminal as it does for a user. Its processor time is read from the kernel's account
of its threads, so that other work on the machine matters little.
"""

import argparse
import compileall
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.bench import environment
from benchmarks.pacing import RATE, streaming
from benchmarks.revision import ROOT, unpacked
from benchmarks.start import HERE, Row, alternate, table
from hone.files.documents import FileDocuments
from hone.runtime.trust import Folders

RUNS, KEYS, TOKENS = 10, 200, 1000
PATIENCE, QUIET, IDLE = 60.0, 0.3, 2000.0
"""Seconds to wait for something, seconds without output, and the most microseconds that an idle chat uses in
them."""
WHERE, THERE = b"\x1b[6n", b"\x1b[10;1R"
"""A program's request for the cursor position, and an answer."""
PROMPT = b"\x1b[?2004h"
"""The start of a prompt: it asks the terminal to mark pasted text."""
LETTER = b"z"
"""It ends no escape sequence, so its appearance is an echo."""


@dataclass(slots=True)
class Chat:
    """A chat at its own terminal."""

    source: Path
    folder: Path
    url: str
    seen: bytes = b""
    terminal: int = field(init=False)
    process: "subprocess.Popen[bytes]" = field(init=False)

    def __enter__(self) -> "Chat":
        home = self.folder / "home"
        home.mkdir(mode=0o700, exist_ok=True)
        Folders.of(FileDocuments(home)).trust(self.folder)
        self.terminal, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        environ = environment(home, self.url) | {"PYTHONPATH": str(self.source), "TERM": "xterm-256color"}
        self.process = subprocess.Popen(
            (sys.executable, "-m", "hone"), stdin=theirs, stdout=theirs, stderr=theirs, env=environ,
            cwd=self.folder, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self.until(PROMPT)
        self.settle()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        os.close(self.terminal)

    def type(self, keys: bytes) -> None:
        self.seen = b""
        os.write(self.terminal, keys)

    def until(self, *words: bytes) -> None:
        """Read until all of these have arrived since something was typed."""
        end = time.monotonic() + PATIENCE
        while not all(each in self.seen for each in words):
            if time.monotonic() > end:
                raise SystemExit(f"{words} never came from {self.source}:\n{self.seen.decode()}")
            self._read(PATIENCE)

    def settle(self) -> None:
        """Read until output stops and nothing runs in the background."""
        before, now = 0.0, self.spent()
        while now - before > IDLE:
            while self._read(QUIET):
                pass
            before, now = now, self.spent()

    def _read(self, seconds: float) -> bool:
        if not select.select([self.terminal], [], [], seconds)[0]:
            return False
        data = os.read(self.terminal, 65536)
        if WHERE in data:
            os.write(self.terminal, THERE)
        self.seen += data
        return True

    def spent(self) -> float:
        """Return the processor time of all threads so far, in microseconds."""
        threads = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((each / "schedstat").read_text().split()[0]) for each in threads) / 1000


def echo(chat: Chat) -> float:
    """Return the microseconds per letter, from the key to its echo."""
    chat.type(b"words " + LETTER)
    chat.until(LETTER)
    before = chat.spent()
    for _ in range(KEYS):
        chat.type(LETTER)
        chat.until(LETTER)
    return (chat.spent() - before) / KEYS


def stream(chat: Chat) -> float:
    """Return the microseconds per token in an answer of the second turn, including the turn."""
    for turn in range(2):
        chat.type(b"go on")
        chat.until(b"on")
        before = chat.spent()
        chat.type(b"\r")
        chat.until(b" tokens in")
        chat.settle()
        if turn:
            return (chat.spent() - before) / TOKENS
    raise AssertionError


TAKES: Mapping[str, Callable[[Chat], float]] = {
    "a keystroke at the prompt": echo,
    f"a token of {TOKENS:,} at {RATE} a second": stream,
}


@dataclass(frozen=True, slots=True)
class Tree:
    source: Path
    url: str

    def take(self, measure: Callable[[Chat], float]) -> float:
        with (
            TemporaryDirectory(prefix="hone-bench-") as folder,
            Chat(self.source, Path(folder), self.url) as chat,
        ):
            return measure(chat)


def measured(trees: Mapping[str, Tree], runs: int) -> Iterator[Row]:
    for name, measure in TAKES.items():
        yield alternate(name, trees, partial(Tree.take, measure=measure), runs)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.terminal", description=__doc__)
    parser.add_argument("--compare", metavar="REV", help="a Git revision to measure beside the working tree")
    parser.add_argument("--runs", type=int, default=RUNS, help="how often each is measured [%(default)s]")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="hone-bench-") as scratch, streaming(TOKENS) as url:
        trees = {HERE: Tree(ROOT / "src", url)}
        if options.compare:
            other = unpacked(options.compare, Path(scratch) / "tree") / "src"
            trees = {options.compare: Tree(other, url)} | trees
        for tree in trees.values():
            compileall.compile_dir(tree.source, quiet=1)
        for line in table("processor time in µs", list(trees), measured(trees, options.runs)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
