"""`python -m benchmarks.page`: processor time of the server for every call of the page, in a large home.

The home has 100,000 messages, 5,000 skills, 2,000 changes of the journal and 300,000 model calls. It is made
once, in --home, and used again. The figures are of the server's process alone, summed over its threads.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
from msgspec import Struct

from benchmarks.bench import environment
from benchmarks.large_home import ALIKE, LONG, OPENING, SMALL, HomeSize, build
from benchmarks.provider import serving
from benchmarks.server import running

MOST = 200.0
"""The most milliseconds of the processor per call."""
RUNS = 5
HISTORIES = 20
"""How many known histories the OpenAI endpoint is asked to continue."""

SKILL = "/api/skills/00004-kind-of-work"
VIEWS = {
    "a conversation of 5,000 messages": ("/api/status", f"/api/sessions/{LONG}"),
    "a new conversation": ("/api/status", "/api/sessions?limit=200", "/api/changes"),
    "learning": ("/api/pending", "/api/changes", "/api/pairs"),
    "journal": ("/api/journal",),
    "skills": ("/api/skills",),
    "one skill": (SKILL, f"{SKILL}/alike"),
    "sessions": ("/api/sessions?limit=200",),
    "one session": (
        f"/api/sessions/{LONG}",
        f"/api/sessions/{LONG}/tree",
        f"/api/changes?session={LONG}",
    ),
    "reviews": ("/api/reviews",),
    "usage": ("/api/figures?days=30",),
    "curator": ("/api/curator",),
    "permissions": ("/api/permissions", "/api/sessions?limit=200"),
    "templates": ("/api/templates",),
    "experiments": ("/api/experiments",),
    "memory backends": ("/api/backends",),
    "access": ("/api/logins",),
}
"""The calls that are answered before there is something to read."""


class Timed(Struct, frozen=True):
    """Milliseconds of the processor: the first call of a new server, the median of the others, the
    maximum."""

    name: str
    first: float
    middle: float
    most: float
    size: int

    @property
    def reached(self) -> bool:
        return self.most <= MOST


def main() -> None:
    options = parsed()
    size = SMALL if options.quick else HomeSize()
    with TemporaryDirectory(prefix="hone-bench-") as scratch:
        home = options.home or Path(scratch) / "home"
        if not (home / "hone.db").exists():
            build(home, size)
        rows = measure(home, options.runs)
    print(f"{table(rows)}\n\n{paints(rows)}")
    sys.exit(0 if options.quick or all(row.reached for row in rows) else 1)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=__doc__)
    parser.add_argument("--home", type=Path, help="where the home is made, or lies already")
    parser.add_argument("--runs", type=int, default=RUNS, help="calls of each kind [%(default)s]")
    parser.add_argument("--quick", action="store_true", help="a small home: only whether it works")
    return parser.parse_args()


def measure(home: Path, runs: int) -> list[Timed]:
    with serving(environment(home)) as provider, running(home, provider) as (url, process):
        key = (home / "serve.key").read_text().strip()
        headers = {"authorization": f"Bearer {key}"}
        with httpx2.Client(base_url=url, headers=headers, timeout=120) as client:
            paths = list(dict.fromkeys(calls(client)))
            rows = [timed(path, partial(read, client, path), process, runs) for path in paths]
            return [*rows, *endpoint(client, process)]


def calls(client: httpx2.Client) -> Iterator[str]:
    """Yield every call by which the page reads something."""
    newest = json.loads(read(client, "/api/changes?limit=1"))["changes"][0]["id"]
    yield from ("/", "/api/status", "/api/modes", "/api/figures?days=30", "/api/figures?days=365")
    yield from ("/api/journal", "/api/pending", "/api/changes", f"/api/changes?before={newest // 2}")
    yield from (f"/api/changes?session={LONG}", f"/api/changes/{newest}", "/api/reviews")
    yield from ("/api/skills", "/api/skills?archived=true", "/api/skills?query=kind+of+work")
    yield SKILL
    yield from ("/api/curator", "/api/templates", "/api/experiments", "/api/backends", "/api/permissions")
    yield from ("/api/logins", "/api/pairs", f"{SKILL}/alike")
    yield from ("/api/sessions?limit=200", "/api/sessions?limit=200&all=true", f"/api/sessions/{LONG}")
    yield from (f"/api/sessions/{LONG}?limit=1000", f"/api/sessions/{LONG}?from=1&limit=60")
    yield from (f"/api/sessions/{LONG}/tree", f"/api/sessions/{LONG}/mode", f"/api/sessions/{LONG}/known")
    yield from (f"/api/sessions/{LONG}/checkpoints", "/api/known", "/api/models", "/openapi.json")
    yield from (f"/api/sessions/{ALIKE.format(0)}", "/api/search?query=what+did+you+say+about+the+tickets")


def read(client: httpx2.Client, path: str) -> bytes:
    response = client.get(path)
    if response.status_code != 200:
        raise SystemExit(f"{path}: {response.status_code} {response.text[:200]}")
    return response.content


def endpoint(client: httpx2.Client, process: int) -> Iterator[Timed]:
    """Continue a history that an earlier process witnessed, each time another one with the same first
    words."""
    histories = []
    for number in range(0, HISTORIES * 10, 10):
        found = client.get(f"/api/sessions/{ALIKE.format(number)}")
        if found.status_code == 200:
            histories.append([_spoken(each) for each in found.json()["messages"]])
    asked = iter(histories)

    def complete() -> bytes:
        body = {"model": "hone", "messages": [*next(asked), {"role": "user", "content": "And now?"}]}
        return client.post("/v1/chat/completions", json=body).raise_for_status().content

    def begin() -> bytes:
        said = {"role": "user", "content": OPENING}
        return client.post("/v1/chat/completions", json={"messages": [said]}).raise_for_status().content

    yield timed("POST /v1/chat/completions, a new conversation", begin, process, len(histories))
    yield timed("POST /v1/chat/completions, a known history", complete, process, len(histories))


def _spoken(message: Mapping[str, Any]) -> dict[str, str]:
    return {"role": message["role"], "content": message["parts"][0]["text"]}


def timed(name: str, call: Callable[[], bytes], process: int, runs: int) -> Timed:
    took, size = [], 0
    for _ in range(runs):
        before = busy(process)
        size = len(call())
        took.append(busy(process) - before)
    rest = took[1:] or took
    return Timed(name, took[0], median(rest), max(took), size)


def busy(process: int) -> float:
    """Return the milliseconds of processor time of all threads of a process, to the microsecond."""
    total = 0
    for thread in os.listdir(f"/proc/{process}/task"):
        total += int(Path(f"/proc/{process}/task/{thread}/schedstat").read_text().split()[0])
    return total / 1e6


def table(rows: list[Timed]) -> str:
    lines = ["| call | first | median | most | bytes | ≤ 200 ms |", "|---|---:|---:|---:|---:|---|"]
    for row in rows:
        name = row.name if row.name.startswith("POST") else f"GET {row.name}"
        figures = f"{row.first:.1f} | {row.middle:.1f} | {row.most:.1f} | {row.size:,}"
        lines.append(f"| `{name}` | {figures} | {'yes' if row.reached else '**no**'} |")
    return "\n".join(lines)


def paints(rows: list[Timed]) -> str:
    """Return the time of each view until there is something to read: its calls, each for the first time."""
    first = {row.name: row.first for row in rows}
    took = ((view, sum(first[call] for call in calls)) for view, calls in VIEWS.items())
    lines = [f"| {view} | {spent:.0f} | {'yes' if spent <= MOST else '**no**'} |" for view, spent in took]
    return "\n".join(["| view | first paint | ≤ 200 ms |", "|---|---:|---|", *lines])


if __name__ == "__main__":
    main()
