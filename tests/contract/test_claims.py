"""E2, J2: a claim has one holder at a time, in any process; it ends with the process and leaves nothing."""

import asyncio
import os
import signal
import sys
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hone.core.claims import Claims
from hone.core.errors import StoreError
from hone.files.locks import FOLDER
from hone.stores.claims import FileClaims
from hone.stores.postgres import lease
from hone.stores.postgres.claims import PostgresClaims
from hone.stores.postgres.database import PostgresDatabase, PostgresPool
from hone.stores.postgres.lease import ClaimLease
from tests import databases
from tests.contract.kinds import new_owner
from tests.reference.claims import InMemoryClaims

SHARED = ("files", "postgres")
"""Those that other processes see."""


@asynccontextmanager
async def open_claims(kind: str, place: str) -> AsyncIterator[Claims]:
    """Open claims as one process does; `place` is the home, or the database and the owner."""
    if kind == "inmemory":
        yield InMemoryClaims()
    elif kind == "files":
        yield FileClaims(Path(place))
    else:
        url, owner = place.split("\n")
        pool = PostgresPool(url, lanes=1, readers=1)
        try:
            yield PostgresClaims(PostgresDatabase(pool, owner))
        finally:
            await pool.close()


def place_of(kind: str, home: Path) -> str:
    return f"{databases.shared()}\n{new_owner()}" if kind == "postgres" else str(home)


@pytest.fixture(params=("inmemory", *SHARED))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def started(*arguments: str) -> tuple[Process, str]:
    command = (sys.executable, "-m", "tests.contract.claimer", *arguments)
    process = await create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    assert process.stdout
    return process, (await process.stdout.readline()).decode().strip()


async def until_free(claims: Claims, name: str) -> None:
    """A server hears of a killed client a moment later."""
    while await claims.find_held({name}):  # noqa: ASYNC110  each look asks the server
        await asyncio.sleep(0)


async def test_a_second_claim_is_refused_until_the_first_is_over(kind: str, home: Path) -> None:
    async with open_claims(kind, place_of(kind, home)) as claims:
        async with claims.hold("tree") as first:
            async with claims.hold("tree") as second, claims.hold("other") as other:
                assert (first, second, other) == (True, False, True)
                assert await claims.find_held({"tree", "other", "third"}) == {"tree", "other"}
                assert await claims.confirm("tree")
            async with claims.hold("tree") as again:
                assert not again
        async with claims.hold("tree") as after:
            assert after
        assert await claims.find_held({"tree", "other"}) == set()
        assert await claims.find_held(()) == set()


async def test_a_claim_is_given_back_when_its_holder_breaks_off(kind: str, home: Path) -> None:
    async with open_claims(kind, place_of(kind, home)) as claims:
        with pytest.raises(RuntimeError):
            async with claims.hold("tree"):
                raise RuntimeError
        async with claims.hold("tree") as held:
            assert held


async def test_of_many_tasks_one_holds_it_at_a_time(kind: str, home: Path) -> None:
    async with open_claims(kind, place_of(kind, home)) as claims:
        holders = highest = done = 0

        async def work() -> None:
            nonlocal holders, highest, done
            while True:
                async with claims.hold("tree") as held:
                    if held:
                        holders += 1
                        highest = max(highest, holders)
                        await asyncio.sleep(0)
                        holders -= 1
                        done += 1
                        return
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as group:
            for _ in range(20):
                group.create_task(work())
        assert (highest, done) == (1, 20)


@pytest.mark.parametrize("kind", SHARED)
async def test_another_process_is_refused_and_a_kill_frees(kind: str, home: Path) -> None:
    place = place_of(kind, home)
    first, said = await started(kind, place, "tree")
    assert said == "held"
    second, said = await started(kind, place, "tree")
    assert said == "refused"
    await second.communicate(b"\n")
    async with open_claims(kind, place) as claims:
        assert await claims.find_held({"tree"}) == {"tree"}
        first.send_signal(signal.SIGKILL)
        await first.wait()
        await until_free(claims, "tree")
        async with claims.hold("tree") as held:
            assert held
    await first.communicate()


@pytest.mark.parametrize("kind", SHARED)
async def test_of_many_processes_one_holds_it_at_a_time(kind: str, home: Path) -> None:
    """Each adds one to a number in a file; with two holders at once, some would be lost."""
    (home / "number").write_text("0")
    place = place_of(kind, home)
    processes = [(await started(kind, place, "tree", str(home / "number"), "25"))[0] for _ in range(3)]
    for process in processes:
        await process.communicate()
        assert process.returncode == 0
    assert (home / "number").read_text() == "75"


async def test_two_owners_do_not_share_a_claim(home: Path) -> None:
    async with (
        open_claims("postgres", place_of("postgres", home)) as one,
        open_claims("postgres", place_of("postgres", home)) as two,
        one.hold("tree") as first,
        two.hold("tree") as second,
    ):
        assert (first, second) == (True, True)


def end_holder(owner: str, name: str, url: str = "") -> None:
    """End the connection that holds a claim, as a failing network or an administrator does."""
    databases.execute(
        url or databases.shared(),
        f"SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 "
        f"AND (classid::bigint << 32 | objid::bigint) = hashtextextended('{owner} {name}', 3)",
    )


