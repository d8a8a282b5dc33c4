"""One user floods a server in each way there is, while another works: what the first gets through, and what
the second notices of it.

The calm user has one turn after another. Quiet and flooded spans take turns, so that whatever else the
machine does hits both. The flooding clients are a process with a low priority: they would be somebody else's
machine. Everything else runs here: the server, PostgreSQL, the provider, which answers after 50 ms.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import quantiles
from tempfile import TemporaryDirectory
from typing import Any

import httpx2

from benchmarks.bench import ROOT, environment
from benchmarks.provider import serving
from benchmarks.server import LATENCY, running
from benchmarks.servers import database
from hone.features.users.service import make_key
from hone.stores.postgres.user_admin import UsageRow, UserAdmin

SETTINGS = """
[prices."openai/scripted"]
input = 100.0
output = 100.0
[serve]
requests_per_minute = 0
"""
LINE = "{:9} {:24} {:24} {:>10} {:>11} {:>10} {:>11} {:>6}"
TITLES = ("flood", "let through", "answers", "quiet p50", "flooded p50", "quiet p99", "flooded p99", "ratio")
CONNECTIONS = 24
"""Those of the flooding user."""
SAY = "left=0"
"""What the provider returns for one text."""


@dataclass(frozen=True, slots=True)
class Flood:
    """A way to flood: the limits in force, and how much of it was let through."""

    name: str
    limits: dict[str, float]
    through: Callable[[UsageRow, float], str]


FLOODS = (
    Flood(
        "requests",
        {"requests_per_minute": 300},
        lambda used, span: f"{used.requests - used.refused:,} of {allowed(300, span):,.0f} requests",
    ),
    Flood(
        "tokens",
        {"cost_per_day": 0.2, "turns": 4},
        lambda used, _: f"{used.cost:.3f} of 0.200 USD",
    ),
    Flood(
        "storage",
        {"storage_mb": 5, "turns": 4},
        lambda used, _: f"{used.storage / 1e6:.1f} of 5.0 MB",
    ),
    Flood("jobs", {"reviews": 20, "turns": 4}, lambda used, _: f"{used.reviews} of 20 reviews"),
)


def allowed(rate: float, seconds: float) -> float:
    """Return what an initially full bucket lets through."""
    return max(10, rate / 10) + rate * seconds / 60


async def say(client: httpx2.AsyncClient, text: str = SAY) -> httpx2.Response:
    body = {"messages": [{"role": "user", "content": text}]}
    return await client.post("/v1/chat/completions", json=body)


async def flood(kind: str, url: str, key: str, seconds: float) -> None:
    """Send requests as fast as the answers arrive, on many connections. Print the answers by status."""
    codes: Counter[int] = Counter()
    end = time.monotonic() + seconds

    async def ask(client: httpx2.AsyncClient, number: int) -> httpx2.Response:
        match kind:
            case "requests":
                return await client.get("/api/sessions")
            case "tokens":
                return await say(client, f"{'word ' * 2_000}{number} {SAY}")
            case "storage":
                return await say(client, f"{Random(number).randbytes(50_000).hex()} {SAY}")
        begun = await say(client, f"{number} {SAY}")
        session = begun.headers.get("x-hone-session", "")
        return await client.post(f"/api/sessions/{session}/review", json={}) if session else begun

    async def work(number: int) -> None:
        headers = {"authorization": f"Bearer {key}"}
        async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=60) as client:
            while time.monotonic() < end:
                number += CONNECTIONS
                codes[(await ask(client, number)).status_code] += 1

    await asyncio.gather(*map(work, range(CONNECTIONS)))
    print(json.dumps(codes))


async def measure(client: httpx2.AsyncClient, seconds: float) -> list[float]:
    """Return how many milliseconds each turn of the calm user takes."""
    took, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.monotonic()
        answer = await say(client)
        if answer.status_code != httpx2.codes.OK:
            raise SystemExit(f"The calm user got {answer.status_code}: {answer.text}")
        took.append((time.monotonic() - begun) * 1000)
    return took


def p99(took: list[float]) -> float:
    return quantiles(took, n=100)[98]


async def compare(
    each: Flood, url: str, key: str, client: httpx2.AsyncClient, options: argparse.Namespace
) -> Any:
    """Return the turns of quiet and of flooded spans, and the answers to the flooding user."""
    quiet: list[float] = []
    flooded: list[float] = []
    codes: Counter[str] = Counter()
    command = ["nice", "-n", "10", sys.executable, "-m", "benchmarks.flood", "--flood", each.name]
    for _ in range(options.rounds):
        quiet += await measure(client, options.seconds)
        ways = ("--url", url, "--key", key, "--seconds", str(options.seconds + 1))
        process = await asyncio.create_subprocess_exec(*command, *ways, cwd=ROOT, stdout=subprocess.PIPE)
        await asyncio.sleep(1)  # it imports
        flooded += await measure(client, options.seconds)
        out, _ = await process.communicate()
        codes.update(json.loads(out))
    return quiet, flooded, codes


async def run(options: argparse.Namespace) -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="hone-flood-", dir=options.folder)))
        address = stack.enter_context(database(folder))
        home = folder / "home"
        home.mkdir()
        (home / "hone.toml").write_text(SETTINGS)
        provider = stack.enter_context(serving(environment(home), LATENCY))
        url, _ = stack.enter_context(running(home, provider, database=address))
        admin = UserAdmin(address)
        admin.add("calm", {})
        headers = {"authorization": f"Bearer {make_key(admin, 'calm', 'first', 'person', None)}"}
        print(LINE.format(*TITLES))
        async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=60) as client:
            await measure(client, 2.0)
            for each in FLOODS:
                if options.only and each.name != options.only:
                    continue
                admin.add(each.name, each.limits)
                key = make_key(admin, each.name, "first", "person", None)
                begun = time.monotonic()
                quiet, flooded, codes = await compare(each, url, key, client, options)
                span = time.monotonic() - begun
                [used] = admin.usage([each.name], 1)
                said = ", ".join(f"{count:,} × {code}" for code, count in sorted(codes.items()))
                middle = [f"{quantiles(each, n=2)[0]:.1f}" for each in (quiet, flooded)]
                slow = [f"{p99(each):.1f}" for each in (quiet, flooded)]
                ratio = f"{p99(flooded) / p99(quiet):.2f}"
                cells = (each.name, each.through(used, span), said, *middle, *slow, ratio)
                print(LINE.format(*cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4, help="pairs of a quiet and a flooded span")
    parser.add_argument("--seconds", type=float, default=8.0, help="of a span")
    parser.add_argument("--folder", help="where the database lies (default: the folder for temporary files)")
    parser.add_argument("--only", help="one way to flood")
    parser.add_argument("--flood", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--key", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.flood:
        asyncio.run(flood(options.flood, options.url, options.key, options.seconds))
    else:
        asyncio.run(run(options))


if __name__ == "__main__":
    main()
