"""`python -m benchmarks.growth`: what a large home costs, beside a small one.

The large home has 1,000,000 messages, 300,000 model calls, 5,000 skills and 2,000 conversations that begin
with the same words. Both homes take turns. The figures are milliseconds of processor time, of each the least
and the median. The exit code is 1 if a median grows more than 1.5 times.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import httpx2

from benchmarks.bars import PADDING, play
from benchmarks.bench import environment
from benchmarks.large_home import OPENING, HomeSize, build
from benchmarks.page import busy
from benchmarks.provider import Provider, serving
from benchmarks.server import running

MESSAGES, CALLS, SKILLS, RUNS = 1_000_000, 300_000, 5_000, 5
SESSION = 50
"""Messages of a conversation. A tenth of the conversations begin with the same words."""
SMALL = HomeSize(1_200, 20, 30, 300, 200, SESSION)
TALKS = 10
"""Conversations through the endpoint in each run."""
ENTRIES = 400
"""Of the large journal."""
SETTINGS = '[learning]\nreview = "off"\n'
"""Of the servers: a review would spend the processor time of another conversation."""
MOST = 1.5

Take = Callable[[str], float]
"""Takes "small" or "large" and returns milliseconds of processor time."""


def turn(url: str, calls: int, homes: dict[str, Path], size: str) -> float:
    """Return what a tool call costs, or a turn without any."""
    home = homes[size]
    amounts = ("--count", "10", "--turns", "10" if calls else "60", "--calls", str(calls))
    place = ("--url", url, "--home", str(home), "--padding", PADDING)
    return play(str(home), url, "benchmarks.work", "hone", "iterations", *place, *amounts)["cpu"]


def note(scratch: Path, size: str) -> float:
    """Return what an entry costs in a new journal, or in one of 400 entries."""
    with TemporaryDirectory(dir=scratch) as home:
        entries = ("--entries", str(ENTRIES)) if size == "large" else ()
        told = play(home, "http://127.0.0.1:9", "benchmarks.journal", home, "30", "growth", *entries)
    return told["cpu"] * 1000 / 30


def complete(client: httpx2.Client, process: int, *, known: bool) -> float:
    """Return what a server spends on a conversation that begins like many others, or on its second turn."""
    spent = 0.0
    for _ in range(TALKS):
        history = [{"role": "user", "content": OPENING}]
        if known:
            history += [{"role": "assistant", "content": ask(client, history)}]
            history += [{"role": "user", "content": "And now?"}]
        before = busy(process)
        ask(client, history)
        spent += busy(process) - before
    return spent / TALKS


def ask(client: httpx2.Client, history: list[dict[str, str]]) -> str:
    answer = client.post("/v1/chat/completions", json={"messages": history}).raise_for_status()
    return str(answer.json()["choices"][0]["message"]["content"])


def rows(provider: Provider, homes: dict[str, Path], scratch: Path) -> Iterator[tuple[str, Take]]:
    for name, calls in (("a tool call, 10 messages", 20), ("a turn without a tool call, 10 messages", 0)):
        yield name, partial(turn, provider.url, calls, homes)
    yield f"a journal entry, and one in a journal of {ENTRIES}", partial(note, scratch)
    with ExitStack() as stack:
        servers: dict[str, tuple[httpx2.Client, int]] = {}
        for size, home in homes.items():
            (home / "hone.toml").write_text(SETTINGS)
            url, process = stack.enter_context(running(home, provider))
            headers = {"authorization": f"Bearer {(home / 'serve.key').read_text().strip()}"}
            client = httpx2.Client(base_url=url, headers=headers, timeout=120)
            servers[size] = stack.enter_context(client), process
        yield "endpoint: a new conversation", lambda size: complete(*servers[size], known=False)
        yield "endpoint: a known history", lambda size: complete(*servers[size], known=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    for name, amount, text in (
        ("--messages", MESSAGES, "of the large home"),
        ("--calls", CALLS, "model calls of the large home"),
        ("--skills", SKILLS, "of the large home"),
        ("--runs", RUNS, "how often each is measured"),
    ):
        parser.add_argument(name, type=int, default=amount, help=f"{text} [%(default)s]")
    options = parser.parse_args()
    sizes = {
        "small": SMALL,
        "large": HomeSize(options.messages, options.skills, 2_000, options.calls, 200, SESSION),
    }
    grown = []
    with TemporaryDirectory(prefix="hone-growth-") as folder:
        scratch = Path(folder)
        homes = {name: scratch / name for name in sizes}
        for name, size in sizes.items():
            build(homes[name], size)
        with serving(environment(scratch / "provider")) as provider:
            for row, take in rows(provider, homes, scratch):
                rounds = [{name: take(name) for name in sizes} for _ in range(options.runs + 1)][1:]
                small, large = ([each[name] for each in rounds] for name in sizes)
                ratio = median(large) / median(small)
                figures = (
                    f"{min(small):.2f}, {median(small):.2f}; large {min(large):.2f}, {median(large):.2f}"
                )
                print(f"{row}: small {figures}; {ratio:.2f} times", flush=True)
                grown += [row] if ratio > MOST else []
    sys.exit(f"More than {MOST} times: {', '.join(grown)}." if grown else 0)


if __name__ == "__main__":
    main()
