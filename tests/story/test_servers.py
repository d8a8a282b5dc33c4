"""J2, I3: several server processes on one database. Any of them can be killed: what was said is there, and
another one continues."""

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from hone.core.messages import Message, Role, assistant
from hone.models.fake_provider import FakeProvider
from tests import databases
from tests.cli.driving import environment, hone
from tests.processes import has_ended

PATIENCE = 60.0
ADDRESS = re.compile(r"(http://127\.0\.0\.1:\d+)/login\?ticket=(\S+)$")


@pytest.fixture
def database() -> Iterator[str]:
    with databases.new_database() as url:
        yield url


def echo(messages: Sequence[Message]) -> Message:
    said = [each for each in messages if each.role is Role.USER][-1].text
    return assistant(f"{len(messages)}: {said}")


@asynccontextmanager
async def serving(
    home: Path, stage: FakeProvider, database: str, *options: str
) -> AsyncIterator[tuple[Process, httpx2.AsyncClient, str]]:
    home.mkdir(exist_ok=True)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hone", "serve", "--no-open", "--port", "0", "--grace", "0.2", *options),
        env=environment(home, stage) | {"HONE_DATABASE": database},
        cwd=home,
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            line = (await process.stdout.readline()).decode()
        found = ADDRESS.search(line.strip())
        assert found is not None, (line, process.stderr and await process.stderr.read())
        headers = {"authorization": f"Bearer {(home / 'serve.key').read_text().strip()}"}
        async with httpx2.AsyncClient(base_url=found[1], headers=headers, timeout=PATIENCE) as client:
            yield process, client, found[2]
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            await process.communicate()


def find_children(pid: int) -> set[int]:
    return {int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


async def until(check: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not check():  # noqa: ASYNC110  the system tells nobody
            await asyncio.sleep(0.02)


async def test_a_message_survives_the_kill_of_its_server_and_another_continues(
    tmp_path: Path, database: str
) -> None:
    async with (
        FakeProvider(echo, latency=30.0) as slow,
        FakeProvider(echo) as quick,
        serving(tmp_path / "one", slow, database) as (first, one, _),
        serving(tmp_path / "two", quick, database) as (_, two, _),
    ):
        begun = await one.post("/api/sessions", json={"text": "Remember the port 99."})
        session = begun.json()["session"]
        await until(lambda: len(slow.requests) == 1)
        busy = await two.post(f"/api/sessions/{session}/messages", json={"text": "Too early."})
        assert busy.status_code == 409
        first.kill()
        await first.wait()
        async with asyncio.timeout(PATIENCE):
            answered = busy
            while answered.status_code == 409:  # the database hears of a killed server a moment later
                answered = await two.post(f"/api/sessions/{session}/messages", json={"text": "Go on."})
            assert answered.status_code == 202, answered.text
            found = (await two.get(f"/api/sessions/{session}")).json()
            while found["busy"]:
                found = (await two.get(f"/api/sessions/{session}")).json()
        said = [each["parts"][-1]["text"] for each in found["messages"]]
        assert (said[0], said[-2], said[-1]) == ("Remember the port 99.", "Go on.", "3: Go on.")
        assert (await two.get("/api/sessions")).json()["busy"] == []


async def test_processes_share_a_port_are_started_again_and_end_together(
    tmp_path: Path, database: str
) -> None:
    async with (
        FakeProvider(echo) as stage,
        serving(tmp_path / "home", stage, database, "--processes", "2") as (process, client, ticket),
    ):
        await until(lambda: len(find_children(process.pid)) == 2)
        before = find_children(process.pid)
        begun = (await client.post("/api/sessions", json={"text": "One."})).json()["session"]
        for number, killed in enumerate(sorted(before)):
            os.kill(killed, signal.SIGKILL)
            assert has_ended(killed)
            for _ in range(20):  # each on a connection of its own
                async with httpx2.AsyncClient(base_url=client.base_url, headers=client.headers) as fresh:
                    found = (await fresh.get(f"/api/sessions/{begun}")).json()
                    assert found["messages"][0]["parts"][-1]["text"] == "One."
            left = before if number == 0 else set()
            await until(lambda: len(find_children(process.pid) - {killed}) == 2)  # noqa: B023
            assert find_children(process.pid) != left
        async with httpx2.AsyncClient(base_url=client.base_url) as browser:
            answers = [await browser.get(f"/login?ticket={ticket}") for _ in range(2)]
            assert [each.status_code for each in answers] == [303, 401]
        listed = await hone(
            "serve", "logins", env=environment(tmp_path / "home", stage) | {"HONE_DATABASE": database}
        )
        assert listed.out.count("A browser") == 1
        last = find_children(process.pid)
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            out, told = await process.communicate()
        assert (process.returncode, told.decode()) == (0, "Ctrl-C ends.\nEnded.\n")
        assert out.decode().count("Open in your browser") == 0, "said once, at the start"
        assert all(map(has_ended, last))


async def test_processes_are_refused_where_the_data_is_in_a_file(tmp_path: Path) -> None:
    async with FakeProvider(echo) as stage:
        refused = await hone("serve", "--processes", "2", "--no-open", env=environment(tmp_path, stage))
    assert (refused.code, refused.out) == (2, "")
    assert "hone move --to postgresql://" in refused.err
