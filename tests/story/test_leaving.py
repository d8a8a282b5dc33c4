"""E1, E2: the same words give the same lesson on every surface, in the background where it may be."""

import asyncio
import json
import os
import signal
from asyncio.subprocess import DEVNULL
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hone import Hone
from hone.cli.detach import After, is_detached, spawn
from hone.cli.worker import LIFETIME, stay_behind
from hone.core.clock import ManualClock
from hone.core.jobs import State
from hone.core.messages import Message
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import Scripted
from hone.runtime.claims import Presence, find_worker, hold_worker, stop_worker
from hone.settings import Settings
from hone.settings.sections import Learning
from tests.cli.driving import HONE, PATIENCE, environment, hone, terminal
from tests.faults.left import ASKED, NOTE, WISH, gone, learner, processes
from tests.learning.test_review import Broken, hang
from tests.web.rig import running


def left(home: Path, stage: FakeProvider, **more: str) -> dict[str, str]:
    """An environment in which a process may be left behind."""
    return environment(home, stage, HONE_LEARNING="", **more)


async def test_a_run_learns_behind_its_back_and_the_next_one_knows(home: Path) -> None:
    async with FakeProvider(learner) as stage:
        env = left(home, stage)
        ended = await hone("run", "-q", "--json", WISH, env=env)
        assert (ended.code, json.loads(ended.out)["learning"], ended.err) == (0, "background", "")
        assert await gone(home) == []
        assert (home / "USER.md").read_text() == f"- {NOTE}\n"
        assert len(stage.bodies) == 2, "the task, and one request to learn from it"
        ended = await hone("run", "--json", "and now?", env=env)
        assert json.loads(ended.out)["learning"] == "none"
        assert NOTE.encode() in stage.bodies[2]
        assert processes(home) == []


async def test_a_chat_says_that_it_goes_on_learning_and_does(home: Path) -> None:
    async with FakeProvider(learner) as stage:
        async with terminal(env=left(home, stage)) as user:
            await user.enter(WISH)
            await user.sees("Yes.", "review at ")
            assert await user.leave() == 0
        assert "Reviewing this conversation in the background." in user.text
        assert await gone(home) == []
        assert (home / "USER.md").read_text() == f"- {NOTE}\n"
        for words in (("run", "and now?"), ()):
            async with terminal(*words, env=environment(home, stage)) as user:
                if words:
                    assert await user.ended() == 0
                    assert f'✎ learned since you last spoke: "{NOTE}" · hone log' in user.text
                else:
                    await user.prompt()
                    assert "learned since" not in user.text, "it was told once"
                    assert await user.leave() == 0


async def test_a_server_learns_from_its_endpoint_when_nobody_says_more(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path, learner) as visit:
        await visit.post("/v1/chat/completions", messages=[{"role": "user", "content": WISH}])
        now = datetime.now(UTC) + timedelta(minutes=5)
        hone = visit.state.hone
        (look,) = await hone.jobs.looks()
        assert look.due < now
        await hone.jobs.hasten([look.session], datetime.now(UTC))
        await hone.background.drain()
        assert NOTE in (await hone.session()).agent.prefix.system


async def test_a_program_learns_in_its_event_loop(home: Path) -> None:
    async with Hone(home=home, model=Scripted(learner), learning="background") as hone:
        await hone.run(WISH)
    async with Hone(home=home, model=Scripted(learner)) as hone:
        assert NOTE in (await hone.session()).agent.prefix.system
    assert processes(home) == []


@pytest.mark.parametrize("how", ["CI", "setting", "variable"])
async def test_nothing_is_left_behind_where_it_may_not_be(home: Path, how: str) -> None:
    if how == "setting":
        (home / "hone.toml").write_text('[learning]\nafter_exit = "queue"\n')
    async with FakeProvider(learner) as stage:
        env = environment(home, stage) if how == "variable" else left(home, stage)
        ended = await hone("run", "--json", WISH, env=env | ({"CI": "true"} if how == "CI" else {}))
        assert json.loads(ended.out)["learning"] == "queued"
        assert (processes(home), len(stage.bodies)) == ([], 1)
        done = await hone("worker", "--once", env=env)
        assert (done.code, "learned" in done.out) == (0, True)
    assert (home / "USER.md").read_text() == f"- {NOTE}\n"


async def test_a_command_that_only_reads_leaves_nobody_behind(home: Path) -> None:
    async with FakeProvider(learner) as stage:
        await hone("run", WISH, env=environment(home, stage))
        for command in (["log"], ["reviews"], ["sessions"], ["worker", "status"], ["doctor"]):
            await hone(*command, env=left(home, stage))
            assert processes(home) == [], command
        assert len(stage.bodies) == 1


