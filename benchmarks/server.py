"""Many conversations through one `hone serve`: turns a second, and how long the slowest hundredth takes.

The clients are a process of their own with one connection for each conversation, in OpenAI's format. The
floor is the bare loop in the clients' place, which asks the provider itself.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median, quantiles
from typing import Protocol
from urllib.parse import urlsplit

from benchmarks.bare.loop import BareLoop
from benchmarks.bench import HONE, ROOT, Bench, environment, play
from benchmarks.figures import Row, Side
from benchmarks.provider import Provider, serving
from benchmarks.scenarios import request_size
from benchmarks.talk import spoken

SESSIONS, TURNS, CALLS = 200, 5, 3
LATENCY = 0.05
SETTINGS = 'plugins = ["benchmarks.subject:register"]\n'


@dataclass(frozen=True, slots=True)
class Took:
    """Turns per second, the slowest percentile in milliseconds, CPU milliseconds per turn, and the share of
    one core that the provider used in that time."""

    turns: float
    slow: float
    cpu: float
    provider: float = 0.0


def server(bench: Bench) -> Iterator[Row]:
    hone: list[Took] = []
    floor: list[Took] = []
    with serving(environment(bench.folder()), LATENCY) as provider:
        padding = request_size(bench, provider, "openai")
        runs = min(3, bench.runs)
        for number in range(runs + 1):
            pair = through_server(bench.folder(), provider), bare(provider, padding)
            if number:  # the first of each does not count
                hone.append(pair[0])
                floor.append(pair[1])
                bench.tell(number, runs)
    name = f"{SESSIONS} sessions in one server, {CALLS} tool calls a turn"
    cpu: dict[Side, float] = {"hone": median(_all(hone, "cpu")), "floor": median(_all(floor, "cpu"))}
    busy: dict[Side, float] = {
        "hone": median(_all(hone, "provider")),
        "floor": median(_all(floor, "provider")),
    }
    yield Row(name, "turns/s", _all(hone, "turns"), _all(floor, "turns"), 100, cpu, busy)
    yield Row(f"{name}, 99 of 100 turns within", "ms", _all(hone, "slow"), _all(floor, "slow"), 2_000)


def _all(took: list[Took], name: str) -> tuple[float, ...]:
    return tuple(getattr(each, name) for each in took)


def through_server(home: Path, provider: Provider) -> Took:
    (home / "hone.toml").write_text(SETTINGS)
    with running(home, provider) as (url, process):
        key = (home / "serve.key").read_text().strip()
        before = used(process)
        took = talked(provider, "--url", url, "--key", key)
        return replace(took, cpu=(used(process) - before) / (SESSIONS * TURNS))


def bare(provider: Provider, padding: int) -> Took:
    return talked(provider, "--url", provider.url, "--padding", str(padding))


def talked(provider: Provider, *options: str) -> Took:
    command = [sys.executable, "-m", "benchmarks.server", *options]
    provider.notes()
    took = Took(**json.loads(play(command, {"PATH": os.environ["PATH"]}, ROOT)))
    notes = provider.notes()
    return replace(took, provider=notes.cpu * 1e9 / (notes.arrivals[-1].at - notes.arrivals[0].at))


@contextmanager
def running(
    home: Path, provider: Provider, model: str = "openai/scripted", database: str = "", processes: int = 1
) -> Iterator[tuple[str, int]]:
    environ = {**environment(home, provider.url), "PYTHONPATH": str(ROOT), "HONE_MODEL": model}
    environ |= {"HONE_DATABASE": database} if database else {}
    command = [str(HONE), "serve", "--no-open", "--port", "0", "--processes", str(processes)]
    with subprocess.Popen(
        command, env=environ, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"(http://[\d.:]+)/login", process.stdout.readline())
            if found is None:
                raise SystemExit("hone serve did not begin")
            yield found[1], process.pid
        finally:
            process.send_signal(signal.SIGTERM)
    if process.returncode:
        raise SystemExit(f"hone serve ended with {process.returncode}")


def used(process: int) -> float:
    """Return CPU milliseconds of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


class Talk(Protocol):
    async def send(self, text: str) -> int: ...


class Client:
    """One conversation with the server, on one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: str) -> None:
        self._reader = reader
        self.writer = writer
        self._head = head

    async def send(self, text: str) -> int:
        body = json.dumps({"messages": [{"role": "user", "content": text}]}).encode()
        self.writer.write(f"{self._head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        answer = await self._reader.readexactly(int(length[1]) if length else 0)
        if not head.startswith(b"HTTP/1.1 200") or b'"stop"' not in answer:
            raise SystemExit(f"the server did not answer: {head + answer!r}")
        return len(answer)


async def clients(url: str, key: str, sessions: int) -> list[Client]:
    place = urlsplit(url)
    found = []
    for number in range(sessions):
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: {place.netloc}\r\nAuthorization: Bearer {key}\r\n"
            f"Content-Type: application/json\r\nX-Hone-Session: talk-{number}\r\n"
        )
        found.append(Client(reader, writer, head))
    return found


async def measure(options: argparse.Namespace) -> Took:
    talks: list[Talk] = []
    if options.key:
        talks += await clients(options.url, options.key, options.sessions)
    else:
        loop = BareLoop(options.url, options.padding)
        talks += [await loop.open(0) for _ in range(options.sessions)]
    seconds: list[float] = []

    async def converse(talk: Talk) -> None:
        for _ in range(options.turns):
            begun = time.perf_counter()
            await talk.send(spoken(CALLS))
            seconds.append(time.perf_counter() - begun)

    begun, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(converse(talk) for talk in talks))
    lasted, cpu = time.perf_counter() - begun, time.process_time() - cpu
    turns = len(seconds)
    return Took(turns / lasted, quantiles(seconds, n=100)[-1] * 1000, cpu * 1000 / turns)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server", description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--key", default="")
    parser.add_argument("--padding", type=int, default=0)
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    parser.add_argument("--turns", type=int, default=TURNS)
    took = asyncio.run(measure(parser.parse_args()))
    print(json.dumps(asdict(took)))


if __name__ == "__main__":
    main()
