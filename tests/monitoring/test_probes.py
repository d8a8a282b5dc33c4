"""J3: a load balancer learns whether a server can work, and has time to take it out before it ends."""

import asyncio
import os
import signal
import sqlite3
from contextlib import nullcontext
from pathlib import Path

import httpx2
import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families

from hone.core.clock import ManualClock
from hone.core.errors import StoreError
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import echo
from hone.settings import Settings
from hone.stores.postgres.migrating import is_current
from hone.web.readiness import FRESH, PATIENCE, Readiness
from tests import databases
from tests.models.loopback import free_port
from tests.story.test_servers import find_children, serving
from tests.web.rig import Running, running


async def probe(visit: Running) -> tuple[int, str]:
    async with httpx2.AsyncClient() as stranger:
        found = await stranger.get(f"{visit.url}/ready")
    return found.status_code, found.json()["status"]


async def settled(visit: Running) -> tuple[int, str]:
    """What is said once an earlier answer has become old."""
    visit.state.readiness._until = 0.0
    return await probe(visit)


async def test_a_server_is_ready_with_the_schema_it_knows_and_until_it_is_told_to_end(
    home: Path, tmp_path: Path
) -> None:
    async with running(home, tmp_path) as visit:
        assert await probe(visit) == (200, "ready")
        with sqlite3.connect(home / "hone.db") as other:
            [[version]] = other.execute("PRAGMA user_version")
            other.execute(f"PRAGMA user_version = {version + 1}")
            assert await settled(visit) == (503, "schema")
            other.execute(f"PRAGMA user_version = {version}")
        assert await settled(visit) == (200, "ready")
        visit.state.readiness.stopping = True
        assert await probe(visit) == (503, "stopping")
        assert (await visit.client.get("/health")).status_code == 200


async def test_probes_answer_under_any_name_and_nothing_else_does(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path) as visit:
        other = {"host": "192.0.2.7:8420"}
        for path, status in (("/health", "ok"), ("/ready", "ready")):
            found = await visit.client.get(path, headers=other)
            assert (found.status_code, found.json()) == (200, {"status": status})
        paths = ("/", "/login", "/login.css", "/api/status", "/v1/models", "/health/", "/ready/x", "/nothing")
        refused = [await visit.client.get(path, headers=other) for path in paths]
        refused += [await visit.client.post(path, json={}, headers=other) for path in ("/health", "/ready")]
        assert {each.status_code for each in refused} == {403}


async def test_a_server_on_postgres_is_ready_with_all_migrations_and_additions(
    home: Path, tmp_path: Path
) -> None:
    with databases.new_database() as url:
        async with running(home, tmp_path, settings=Settings(database=url)) as visit:
            assert await probe(visit) == (200, "ready")
            with psycopg.connect(url, autocommit=True) as other:
                assert is_current(other)
                assert not is_current(other, additions=(Path("later.sql"),))
                other.execute("INSERT INTO hone.migrations (number, name) VALUES (9999, 'of a newer Hone')")
                assert await settled(visit) == (503, "schema")


async def test_a_database_that_does_not_answer_is_told_soon_and_asked_once() -> None:
    clock, asked = ManualClock(), 0
    release: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    async def ask() -> bool:
        nonlocal asked
        asked += 1
        return await release

    readiness = Readiness(ask, clock)
    first, second = (asyncio.create_task(readiness.find_fault()) for _ in range(2))
    for _ in range(3):
        await asyncio.sleep(0)
    clock.advance(PATIENCE + 1)
    assert [await first, await second, asked] == ["database", "database", 1]
    release.set_exception(StoreError("gone"))
    assert [await readiness.find_fault(), await readiness.find_fault(), asked] == ["database", "database", 1]
    clock.advance(FRESH)
    release = asyncio.get_running_loop().create_future()
    release.set_result(True)
    assert [await readiness.find_fault(), asked] == ["", 2]


@pytest.mark.parametrize("processes", [1, 2])
async def test_a_server_that_is_told_to_end_says_so_at_once_and_works_until_it_is_drained(
    tmp_path: Path, processes: int
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "hone.toml").write_text("[serve]\ndrain = 3600\n")
    with databases.new_database() if processes > 1 else nullcontext("") as url:
        async with (
            FakeProvider(echo) as stage,
            serving(home, stage, url, "--processes", str(processes)) as (process, client, _),
        ):
            assert (await client.get("/ready")).status_code == 200
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(60):
                while (found := await fresh(client, "/ready")).status_code == 200:
                    pass  # each look asks the server
                assert (found.status_code, found.json()) == (503, {"status": "stopping"})
                begun = await client.post("/api/sessions", json={"text": "Still here?"})
                assert begun.status_code == 202
                assert (await fresh(client, "/health")).status_code == 200
                for child in find_children(process.pid) if processes > 1 else [process.pid]:
                    os.kill(child, signal.SIGTERM)  # a second one ends the wait
                assert await process.wait() == 0


async def fresh(client: httpx2.AsyncClient, path: str) -> httpx2.Response:
    """Ask on a new connection, as a load balancer does: any process may take it."""
    async with httpx2.AsyncClient(base_url=client.base_url) as stranger:
        return await stranger.get(path)


async def test_numbers_of_all_processes_are_read_at_one_address(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    port = free_port()
    (home / "hone.toml").write_text(f'[serve]\nmetrics = "127.0.0.1:{port}"\n')
    count = 12
    with databases.new_database() as url:
        async with (
            FakeProvider(echo) as stage,
            serving(home, stage, url, "--processes", "2") as (process, client, _),
            httpx2.AsyncClient() as prometheus,
        ):
            await both_up(prometheus, port)
            for _ in range(count):
                assert (await fresh(client, "/health")).status_code == 200
            told = (await prometheus.get(f"http://127.0.0.1:{port}/metrics")).text
            families = {each.name: each for each in text_string_to_metric_families(told)}
            asked = [
                each for each in families["hone_http_requests"].samples if each.labels["route"] == "/health"
            ]
            assert sum(each.value for each in asked) == count
            assert {each.labels["process"] for each in families["process_cpu_seconds"].samples} == {"0", "1"}
            assert len(families["hone_reviews_queued"].samples) == 1, "the queue is the same for all"
            assert families["hone_database_connections"].samples
            process.send_signal(signal.SIGTERM)
            await process.wait()


async def both_up(prometheus: httpx2.AsyncClient, port: int) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                told = (await prometheus.get(f"http://127.0.0.1:{port}/metrics")).text
            except httpx2.TransportError:
                continue
            families = {each.name: each for each in text_string_to_metric_families(told)}
            if [each.value for each in families["hone_process_up"].samples] == [1.0, 1.0]:
                return