async def test_the_worker_of_a_home_is_one_is_told_of_and_can_be_stopped(home: Path) -> None:
    async with FakeProvider(learner) as stage:
        env = left(home, stage)
        idle = await hone("worker", "status", env=env)
        assert idle.out == "No worker runs.\nNothing is due.\n"
        assert (await hone("worker", "stop", env=env)).out == "No worker runs.\n"
        with hold_worker(home) as held:
            assert held
            status = json.loads((await hone("worker", "status", "--json", env=env)).out)
            nothing: dict[str, object] = {
                "queued": 0,
                "next": None,
                "workers": [],
                "waiting": {},
                "commands": [],
            }
            assert status == {"process": os.getpid(), **nothing}
            ended = await hone("run", "--json", WISH, env=env)
            assert json.loads(ended.out)["learning"] == "background"
            assert processes(home) == [], "there is one already"
        assert find_worker(home) is None
        waiting = (await hone("worker", "status", env=env)).out
        assert "The next review is due at " in waiting


async def test_what_is_left_behind_has_nothing_of_ours_and_ends_when_it_is_told_to(home: Path) -> None:
    begun = asyncio.Event()

    def slow(messages: Sequence[Message]) -> Message:
        if ASKED in messages[-1].text:
            stage.pace = PATIENCE
            begun.set()
        return learner(messages)

    ours, theirs = os.pipe()
    os.set_inheritable(theirs, True)
    async with FakeProvider(slow) as stage:
        env = left(home, stage)
        done = await asyncio.create_subprocess_exec(
            *HONE, "run", "-q", WISH, env=env, pass_fds=[theirs], stdout=DEVNULL, start_new_session=True
        )
        assert await done.wait() == 0
        os.close(theirs)
        await begun.wait()
        worker = find_worker(home)
        assert worker is not None
        assert await asyncio.to_thread(os.read, ours, 1) == b"", "nobody has the other end"
        assert (os.getsid(worker), os.readlink(f"/proc/{worker}/cwd")) == (worker, "/")
        assert {os.readlink(f"/proc/{worker}/fd/{each}") for each in range(3)} == {os.devnull}
        told = await hone("worker", "stop", env=env)
        assert (told.out, await gone(home)) == (f"Worker {worker} has stopped.\n", [])
        assert "1 review is queued." in (await hone("worker", "status", env=env)).out
    os.close(ours)


async def test_what_is_left_behind_ends_after_a_while_in_any_case(home: Path) -> None:
    model, clock = Broken(hang), ManualClock()
    async with Hone(home=home, model=model, clock=clock, learning="queue") as opened:
        await opened.run(WISH)
        await opened.lookback.leave()
        staying = asyncio.create_task(stay_behind(opened))
        await model.asked.wait()
        assert find_worker(home) == os.getpid()
        clock.advance(LIFETIME)
        assert await staying == 0
        (job,) = await opened.jobs.jobs()
        assert (find_worker(home), job.state) == (None, State.QUEUED)


async def test_only_who_holds_the_lock_is_stopped(home: Path) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        (home / "locks").mkdir()
        (home / "locks/worker.pid").write_text(f"{os.getpid()}\n")
        assert (stop_worker(home), heard) == (None, []), "a file that a killed worker left"
        with hold_worker(home):
            assert stop_worker(home) == os.getpid()
            await asyncio.sleep(0)
        assert heard == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_what_cannot_be_started_is_left_in_the_queue(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(home / "nowhere"))
    assert spawn(home, After.BACKGROUND) is After.QUEUED
    assert spawn(home, After.NONE) is After.NONE
    with hold_worker(home):
        assert spawn(home, After.BACKGROUND) is After.BACKGROUND, "nobody is started beside the one there is"


def test_a_process_is_left_behind_unless_somebody_says_no() -> None:
    usual = Settings()
    assert is_detached(usual, {})
    assert is_detached(usual, {"CI": "false"})
    assert not is_detached(usual, {"CI": "1"})
    assert not is_detached(usual, {"HONE_LEARNING": "queue"})
    assert not is_detached(Settings(learning=Learning(after_exit="queue")), {})
    assert not is_detached(Settings(learning=Learning(after_exit="off")), {})


async def test_a_turn_in_another_process_is_noticed_as_long_as_it_lasts(home: Path) -> None:
    here, there = Presence(home), Presence(home, process=1)
    there.enter()
    assert (here.is_elsewhere(), there.is_elsewhere()) == (True, False)
    there.leave()
    assert not here.is_elsewhere()
    assert list((home / "locks").iterdir()) == []


async def test_a_conversation_that_is_left_for_another_is_looked_back_over(home: Path) -> None:
    clock = ManualClock()
    async with Hone(home=home, model=Scripted(learner), clock=clock) as opened:
        session = await opened.session()
        await session.send(WISH)
        await opened.lookback.leave(session.id)
        (look,) = await opened.jobs.looks()
        assert look.due == clock.now()
    with suppress(FileNotFoundError):
        assert list((home / "locks").iterdir()) == []
