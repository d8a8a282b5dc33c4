"""Trouble at random, and how long it takes until somebody else is at work."""

import asyncio
import signal
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

import psycopg

from hone.core.jobs import State
from tests.faults.fleet.machines import Fleet, Machine
from tests.faults.fleet.provider import LATENCY

KINDS = {"kill": 10, "kill server": 5, "stop": 2, "stop server": 2, "cut": 2, "restart": 1}
"""How often each happens, beside the others."""
CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE %s"


@dataclass
class Faults:
    """One worker and one server at most are stopped at a time, while others are killed."""

    fleet: Fleet
    random: Random
    talks: Mapping[str, str] = field(default_factory=dict)
    """The sessions of conversations that were had with servers."""
    takeovers: list[float] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    stops: set[asyncio.Task[None]] = field(default_factory=set)

    async def strike(self, *, stop: float) -> None:
        kind = self.random.choices(list(KINDS), list(KINDS.values()))[0]
        if kind == "restart":
            self.counts[kind] += 1
            await self.fleet.restart_database(self.random.choice(("fast", "immediate")))
            return
        machines = self.fleet.servers if kind.endswith("server") else self.fleet.workers
        running = [each for each in machines.values() if each.stopped is None and not each.has_ended]
        if kind.endswith("server"):
            running = [each for each in running if each.url]
        if len(running) < 2 or (not kind.startswith("kill") and len(running) < len(machines)):
            return
        self.counts[kind] += 1
        chosen = self.random.choice(sorted(running, key=lambda each: each.name))
        if kind.startswith("kill"):
            await self.kill(chosen.name)
        else:
            self.stops.add(asyncio.create_task(self.stop(chosen, stop, cut=kind == "cut")))

    async def kill(self, name: str) -> None:
        """A review is taken over when its next try calls the model. The process starts again later."""
        log, now = self.fleet.log, time.monotonic()
        is_server = name in self.fleet.servers
        lost = log.at_work(name, now - LATENCY)
        await self.fleet.kill(name)
        tries = {tree: max(log.attempts[tree]) for tree in lost}
        queued = {job.session for _, job in await self.fleet.jobs() if job.state is State.QUEUED}
        waiting = {tree: last for tree, last in tries.items() if self._find_session(tree) in queued}
        starting = asyncio.create_task(self._start_later(name, serving=is_server))
        while waiting and time.monotonic() < now + 20 and self.fleet.restarted < now:
            for tree, last in list(waiting.items()):
                later = [each.began for token, each in log.attempts[tree].items() if token > last]
                if later:
                    self.takeovers.append(min(later) - now)
                    del waiting[tree]
            await asyncio.sleep(0.02)
        self.counts["not taken over"] += len(waiting) if self.fleet.restarted < now else 0
        await starting

    def _find_session(self, tree: str) -> str:
        name = tree.partition("/")[2]
        return self.talks.get(name, name)

    async def _start_later(self, name: str, *, serving: bool) -> None:
        await asyncio.sleep(self.random.uniform(0, 2))
        await (self.fleet.serve(name) if serving else self.fleet.hire(name))

    async def stop(self, machine: Machine, seconds: float, *, cut: bool = False) -> None:
        """`cut`: its connections are taken away meanwhile."""
        machine.stopped = time.monotonic()
        machine.signal(signal.SIGSTOP)
        if cut:
            await asyncio.to_thread(self._cut, machine.process.pid)
        await asyncio.sleep(seconds)
        machine.signal(signal.SIGCONT)
        machine.stopped = None

    def _cut(self, pid: int) -> None:
        with suppress(psycopg.Error), psycopg.connect(self.fleet.url, autocommit=True) as connection:
            connection.execute(CUT, (f"hone {pid}@%",))