async def test_a_claim_that_was_lost_is_noticed_and_taken_again_unless_somebody_was_faster() -> None:
    owner = new_owner()
    pools = [PostgresPool(databases.shared(), lanes=1, readers=1) for _ in range(2)]
    one, two = (PostgresClaims(PostgresDatabase(pool, owner)) for pool in pools)
    async with one.hold("tree") as held, one.hold("other"):
        assert held
        assert await one.confirm("tree")
        end_holder(owner, "tree")
        assert await two.find_held({"tree", "other"}) == set()
        async with two.hold("tree") as faster:
            assert faster
            assert not await one.confirm("tree")
            assert await one.confirm("other")
            assert await two.find_held({"tree", "other"}) == {"tree", "other"}
            assert await two.confirm("tree")
        assert await one.confirm("tree")
        async with two.hold("tree") as late:
            assert not late
    assert not await one.confirm("tree")
    async with two.hold("tree") as free:
        assert free
    for pool in pools:
        await pool.close()


async def test_a_process_that_beats_and_then_hangs_loses_its_claims_and_knows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Here PostgreSQL waits for a moment, elsewhere for three seconds."""
    owner = new_owner()
    pools = [PostgresPool(databases.shared(), lanes=1, readers=1) for _ in range(2)]
    one, two = (PostgresClaims(PostgresDatabase(pool, owner)) for pool in pools)
    async with two.hold("other"), one.hold("tree"), one.hold("left"), asyncio.timeout(60):
        monkeypatch.setattr(lease, "EXPIRE", lease.EXPIRE.replace(f"{lease.SILENCE}s", "50ms"))
        await one.beat()
        await until_free(two, "tree")
        assert await two.find_held({"other"}) == {"other"}, "it never beat"
        async with two.hold("tree") as taken:
            assert taken
            assert not await one.confirm("tree")
            assert await one.confirm("left"), "nobody wanted it"
        await until_free(two, "left")  # the next connection expires as well
    for pool in pools:
        await pool.close()


async def test_where_the_server_cannot_be_heard_a_claim_is_not_taken_for_certain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool, name = PostgresPool(databases.shared(), lanes=1, readers=1), (new_owner(), "tree")
    claims = PostgresClaims(PostgresDatabase(pool, name[0]))
    async with claims.hold("tree"):
        assert pool.lease.is_certain(name)
        await claims.beat()
        assert pool.lease.is_certain(name)
        monkeypatch.setattr(lease, "SILENCE", 0)
        assert not pool.lease.is_certain(name), "the server may have ended it without a word"
        assert await claims.confirm("tree"), "so it is asked"
    await pool.close()


async def test_a_process_says_for_all_its_owners_at_once_that_it_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = PostgresPool(databases.shared(), lanes=1, readers=1)
    owners = [PostgresClaims(PostgresDatabase(pool, new_owner())) for _ in range(5)]
    monkeypatch.setattr(lease, "FRESH", 60.0)
    said: list[str] = []
    beat = ClaimLease.beat

    def note(of: ClaimLease, execute: Callable[[str], object]) -> None:
        said.append("beat")
        beat(of, execute)

    monkeypatch.setattr(ClaimLease, "beat", note)
    for claims in owners:
        await claims.beat()
    assert said == ["beat"]
    monkeypatch.setattr(lease, "FRESH", 0.0)
    await owners[0].beat()
    assert said == ["beat"] * 2
    await pool.close()


async def test_a_broken_connection_of_another_kind_costs_no_claim() -> None:
    pool = PostgresPool(databases.shared(), lanes=1, readers=1)
    claims = PostgresClaims(PostgresDatabase(pool, new_owner()))
    async with claims.hold("tree") as held:
        assert held
        pool.forget()
        assert await claims.find_held({"tree"}) == {"tree"}
        assert await claims.confirm("tree")
    await pool.close()


async def test_who_is_cancelled_while_a_claim_is_taken_leaves_none_behind(kind: str, home: Path) -> None:
    async def take() -> None:
        async with claims.hold("tree"):
            await asyncio.Event().wait()

    async with open_claims(kind, place_of(kind, home)) as claims:
        for steps in range(4):
            task = asyncio.create_task(take())
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
        assert await claims.find_held({"tree"}) == set()


async def test_what_a_killed_process_left_is_swept_and_what_is_held_or_wanted_is_not(home: Path) -> None:
    claims = FileClaims(home)
    processes = [(await started("files", str(home), name))[0] for name in ("dead", "wanted", "held")]
    for process in processes[:2]:
        process.kill()
        await process.wait()
    claims.sweep({"wanted"})
    assert sorted(path.name for path in (home / FOLDER).iterdir()) == ["held.lock", "wanted.lock"]
    async with claims.hold("held") as held:
        assert not held
    await processes[2].communicate(b"\n")
    claims.sweep(())
    assert list((home / FOLDER).iterdir()) == []


async def test_a_home_that_takes_no_lock_is_a_sentence(home: Path) -> None:
    (home / FOLDER).write_text("in the way")
    with pytest.raises(StoreError, match="cannot be used"):
        async with FileClaims(home).hold("tree"):
            pytest.fail("it was claimed")


async def test_a_file_that_cannot_be_taken_away_is_no_trouble(home: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    async with FileClaims(home).hold("tree"):
        (home / FOLDER / "tree.lock").unlink()
        (home / FOLDER).rmdir()
    assert len(os.listdir("/proc/self/fd")) == before


async def test_a_link_in_the_place_of_the_file_is_not_followed(home: Path, tmp_path: Path) -> None:
    (home / FOLDER).mkdir()
    (home / FOLDER / "tree.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError):
        async with FileClaims(home).hold("tree"):
            pytest.fail("it was claimed")
    assert not (tmp_path / "elsewhere").exists()
